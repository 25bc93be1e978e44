"""Which of several servers a move is planned on; no server is asked."""

from __future__ import annotations

from typing import Any

import pytest

from contract.checkpoint import Checkpoint
from contract.gtid import GtidSet
from contract.pipeline import Pipeline
from streamer import outputs, source
from streamer.errors import HeadraceError, UnreachableError
from streamer.seek import command
from streamer.source import Facts
from tests.checkpoints import checkpoint
from tests.streamer.fakes import SOURCE, pipeline

OTHER = "00000000-71ca-11e1-9e33-c80aa9429562"


def two() -> Pipeline:
    settings = pipeline()
    return settings.model_copy(update={"source": settings.source.model_copy(update={"host": "a", "failover": ("b",)})})


def facts(uuid: str, executed: str) -> Facts:
    gtids = GtidSet(), GtidSet.parse(f"{SOURCE}:{executed}")
    return Facts(1, uuid, "9.7.4", *gtids, "binlog.000007", 9, "binlog.000002")


class PlannedError(Exception):
    pass


def planned_on(monkeypatch: pytest.MonkeyPatch, **answers: Facts | HeadraceError) -> str:
    """The host, of a pipeline that went on from the server OTHER."""

    def ask(server: Any) -> Facts:
        found = answers[server.host]
        if isinstance(found, HeadraceError):
            raise found
        return found

    def plan(settings: Pipeline, stands: Checkpoint, facts: Facts, to: str) -> None:
        raise PlannedError(settings.source.host)

    monkeypatch.setattr(source, "facts", ask)
    monkeypatch.setattr(source, "lacks_gtid", lambda *_: False)
    stood = checkpoint(server_uuid=OTHER, gtid_set=f"{SOURCE}:1-10", pos=700)
    monkeypatch.setattr(outputs, "position", lambda _: stood)
    monkeypatch.setattr(command, "plan", plan)
    with pytest.raises(PlannedError) as found:
        command.seek(two(), "earliest", dry_run=True)
    return str(found.value)


def test_on_the_checkpoints_own_server_though_another_one_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind a failover the first one is back, and still lacks what was streamed."""
    assert planned_on(monkeypatch, a=facts(SOURCE, "1-9"), b=facts(OTHER, "1-10")) == "b"


def test_on_one_that_can_take_its_place_where_it_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    away = UnreachableError("connect to", "MySQL", "refused", "Start the server")
    assert planned_on(monkeypatch, a=facts(SOURCE, "1-10"), b=away) == "a"
