"""What `headrace check` makes of a pipeline that has streamed before."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from contract.gtid import GtidSet
from contract.pipeline import Pipeline, Tables
from streamer import disk
from streamer.delivery_errors import BrokerUnreachableError
from streamer.errors import PreflightError
from streamer.preflight import command, refusing
from streamer.preflight.findings import Finding
from tests.checkpoints import checkpoint
from tests.streamer.fakes import FILE, SOURCE, pipeline

CHECKPOINT = checkpoint(gtid_set=f"{SOURCE}:1-5", ts_ms=86_400_000, events=9, tables=Tables(include=("shop.old",)))
SHAPES = [object()]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """A server and a broker that are well, but for one finding of each kind; what the server's checks were asked."""
    calls: list[tuple[Any, ...]] = []

    def checks(reading: Any, start: Any = None, since: Any = None, followed: Any = None) -> list[Finding]:
        calls.append((start and str(start), since, followed))
        setting = Finding("error", "binlog_format", "binlog_format is MIXED", "SET PERSIST binlog_format = 'ROW';")
        lag = Finding(
            "warning", "lag", "the stream is 3 days behind, and the server keeps binlogs for 5 days", "SET ...;"
        )
        return [setting, lag] if start is not None else [setting]

    facts = SimpleNamespace(version="9.7.4", file=FILE, purged=GtidSet(), executed=GtidSet())
    found = SimpleNamespace(source=pipeline().source, facts=facts, anew="")
    monkeypatch.setattr(command.preflight, "run_checks", checks)
    monkeypatch.setattr(command, "_own_streamer", lambda _: True)
    monkeypatch.setattr(command.outputs, "position", lambda _: CHECKPOINT)
    monkeypatch.setattr(command.broker, "answers", lambda *_: None)
    monkeypatch.setattr(command.outputs, "known_schemas", lambda _: SHAPES)
    monkeypatch.setattr(command.topics, "compare", lambda *_: [])
    monkeypatch.setattr(command.source, "facts", lambda _: facts)
    monkeypatch.setattr(command.source, "tables", lambda _: [("shop", "old")])
    monkeypatch.setattr(command.way, "chosen", lambda _, checkpoint: checkpoint)
    monkeypatch.setattr(command.Servers, "choose", lambda *_: found)
    return calls


def test_a_start_that_is_refused_tells_each_finding_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What keeps it from starting is in its last word, the rest is told before."""
    wrong = Finding("error", "log_bin", "log_bin is OFF", "SET it.")
    doubt = Finding("warning", "tls", "the server offers no TLS", "Set it.")
    monkeypatch.setattr(refusing, "run_checks", lambda *_: [wrong, doubt])
    told: list[Finding] = []
    with pytest.raises(PreflightError, match="log_bin is OFF"):
        refusing.refuse(pipeline(), GtidSet(), None, told.append)
    assert told == [doubt]


def test_retention_is_held_against_the_present_lag(asked: list[tuple[Any, ...]]) -> None:
    results = command.check(pipeline())
    [lag] = [one for one in results if "3 days behind" in one.text]
    assert (lag.level, lag.subject, lag.next_step) == ("warning", "checkpoint", "SET ...;")
    assert [one.text for one in results if one.level == "error"] == ["binlog_format is MIXED"], "told once"
    first, last = asked
    assert first == (None, None, CHECKPOINT.tables), "what is wrong with a followed table is no error"
    assert last[:2] == (CHECKPOINT.gtid_set, 86_400.0)


def test_without_a_broker_the_server_is_checked_all_the_same(
    asked: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: Any) -> None:
        raise BrokerUnreachableError("asking", "Kafka at h:9092", "no broker answers", "Start the broker.")

    monkeypatch.setattr(command.broker, "answers", away)
    results = command.check(pipeline())
    assert [(one.level, one.subject) for one in results if one.level == "error"] == [
        ("error", "server: binlog_format"),
        ("error", "broker"),
    ]
    assert asked == [(None, None, None)]


def test_a_commit_log_of_a_server_of_another_flavor_is_an_error(
    asked: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name is another pipeline's; that showed as a traceback."""
    monkeypatch.undo()
    monkeypatch.setattr(command, "_own_streamer", lambda _: True)
    monkeypatch.setattr(command, "_server", lambda *_: [])
    monkeypatch.setattr(command, "lake", lambda _: [])
    monkeypatch.setattr(command.broker, "answers", lambda *_: None)
    monkeypatch.setattr(command.source, "tables", lambda _: [])
    monkeypatch.setattr(command.outputs, "read_checkpoint", lambda _: CHECKPOINT)
    mysql = pipeline()
    maria = mysql.model_copy(update={"source": mysql.source.model_copy(update={"flavor": "mariadb"})})
    [wrong] = [one for one in command.check(maria) if one.level == "error"]
    assert wrong.subject == "checkpoint"
    assert "of another flavor, mysql" in wrong.text
    assert "Choose another name" in wrong.next_step


def test_all_that_is_included_and_excluded_again_is_told_so(
    asked: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    there = [("shop", "a"), ("shop", "b"), ("else", "c")]
    monkeypatch.setattr(command.source, "tables", lambda asking: [one for one in there if asking.tables.match(*one)])
    every = pipeline()
    none = every.model_copy(update={"tables": Tables(include=("shop.*",), exclude=("shop.*",))})
    [told] = [one for one in command.check(none) if one.subject == "tables"]
    assert (told.level, told.text) == (
        "warning",
        "tables.exclude takes out all 2 tables that tables.include chooses",
    )
    other = every.model_copy(update={"tables": Tables(include=("nope.*",), exclude=("shop.*",))})
    [told] = [one for one in command.check(other) if one.subject == "tables"]
    assert told.text == "no table matches nope.* now"


def test_folders_that_could_not_be_written_are_told(
    asked: list[tuple[Any, ...]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_the_way, good = tmp_path / "file", tmp_path / "not" / "yet" / "there"
    in_the_way.write_text("x")
    given: dict[str, Any] = pipeline().model_dump(exclude={"path", "source"}) | {
        "source": {"host": "h", "user": "u", "password": "p", "server_id": 7},
        "sinks": [{"type": "kafka"}, {"type": "files", "path": in_the_way / "out"}, {"type": "files", "path": good}],
        "checkpoints": {"type": "file", "path": in_the_way},
        "records": {"oversized": {"target": f"file://{in_the_way}/large"}},
    }
    results = [one for one in command.check(Pipeline.model_validate(given)) if "no folder" in one.text]
    assert [(one.level, one.subject) for one in results] == [
        ("error", "sink"), ("error", "checkpoint"), ("error", "oversized"),
    ]  # fmt: skip
    assert all(f"{in_the_way} is no folder" in one.text and one.next_step for one in results)
    assert not good.parent.exists(), "a check makes nothing"
    monkeypatch.setattr(disk.os, "access", lambda *_: False)
    told = [one.text for one in command.check(Pipeline.model_validate(given)) if one.subject == "sink"]
    assert f"the folder {good}: {tmp_path} may not be written" in told
    assert "can be no folder: File name too long" in disk.obstacle(tmp_path / ("a" * 300))
