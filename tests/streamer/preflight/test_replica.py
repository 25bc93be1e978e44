"""What `headrace check` says of the replica that snapshots read."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from streamer import source
from streamer.preflight.findings import Result
from streamer.preflight.replica import replica
from tests.streamer.fakes import pipeline

CHOSEN = [("sales", "orders"), ("sales", "items")]
WELL = {"Source_Server_Id": 7, "Replica_SQL_Running": "Yes"}


def told(monkeypatch: pytest.MonkeyPatch, channels: list[dict[str, Any]] | None) -> Result:
    named = pipeline()
    named = named.model_copy(update={"snapshot": named.snapshot.model_copy(update={"replica": "db2:3307"})})
    asked: list[str] = []
    monkeypatch.setattr(source, "channels", lambda there: asked.append(there.where) or channels)
    monkeypatch.setattr(source, "facts", lambda _: SimpleNamespace(server_id=7))
    [result] = replica(named, CHOSEN)
    assert asked == ["db2:3307"]
    return result


def test_one_that_replicates_everything_is_well(monkeypatch: pytest.MonkeyPatch) -> None:
    assert told(monkeypatch, [WELL]).level == "ok"


@pytest.mark.parametrize(
    ("channels", "what", "step"),
    [
        (None, "does not tell u how its replication stands", "GRANT REPLICATION CLIENT ON *.* TO u;"),
        ([], "replicates from no server", "leave it out"),
        (
            [{**WELL, "Replicate_Ignore_Table": "sales.items"}],
            "sales.items (replicate-ignore-table=",
            "leave snapshot.",
        ),
    ],
)
def test_one_that_no_snapshot_could_read_is_told(
    monkeypatch: pytest.MonkeyPatch, channels: list[dict[str, Any]] | None, what: str, step: str
) -> None:
    result = told(monkeypatch, channels)
    assert (result.level, result.subject) == ("error", "replica")
    assert what in result.text
    assert "sales.orders" not in result.text
    assert step in result.next_step


def test_without_one_nothing_is_asked() -> None:
    assert list(replica(pipeline(), CHOSEN)) == []
