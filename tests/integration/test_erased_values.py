"""What a server says when an erasure, or a repair, asks it for rows whose keys are rare: zero and partial dates, texts
that the column's character set has not, what an ENUM keeps of a value that is none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from contract.erased_key import keys_of
from spark.erasing import source as asked
from spark.errors import LakeError
from spark.mending import wanted
from spark.source.choice import shown_of
from spark.source.source import Source
from stack.database import Database
from tests.integration.decoding import pipeline, run

# Of each table the key's type, its rows, and keys of rows that are not there.
TABLES: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "days": ("date", ("0000-00-00", "2026-00-00", "2026-02-30", "2026-12-31"), ("2026-00-01", "2026-02-31")),
    "moments": (
        "datetime(3)", ("0000-00-00 00:00:00.000", "2026-02-30 01:02:03.500"), ("2026-02-30 01:02:03.501",),
    ),
    "seconds": ("timestamp", ("0000-00-00 00:00:00", "2026-01-01 10:00:00"), ("2026-01-01 10:00:01",)),
    "years": ("year", ("0000", "1901"), ("2000", "1902")),
    "spans": ("time", ("838:59:59", "-838:59:59", "00:00:01"), ("838:59:58",)),
    "latin": ("varchar(20) CHARACTER SET latin1", ("?", "jörg", "€"), ("Łukasz", "Ł", "😀")),
    "old_utf8": ("varchar(20) CHARACTER SET utf8mb3", ("?", "Łukasz"), ("😀",)),
    "japanese": ("varchar(20) CHARACTER SET sjis", ("漢字", "?"), ("é", "😀")),
    "members": ("enum('a','b') CHARACTER SET latin1", ("", "a"), ("b",)),
    "amounts": ("decimal(24,4)", ("12345678901234567890.1234",), ("12345678901234567890.1235",)),
}  # fmt: skip


@dataclass
class Site:
    source: Source

    def refuses(self, table: str, *keys: str) -> str:
        """What an erasure says of the keys; nothing where it goes on."""
        if (schema := self.source.schema("rarekeys", table)) is None:
            raise AssertionError(table)
        given = keys_of(str([{"k": key} for key in keys]).replace("'", '"'), schema)
        try:
            asked._refuse_present(self.source, shown_of(self.source.pipeline, schema), given)
        except LakeError as error:
            return str(error)
        return ""


@pytest.fixture
def site(server: Database, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    run(server, "DROP DATABASE IF EXISTS rarekeys", "CREATE DATABASE rarekeys")
    for name, (kind, rows, _) in TABLES.items():
        # A TIMESTAMP would else get a default of its own, which a strict session refuses.
        mode = "SET sql_mode = 'ALLOW_INVALID_DATES', time_zone = '+00:00', NAMES utf8mb4"
        written = ", ".join(f"('{row}')" for row in rows)
        table = f"CREATE TABLE {name} (k {kind} NOT NULL PRIMARY KEY)"
        run(server, mode, table, f"INSERT INTO {name} VALUES {written}", database="rarekeys")
    monkeypatch.setenv("TEST_PASSWORD", server.password)
    with Source(pipeline(server)) as source:
        yield Site(source)


@pytest.mark.parametrize("table", TABLES)
def test_a_row_is_found_by_any_key_that_it_may_have_and_one_that_is_not_there_is_not(site: Site, table: str) -> None:
    _, rows, others = TABLES[table]
    assert site.refuses(table, *others) == ""
    for row in rows:
        assert "the source still has 1 of 2 rows" in site.refuses(table, others[0], row), row


def test_a_failure_has_the_keys_number_and_not_its_value(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    """Of a table that is another than the one whose schema was asked for."""
    schema = site.source.schema("rarekeys", "days")
    assert schema is not None
    shown = shown_of(site.source.pipeline, schema.model_copy(update={"table": "gone"}))
    with pytest.raises(LakeError, match=r"the row of key 1, gives the error 1146 .*Nothing was erased$") as error:
        asked._refuse_present(site.source, shown, keys_of("2026-12-31", schema))
    assert "2026-12-31" not in str(error.value)
    assert "2026-12-31" in capsys.readouterr().out


@pytest.mark.parametrize("table", ["members", "amounts", "latin"])
def test_a_repair_asks_for_the_same_rows(site: Site, table: str) -> None:
    schema = site.source.schema("rarekeys", table)
    assert schema is not None
    _, rows, others = TABLES[table]
    for key, there in [*((row, 1) for row in rows), *((other, 0) for other in others if table != "latin")]:
        condition = wanted.source_condition(schema, [{"k": key}], site.source.row).replace("k0", "k")
        assert site.source.value(f"SELECT count(*) FROM rarekeys.{table} WHERE {condition}") == there, key
