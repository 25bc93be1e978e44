"""DDL on the pipeline's tables is noted; on others it is not."""

from __future__ import annotations

from io import StringIO

import pytest
import structlog
from rich.console import Console

from contract.gtid import GtidSet
from streamer.ddl_notes import DdlNotes
from streamer.protocol.model import Ddl
from streamer.report import Report
from streamer.source import Facts
from streamer.tables import show_status
from tests.streamer.fakes import FILE, SOURCE, Binlog, pipeline, rig

FACTS = Facts(1, SOURCE, "9.7.4", GtidSet(), GtidSet(), FILE, 4, FILE)


def item(statement: str, db: str = "shop") -> Ddl:
    return Ddl(db, statement, f"{SOURCE}:1", FILE, 100, 1_000)


@pytest.mark.parametrize(
    ("statement", "db", "tables"),
    [
        ("TRUNCATE t", "shop", ["shop.t"]),
        ("TRUNCATE t", "other", None),
        ("TRUNCATE shop.t", "other", ["shop.t"]),
        ("RENAME TABLE other.a TO shop.t, other.b TO other.c", "other", ["shop.t"]),
        ("DROP DATABASE shop", "", ["shop.*"]),
        ("DROP DATABASE other", "shop", None),
        ("FROBNICATE t", "other", []),
        ("CREATE TABLE t (id INT)", "shop", None),
    ],
)
def test_whose_ddl_is_noted(statement: str, db: str, tables: list[str] | None) -> None:
    notes = DdlNotes(pipeline())
    with structlog.testing.capture_logs() as lines:
        notes.see(item(statement, db))
    assert [note["tables"] for note in notes.last] == ([] if tables is None else [tables])
    assert sum(notes.counts.values()) == len(lines) == (tables is not None)
    if tables is not None:
        assert lines[0]["log_level"] == "warning"
        assert (lines[0]["file"], lines[0]["pos"], lines[0]["gtid"]) == (FILE, 100, f"{SOURCE}:1")
        assert "sales.snapshot" in lines[0]["next_step"]


def test_the_last_five_are_kept() -> None:
    notes = DdlNotes(pipeline())
    for n in range(7):
        notes.see(item(f"TRUNCATE t{n}"))
    assert [note["tables"] for note in notes.last] == [[f"shop.t{n}"] for n in range(2, 7)]
    assert notes.counts["truncate"] == 7


def test_the_status_shows_each_of_them() -> None:
    what = rig(Binlog([]))
    for statement in ("TRUNCATE t", "DROP TABLE t", "FROBNICATE"):
        what.stream.ddl.see(item(statement))
    report = Report(pipeline(), what.status)
    report.attach(FACTS, what.stream, what.ledger, what.watcher, what.stream._checkpoints, what.sink)  # type: ignore[arg-type]
    out = Console(file=StringIO(), width=120, highlight=False)
    show_status(out, report.as_dict())
    shown = out.file.getvalue()  # type: ignore[attr-defined]
    assert [line.split()[3:] for line in shown.splitlines() if line.startswith("DDL")] == [
        ["truncate", "shop.t"],
        ["drop", "shop.t"],
        ["unknown", "?"],
    ]
