"""Masks on real servers: stream, snapshot and check give the same text of every type."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

import pytest

from contract.gtid import GtidSet
from contract.masks import Mask, text_of
from contract.pipeline_columns import Columns
from contract.types import INEXACT
from spark.proof.checksum import source_sql
from spark.source.row_texts import row_json
from spark.source.row_wires import columns_sql
from spark.source.source import Source
from stack.database import Database
from streamer.definitions import Definitions
from streamer.protocol.filters import Filters
from streamer.protocol.model import Commit, RowsBatch
from streamer.transaction import BinlogDecoder
from tests.integration.decoding import chunks, executed, pipeline, run, source
from tests.integration.edge_values import cases, inserts, spelling

Written = tuple[list[str], GtidSet, list[bytes]]
ZEROS = ("SET sql_mode = ''", "SET NAMES utf8mb4")
SECRET = "a salt"
MASKS: Sequence[dict[str, Any]] = (
    {"mask": "hash"},
    {"mask": "truncate", "n": 3},
    {"mask": "obfuscate"},
    {"mask": "keep_last", "n": 2},
    {"mask": "null"},
)


@pytest.fixture
def written(server: Database) -> Written:
    """Every type's edge values: the types of the columns `c0`, `c1` and so on, and their dump behind a place."""
    kinds = cases(server)
    made = ", ".join(f"`c{n}` {kind}" for n, kind in enumerate(kinds))
    run(server, "DROP DATABASE IF EXISTS covered", "CREATE DATABASE covered")
    run(server, *ZEROS, f"CREATE TABLE covered.t (id int primary key, {made}) ROW_FORMAT=DYNAMIC")
    begin = executed(server)
    run(
        server, *ZEROS, *(text.replace(*spelling(server)).replace("edges.edge", "covered.t") for text in inserts(kinds))
    )
    return list(kinds), begin, chunks(server, begin, executed(server))


def rules(kinds: list[str], mask: dict[str, Any]) -> Columns:
    """The mask on all columns that it takes; the others are excluded."""
    inexact = [f"*.*.c{n}" for n, kind in enumerate(kinds) if kind.split("(")[0].split()[0] in INEXACT]
    exclude = [] if mask["mask"] == "null" else inexact
    return Columns.model_validate({"secret": SECRET, "exclude": exclude, "masks": [{"columns": ["*.*.c*"], **mask}]})


def streamed(server: Database, begin: GtidSet, dump: list[bytes], columns: Columns) -> list[dict[str, Any]]:
    seen = begin.copy()
    asking = Definitions(source(server), lambda: seen)
    decoder = BinlogDecoder(lambda db, table: db == "covered", definitions=asking, filters=Filters(columns.show))
    found = []
    for chunk in dump:
        for item in decoder.feed(chunk):
            if isinstance(item, RowsBatch):
                found += [json.loads(row) for row in item.rows]
            elif isinstance(item, Commit):
                seen.add(item.gtid)
    return found


def test_stream_snapshot_and_check_mask_every_type_alike(server: Database, written: Written) -> None:
    kinds, begin, dump = written
    plain = streamed(server, begin, dump, Columns())
    for mask in MASKS:
        columns = rules(kinds, mask)
        rows = streamed(server, begin, dump, columns)
        given = pipeline(server, "covered.*").model_copy(update={"columns": columns})
        with Source(given) as asked:
            schema = asked.schema("covered", "t")
            assert schema is not None
            shown = columns.show(schema)
            said = asked.rows(f"SELECT {row_json(shown, server.flavor)} FROM covered.t ORDER BY id")
            terms = columns_sql(shown, server.flavor)
            apart = asked.rows(f"SELECT {', '.join(terms.values())} FROM covered.t ORDER BY id")
            total = asked.row(source_sql(shown, server.flavor))
        assert [json.loads(text) for (text,) in said] == rows, mask
        assert [values_of(given, mask["mask"]) for given in apart] == [told(row) for row in rows], mask
        assert total is not None
        assert tuple(map(int, total)) == (len(rows), sum(row_hash(row, mask["mask"] != "hash") for row in rows)), mask
        texts = [
            (whole[name], value, kinds[int(name[1:])])
            for whole, row in zip(plain, rows, strict=True)
            for name, value in row.items()
            if name != "id"
        ]
        cover = text_of(Mask(mask["mask"], mask.get("n", 0), SECRET.encode()))
        assert [one for one in texts if one[1] != masked(one[0], cover, mask["mask"])] == []


def values_of(given: Sequence[Any], mask: str) -> list[str | None]:
    """A row's values that came in columns of their own, of which as many are NULL as it says."""
    _, nulls, *texts = (None if one is None else str(one) for one in given)
    if mask == "null":
        texts = [None if text == "null" else text for text in texts]
    assert texts.count(None) == int(nulls or 0)
    return texts


def told(row: dict[str, Any]) -> list[str | None]:
    return [value if value is None or isinstance(value, str) else json.dumps(value) for value in row.values()]


def masked(value: Any, cover: Any, kind: str) -> Any:
    if value is None or kind == "null":
        return None
    return cover(value if isinstance(value, str) else json.dumps(value))


def row_hash(row: dict[str, Any], long: bool) -> int:
    """As the check of a table makes it: long texts by their digest, others behind their size."""

    def text(name: str, value: Any) -> str:
        if value is None:
            return "~"
        if name == "id":
            return f"={value}"
        return f"={hashlib.sha256(value.encode()).hexdigest()}" if long else f"{len(value.encode())}={value}"

    line = "\u001f".join(text(name, value) for name, value in row.items())
    return int(hashlib.sha256(line.encode()).hexdigest()[:12], 16)
