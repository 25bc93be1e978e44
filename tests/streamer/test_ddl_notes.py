"""DDL on the pipeline's tables is noted; on others it is not."""

from __future__ import annotations

import pytest
import structlog

from streamer.ddl_notes import DdlNotes
from streamer.protocol.model import Ddl
from tests.streamer.fakes import FILE, SOURCE, pipeline


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
