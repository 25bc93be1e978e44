"""What a run passes on from the server that it is connected to."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest

from contract.gtid import GtidSet
from contract.pipeline import Pipeline
from streamer import run
from streamer.definitions import Definitions
from streamer.delivery_errors import OtherFormError, TransformError
from streamer.outgoing.transforming import Transforms
from streamer.run import Runner
from streamer.servers import Chosen
from streamer.source import Facts
from tests.checkpoints import checkpoint
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
        assert what.stream.ddl.lower_case is what.prepared.temporary.lower_case is lower


def test_a_start_refuses_tables_whose_topics_hold_what_transforms_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before any server is asked: the file followed fewer tables, or named them otherwise, when it was sent."""
    runner = Runner(pipeline(), threading.Event())
    monkeypatch.setattr(runner._servers, "choose", lambda *_: pytest.fail("a server was asked"))
    with pytest.raises(TransformError, match=r"into sales\.shop\.orders, which would be a table's topic"):
        runner._resume(checkpoint(topics=("elsewhere", "sales.shop.orders")))


def test_a_start_in_another_form_of_records_is_refused_and_a_checkpoint_tells_which(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain = pipeline()
    told = plain.model_dump() | {"source": plain.source, "records": {"format": "debezium"}, "lake": {}}
    runner = Runner(Pipeline.model_validate(told), threading.Event())
    runner._transforms = Transforms(runner._pipeline)
    monkeypatch.setattr(runner._servers, "choose", lambda *_: pytest.fail("a server was asked"))
    with pytest.raises(OtherFormError):
        runner._resume(checkpoint(events=5))
    assert runner._by_rules(checkpoint()).form == "debezium"
