"""What a run passes on from the server that it is connected to."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest

from contract.gtid import GtidSet
from contract.pipeline import Pipeline
from streamer import run
from streamer.control.status import Status
from streamer.definitions import Definitions
from streamer.delivery_errors import OtherFormError, TransformError
from streamer.outgoing.transforming import Transforms
from streamer.patience import Patience
from streamer.run import Runner
from streamer.servers import Chosen, Servers
from streamer.source import Facts
from streamer.start.beginning import Beginnings
from tests.checkpoints import checkpoint
from tests.streamer.fakes import FILE, SOURCE, Binlog, pipeline, rig

FACTS = Facts(1, SOURCE, "9.7.4", GtidSet(), GtidSet(), FILE, 4, FILE)
FOUND = Chosen(pipeline().source, FACTS, "")


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


def beginnings(of: Pipeline, monkeypatch: pytest.MonkeyPatch) -> Beginnings:
    """Of a run that must not ask a server."""
    servers = Servers(of)
    monkeypatch.setattr(servers, "choose", lambda *_: pytest.fail("a server was asked"))
    return Beginnings(servers, Transforms(of), Patience(Status(of.name), threading.Event()), lambda: False)


def test_a_start_refuses_tables_whose_topics_hold_what_transforms_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before any server is asked: the file followed fewer tables, or named them otherwise, when it was sent."""
    begin = beginnings(pipeline(), monkeypatch).begin
    with pytest.raises(TransformError, match=r"into sales\.shop\.orders, which would be a table's topic"):
        begin(checkpoint(topics=("elsewhere", "sales.shop.orders")), FOUND)


def test_a_start_in_another_form_of_records_is_refused_and_a_checkpoint_tells_which(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain = pipeline()
    told = plain.model_dump() | {"source": plain.source, "records": {"format": "debezium"}, "lake": {}}
    made = beginnings(Pipeline.model_validate(told), monkeypatch)
    with pytest.raises(OtherFormError):
        made.begin(checkpoint(events=5), FOUND)
    monkeypatch.setattr(made, "_resumed", lambda kept: (kept, FOUND))
    assert made.begin(checkpoint(), FOUND)[0].form == "debezium"
