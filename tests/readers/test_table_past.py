"""By which key the rows of a table's past belong together, and how its names are spelled."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from deltalake import write_deltalake

from contract import names
from contract.pipeline import Pipeline
from contract.status import LakeStatus
from readers.errors import LakeReadError
from tests.readers.lake_by_hand import (
    BIG,
    CHANGES,
    SHAPE,
    append,
    at,
    change,
    row,
    rows_of,
)


@pytest.fixture(params=["id", "ID"])
def respelled(pipeline: Pipeline, request: pytest.FixtureRequest) -> Pipeline:
    """The key's column was renamed by its letters alone at 10:25; the lake's table spells it one way or the other."""
    root = Path(names.lake_root(pipeline))
    told = {"db": "shop", "table": "items"}
    broken = told | {"seq": [0, 1, 25], "ts_ms": int(at(25).timestamp() * 1000)}
    spellings = [told | {"name": name} for name in ("id", "ID")]
    (root / "_evolution.json").write_text(json.dumps({"breaks": [broken], "spellings": spellings}))
    frame = pl.read_delta(str(root / names.CHANGES)).with_columns(schema=1 + (pl.col("_seq").struct["pos"] > 25))
    texts = {
        n: pl.when(pl.col("schema") == 1).then(n).otherwise(pl.col(n).str.replace('"id"', '"ID"'))
        for n in ("key", "before", "after")
    }
    frame = frame.with_columns(**texts)
    write_deltalake(str(root / names.CHANGES), frame, mode="overwrite", schema_mode="overwrite", partition_by=["tbl"])
    path = names.lake_table(pipeline, "shop", "items")
    now = pl.read_delta(path).rename({"id": request.param})
    write_deltalake(path, now, mode="overwrite", schema_mode="overwrite")
    return pipeline


def test_capital_letters_in_a_keys_name_make_no_difference_to_the_past(respelled: Pipeline) -> None:
    past = rows_of(respelled, f"SELECT id, \"a name\" FROM items_as_of('{at(35)}')")
    assert {(int(id), name) for id, name in past} == {(1, "c"), (BIG, "new"), (3, "gone"), (4, "it's")}
    sql = 'SELECT "a name", minute(valid_from), minute(valid_to) FROM items_history WHERE id = 1'
    assert set(rows_of(respelled, sql)) == {("a", None, 10), ("b", 10, 25), ("b", None, 30), ("c", 30, None)}
    assert rows_of(respelled, "SELECT count(*) FROM items_history WHERE id = 4") == [(1,)]
    told = rows_of(respelled, "SELECT before.id, after.id FROM items_changes")
    assert told == [(1, 1), (None, BIG), (1, 1), (3, None), (BIG, None)]


def test_a_key_of_both_spellings_is_one(pipeline: Pipeline) -> None:
    """Where nothing told of it."""
    append(pipeline, [change(55, "d", {"id": 4}) | {"key": '{"ID":4}'}])
    assert rows_of(pipeline, "SELECT count(*) FROM items_history WHERE valid_to IS NULL AND id = 4") == [(0,)]
    assert rows_of(pipeline, f"SELECT count(*) FROM items_as_of('{at(50)}') WHERE id = 4") == [(1,)]


@pytest.mark.parametrize("key", ['{"code":4}', '{"id":4,"code":4}'])
def test_of_another_key_than_the_tables_there_are_changes_and_no_past(pipeline: Pipeline, key: str) -> None:
    append(pipeline, [change(55, "d", {"id": 4}) | {"key": key}])
    path = f"{names.lake_root(pipeline)}/{names.CHANGES}"
    frame = pl.read_delta(path).with_columns(schema=1)
    write_deltalake(path, frame, mode="overwrite", schema_mode="overwrite", partition_by=["tbl"])
    told = {"db": "shop", "table": "items", "seq": [0, 1, 52], "ts_ms": int(at(52).timestamp() * 1000)}
    for broken, why in (
        ([], r"rows before and after do not compare\. \"shop\"\.\"items_changes\" has"),
        ([told], "has no column code: "),
    ):
        Path(names.lake_root(pipeline), "_evolution.json").write_text(json.dumps({"breaks": broken}))
        for sql in ("FROM items_history", f"FROM items_as_of('{at(53)}')"):
            with pytest.raises(LakeReadError, match=rf"^shop\.items: its primary key changed meanwhile.*{why}"):
                rows_of(pipeline, sql)
        assert len(rows_of(pipeline, "FROM items_changes")) == len(CHANGES)


def test_databases_whose_names_differ_by_case_are_one_when_a_past_is_named(pipeline: Pipeline) -> None:
    """A table's own name comes first, whichever of them has it."""
    file = Path(names.lake_root(pipeline), "_status.json")
    found = LakeStatus.model_validate_json(file.read_text())
    own = found.tables["shop.items"].model_copy(update={"db": "Shop", "table": "items_history"})
    write_deltalake(names.lake_table(pipeline, "Shop", "items_history"), pl.DataFrame([row(7, "own")], SHAPE))
    tables = {**found.tables, "Shop.items_history": own}
    file.write_text(found.model_copy(update={"tables": tables}).model_dump_json())
    for db in ("shop", "Shop"):
        assert rows_of(pipeline, f"SELECT id FROM {db}.items_history") == [(7,)]
        assert rows_of(pipeline, f"SELECT count(*) FROM {db}._items_history") == [(6,)]
    assert rows_of(pipeline, "SELECT count(*) FROM items JOIN items_history ON true") == [(2,)]
    assert {"shop._items_history", "Shop.items_history"} <= {name for name, _ in rows_of(pipeline, "SHOW TABLES")}
