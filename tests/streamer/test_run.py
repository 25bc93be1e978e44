"""What a run passes on from the server that it is connected to."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest

from contract.gtid import GtidSet
from streamer import run
from streamer.definitions import Definitions
from streamer.run import Runner
from streamer.servers import Chosen
from streamer.source import Facts
from tests.streamer.fakes import FILE, SOURCE, Binlog, pipeline, rig

FACTS = Facts(1, SOURCE, "9.7.4", GtidSet(), GtidSet(), FILE, 4, FILE)


def test_each_connection_says_how_its_server_keeps_names(monkeypatch: pytest.MonkeyPatch) -> None:
    source, what = pipeline().source, rig(Binlog([]))
    runner = Runner(pipeline(), threading.Event())
    answers: Iterator[Chosen] = (Chosen(source, replace(FACTS, lower_case=lower), "") for lower in (True, False))
    monkeypatch.setattr(run, "BinlogConnection", lambda *_: None)
    monkeypatch.setattr(runner._servers, "choose", lambda *_: next(answers))
    definitions = Definitions(source, GtidSet)
    for lower in (True, False):
        runner._connect(what.stream, what.watcher, definitions, what.prepared, GtidSet())
        assert what.stream.ddl.lower_case is lower
