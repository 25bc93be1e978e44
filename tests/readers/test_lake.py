"""`headrace sql` over a lake that delta-rs wrote: tables, versions, changes, the past, and what it refuses."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from deltalake import write_deltalake
from typer.testing import CliRunner

import readers.lake
from contract import names
from contract.pipeline import Pipeline, load
from contract.status import LakeStatus, Stale, TableStatus
from readers import noted
from readers.errors import LakeReadError
from readers.lake import query
from spark.erasing import record
from spark.evolution import schema_change_rows
from spark.proof import differences
from streamer.cli import app
from tests.checkpoints import checkpoint
from tests.readers.lake_by_hand import (
    BIG,
    FILE,
    SHAPE,
    append,
    at,
    change,
    place,
    row,
    rows_of,
    wire,
)


def test_a_table_has_its_types_and_not_the_lakes_own_columns(pipeline: Pipeline) -> None:
    for name in ("items", "shop.items", '"shop"."items"', "ITEMS"):
        found = query(pipeline, f"SELECT * FROM {name} ORDER BY id")
        assert found.columns == list(SHAPE)[:-2]
        assert [one[1] for one in found.rows()] == ["c", "it's"]


def test_a_renamed_column_has_its_values_in_the_changes_before(pipeline: Pipeline) -> None:
    root = Path(names.lake_root(pipeline))
    told = {"db": "shop", "table": "items", "version": 2, "seq": [0, 1, 25], "columns": [["once", "a name"]]}
    (root / "_evolution.json").write_text(json.dumps({"renames": [told]}))
    frame = pl.read_delta(str(root / names.CHANGES)).with_columns(schema=1 + (pl.col("_seq").struct["pos"] > 25))
    older = pl.col("schema") == 1
    texts = {
        n: pl.when(older).then(pl.col(n).str.replace('"a name"', '"once"')).otherwise(n) for n in ("before", "after")
    }
    frame = frame.with_columns(**texts)
    write_deltalake(str(root / names.CHANGES), frame, mode="overwrite", schema_mode="overwrite", partition_by=["tbl"])
    found = rows_of(pipeline, 'SELECT before."a name", after."a name", changed FROM items_changes')
    assert [one[:2] for one in found] == [("a", "b"), (None, "new"), ("b", "c"), ("gone", None), ("new", None)]
    assert found[0][2] == ["a name"]
    past = rows_of(pipeline, f"SELECT id, \"a name\" FROM items_as_of('{at(5)}')")
    assert {(int(id), name) for id, name in past} == {(1, "a"), (3, "gone"), (4, "it's")}
    versions = rows_of(pipeline, 'SELECT "a name" FROM items_history WHERE id = 1')
    assert sorted(versions) == [("a",), ("b",), ("c",)]


@pytest.mark.parametrize(
    ("minute", "wanted"),
    [
        (10, {1: "b", 3: "gone", 4: "it's"}),
        (25, {1: "b", BIG: "new", 3: "gone", 4: "it's"}),
        (30, {1: "c", BIG: "new", 3: "gone", 4: "it's"}),
        (59, {1: "c", 4: "it's"}),
    ],
)
def test_the_table_as_of_a_time(pipeline: Pipeline, minute: int, wanted: dict[int, str]) -> None:
    rows = rows_of(pipeline, f"SELECT * FROM items_as_of('{at(minute)}')")
    assert {int(one[0]): one[1] for one in rows} == wanted
    assert {str(one[2]) for one in rows} <= {"1.50", "2.00"}
    assert len({repr(one[3:]) for one in rows}) == 1, "by the changes and by the table the same values"


@pytest.mark.parametrize("zoned", ["+00", "+00:00", "+0000", "Z", " UTC", " Etc/GMT"])
def test_a_time_may_name_its_zone_in_any_of_duckdbs_ways(pipeline: Pipeline, zoned: str) -> None:
    moment = f"{at(10):%Y-%m-%d %H:%M:%S}{zoned}"
    assert rows_of(pipeline, f"SELECT count(*) FROM items_as_of('{moment}')") == [(3,)]


@pytest.mark.parametrize("moment", ["'2026-11-21 10:42:00'", "'2026-11-21'", "TIMESTAMP '2026-11-21 10:42:00'"])
def test_a_time_without_a_zone_is_refused_as_spark_refuses_it(pipeline: Pipeline, moment: str) -> None:
    with pytest.raises(LakeReadError, match=r"shop\.items as of 2026-11-21.* has no time zone: .*10:42:00\+00"):
        rows_of(pipeline, f"SELECT * FROM items_as_of({moment})")


def test_versions_and_changes(pipeline: Pipeline) -> None:
    found = rows_of(pipeline, 'SELECT id, "a name", minute(valid_from), minute(valid_to), gtid FROM items_history')
    assert {(int(one[0]), *one[1:]) for one in found} == {
        (1, "a", None, 10, None), (1, "b", 10, 30, "u:10"), (1, "c", 30, None, "u:30"), (BIG, "new", 20, 50, "u:20"),
        (3, "gone", None, 40, None), (4, "it's", None, None, None),
    }  # fmt: skip
    for order, wanted in ("valid_from", "abc"), ("valid_from DESC", "cba"):
        one = rows_of(pipeline, f'SELECT "a name" FROM items_history WHERE id = 1 ORDER BY {order}')
        assert "".join(name for (name,) in one) == wanted, "the first version is the oldest, as in Spark and MySQL"
    told = rows_of(pipeline, "SELECT gtid, op, changed, after.price FROM shop.items_changes")
    assert [(gtid, op, changed) for gtid, op, changed, _ in told][:3] == [
        ("u:10", "u", ["a name"]), ("u:20", "c", [name for name in list(SHAPE)[:-2] if name != "day"]),
        ("u:30", "u", ["a name", "price"]),
    ]  # fmt: skip


def test_a_tables_own_columns_and_name_come_first(pipeline: Pipeline) -> None:
    """As `moment` a parameter of ours was called."""
    file = Path(names.lake_root(pipeline), "_status.json")
    told = json.loads(file.read_text())
    told["tables"]["shop.Items_history"] = told["tables"]["shop.items"] | {"table": "Items_history"}
    file.write_text(json.dumps(told))
    shape = {"id": pl.Int64, "moment": pl.String, "Valid_from": pl.String, **{n: SHAPE[n] for n in ("_seq", "_ts")}}
    rows = [{"id": 7, "moment": "m", "Valid_from": "v", "_seq": place(5), "_ts": at(5)}]
    write_deltalake(names.lake_table(pipeline, "shop", "Items_history"), pl.DataFrame(rows, shape))
    assert rows_of(pipeline, "SELECT moment FROM items_history") == [("m",)]
    assert rows_of(pipeline, f"SELECT moment FROM items_history_as_of('{at(50)}')") == [("m",)]
    found = query(pipeline, "SELECT * FROM items_history_history")
    assert found.columns == ["id", "moment", "Valid_from", "_valid_from", "valid_to", "gtid"]
    assert list(found.rows()) == [(7, "m", "v", None, None, None)]
    assert rows_of(pipeline, "SELECT count(*) FROM _items_history") == [(6,)]


def test_what_the_past_cannot_say_is_said(pipeline: Pipeline) -> None:
    with pytest.raises(LakeReadError, match=r"history of shop\.items begins 2026-11-22T10:05"):
        rows_of(pipeline, f"SELECT * FROM items_as_of('{at(4)}')")
    append(pipeline, [change(55, "t")] * 2)  # each partition of the topic has it
    assert rows_of(pipeline, "SELECT op FROM items_changes ORDER BY ts DESC LIMIT 2") == [("t",), ("d",)]
    with pytest.raises(LakeReadError, match=r"shop\.items was truncated after that time"):
        rows_of(pipeline, f"SELECT count(*) FROM items_as_of('{at(40)}')")
    ended = rows_of(pipeline, "SELECT minute(valid_to) FROM items_history WHERE \"a name\" = 'c'")
    assert ended == [(55,)]


def test_the_past_begins_behind_the_changes_that_kafka_had_no_more(pipeline: Pipeline) -> None:
    lost = {"topic": "shop.shop.items", "partition": 0, "id": None, "begin": 3, "until": [0, 1, 20, 0, 0]}
    Path(names.lake_root(pipeline), "_lost.json").write_text(json.dumps([lost]))
    with pytest.raises(LakeReadError, match=r"history of shop\.items begins 2026-11-22T10:20"):
        rows_of(pipeline, f"SELECT * FROM items_as_of('{at(19)}')")
    assert rows_of(pipeline, f"SELECT count(*) > 0 FROM items_as_of('{at(25)}')") == [(True,)]


def test_what_speaks_against_a_table_is_told_beside_its_rows(pipeline: Pipeline) -> None:
    file = Path(names.lake_root(pipeline), "_status.json")
    found = LakeStatus.model_validate_json(file.read_text())
    stale = Stale(kind="shape", since=(0, 1, 7), ts_ms=0, reason="ALTER TABLE may have changed values")
    held = found.tables["shop.items"].model_copy(update={"stopped": "a file is missing", "stale": stale})
    file.write_text(found.model_copy(update={"tables": {"shop.items": held}}).model_dump_json())

    def told(sql: str) -> Any:
        return CliRunner().invoke(app, ["sql", str(pipeline.path), sql, "--format", "csv"])

    rows = told("SELECT id FROM items ORDER BY id")
    assert rows.stdout == "id\n1\n4\n"
    notes = ["note: shop.items: a file is missing", "note: shop.items: ALTER TABLE may have changed values"]
    assert rows.stderr.splitlines() == notes
    past = told(f"SELECT * FROM items_as_of('{at(30)}')")
    assert past.exit_code == 1
    assert "shop.items is stopped, so that it is not what its changes say: a file is missing" in past.stderr
    assert told("SELECT 1").stderr == ""
    young = found.tables["shop.items"].model_copy(update={"ahead": "its snapshot is ahead"})
    file.write_text(found.model_copy(update={"tables": {"shop.items": young}}).model_dump_json())
    assert told("SELECT id FROM items").stderr == "note: shop.items: its snapshot is ahead\n"
    past = told(f"SELECT * FROM items_as_of('{at(30)}')")
    assert past.exit_code == 1
    assert "shop.items has no past for now: its snapshot is ahead" in past.stderr


def test_what_the_jobs_note_of_the_lake_is_read_and_a_users_table_of_that_name_comes_first(pipeline: Pipeline) -> None:
    noted = pl.DataFrame({"db": ["shop"], "tbl": ["shop.items"], "kind": ["changed"]})
    write_deltalake(f"{names.lake_root(pipeline)}/_differences", noted)
    joined = "SELECT kind, count(*) FROM _differences JOIN items ON tbl = 'shop.items' GROUP BY kind"
    assert rows_of(pipeline, joined) == [("changed", 2)]
    assert rows_of(pipeline, "SELECT kind FROM _differences") == [("changed",)]
    file = Path(names.lake_root(pipeline), "_status.json")
    found = LakeStatus.model_validate_json(file.read_text())
    own = found.tables["shop.items"].model_copy(update={"table": "_Differences"})
    write_deltalake(names.lake_table(pipeline, "shop", "_Differences"), pl.DataFrame([row(7, "own")], SHAPE))
    tables = {**found.tables, "shop._Differences": own}
    file.write_text(found.model_copy(update={"tables": tables}).model_dump_json())
    assert rows_of(pipeline, "SELECT id FROM _differences") == [(7,)]
    assert rows_of(pipeline, "SELECT kind FROM __differences") == [("changed",)]


def test_a_file_that_went_away_while_it_was_read_is_one_line_with_the_next_step(pipeline: Pipeline) -> None:
    for file in Path(names.lake_table(pipeline, "shop", "items")).glob("*.parquet"):
        file.unlink()
    told = CliRunner().invoke(app, ["sql", str(pipeline.path), "SELECT * FROM items"])
    assert (told.exit_code, len(told.stderr.splitlines())) == (1, 1)
    assert "a file of the lake is not there (" in told.stderr
    assert "Run it again; where it says the same, the file is lost" in told.stderr
    assert "of the lake's own tables, whose names begin with _, docs/operations.md tells the way back" in told.stderr


def test_a_table_that_the_file_excludes_is_told_to_be_so(pipeline: Pipeline) -> None:
    without = pipeline.path.read_text().replace('["shop.*"]', '["shop.*"], exclude: ["shop.*_secret"]')
    pipeline.path.write_text(without)
    for name in ("the_secret", "shop.the_secret"):
        told = CliRunner().invoke(app, ["sql", str(pipeline.path), f"SELECT * FROM {name}"])
        assert (told.exit_code, "Did you mean" in told.stderr) == (1, False)
        assert "left out of the pipeline by" in told.stderr
        assert "tables.exclude[0], which is shop.*_secret: take that out to follow it" in told.stderr


@pytest.mark.parametrize("name", noted.COLUMNS)
def test_of_what_nothing_was_noted_yet_there_are_no_rows_and_that_is_no_error(pipeline: Pipeline, name: str) -> None:
    told = CliRunner().invoke(app, ["sql", str(pipeline.path), f"SELECT count(*) FROM {name}", "--format", "csv"])
    assert (told.exit_code, told.stdout.splitlines()[-1], told.stderr) == (0, "0", "")


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("_differences", differences.SHAPE), ("_checks", differences.CHECKS_SHAPE),
        ("_schema_changes", schema_change_rows.COLUMNS), ("_erasures", record.SHAPE),
    ],
)  # fmt: skip
def test_an_empty_table_has_the_columns_that_the_jobs_give_it(name: str, shape: str) -> None:
    """In both words: Spark's `array<struct<a:string>>` is `STRUCT(a VARCHAR)[]`."""
    words = {"VARCHAR": "string", "TIMESTAMPTZ": "timestamp", "INTEGER": "int", "BLOB": "binary"}

    def spark(kind: str) -> str:
        if kind.endswith("[]"):
            return f"array<{spark(kind[:-2])}>"
        if kind.startswith("STRUCT"):
            parts = [part.rsplit(" ", 1) for part in kind[7:-1].replace('"', "").split(", ")]
            return f"struct<{','.join(f'{part}:{spark(its)}' for part, its in parts)}>"
        return words.get(kind, kind.lower()).replace("map(varchar, bigint)", "map<string,bigint>")

    assert ", ".join(f"{column} {spark(kind)}" for column, kind in noted.COLUMNS[name].items()) == shape.replace(
        "`", ""
    )


@pytest.mark.parametrize("asked", ["SHOW TABLES", " show all tables;"])
def test_who_asks_for_the_tables_is_told_all_that_a_statement_may_name(pipeline: Pipeline, asked: str) -> None:
    told = dict(rows_of(pipeline, asked))
    assert {f"shop.items{part}" for part in ("", "_history", "_changes", "_as_of")} | {"_repairs"} <= {*told}
    assert told["shop.items"] == "the rows as they are"


def test_a_column_that_has_the_name_of_a_word_is_told_of(pipeline: Pipeline) -> None:
    asked = """SELECT DISTINCT key FROM _repairs WHERE source = 'mysql' AND {} > '2026-11-22 10:42:00+00'"""
    assert rows_of(pipeline, asked.format('"at"')) == []
    with pytest.raises(LakeReadError, match='A column that is named at is written "at"'):
        query(pipeline, asked.format("at"))
    with pytest.raises(LakeReadError, match=r"syntax error") as told:
        query(pipeline, "SELECT 'at' FORM items x")
    assert '"at"' not in str(told.value)


def test_a_column_that_the_lake_lacks_is_told_with_what_is_known_of_the_table(pipeline: Pipeline) -> None:
    file = Path(names.lake_root(pipeline), "_status.json")
    found = LakeStatus.model_validate_json(file.read_text())
    file.write_text(found.model_copy(update={"refused": "its changes wait"}).model_dump_json())
    with pytest.raises(LakeReadError, match=r'(?s)Referenced column "colour" not found.*\nnote: its changes wait$'):
        query(pipeline, "SELECT colour FROM items")


def test_no_table_has_a_past_while_somebody_elses_changes_are_there(pipeline: Pipeline) -> None:
    file = Path(names.lake_root(pipeline), "_status.json")
    found = LakeStatus.model_validate_json(file.read_text())
    file.write_text(found.model_copy(update={"refused": "somebody else changed _changes"}).model_dump_json())
    assert query(pipeline, "SELECT * FROM items").doubts[0] == "somebody else changed _changes"
    with pytest.raises(LakeReadError, match=r"shop\.items has no past for now: somebody else changed _changes"):
        list(query(pipeline, "SELECT * FROM items_as_of('2026-11-22 10:54:00+00')").rows())


def test_the_lake_of_another_pipeline_is_not_taken_for_this_one_s(pipeline: Pipeline) -> None:
    root = Path(names.lake_root(pipeline))
    root.rename(root.with_name("crm"))
    with pytest.raises(LakeReadError, match=r"crm is the lake of the pipeline shop, not of crm: correct lake\.path or"):
        query(pipeline.model_copy(update={"name": "crm"}), "SELECT * FROM items")


def test_before_the_first_change_a_table_has_no_past(pipeline: Pipeline) -> None:
    Path(names.lake_root(pipeline), names.CHANGES).rename(Path(names.lake_root(pipeline), "away"))
    with pytest.raises(LakeReadError, match=r"no changes yet: shop\.items has a past from its first one on"):
        query(pipeline, "SELECT * FROM items_history")


def test_a_time_that_the_lake_has_not_come_to_is_told(pipeline: Pipeline) -> None:
    file = Path(names.lake_root(pipeline), "_status.json")
    found = LakeStatus.model_validate_json(file.read_text())
    complete = checkpoint(ts_ms=int(at(55).timestamp() * 1000))
    file.write_text(found.model_copy(update={"checkpoint": complete}).model_dump_json())
    assert query(pipeline, "SELECT * FROM items_as_of('2026-11-22 10:54:00+00')").doubts == []
    [told] = query(pipeline, "SELECT * FROM shop.Items_as_of( '2026-11-22 10:56:00+00')").doubts
    assert told == (
        "items_as_of: the lake is complete up to 2026-11-22T10:55:00+00:00, and what came until 2026-11-22 10:56:00+00 "
        "may be missing"
    )


def test_rows_that_were_mended_from_the_source_since_are_told(pipeline: Pipeline) -> None:
    """Whatever order 4 was at 10:30, a repair read it at 10:52, and no change tells of it."""
    facts = [
        ("items", 4, "mysql", 52),
        ("items", 4, "mysql", 53),
        ("items", 1, "changes", 53),
        ("other", 7, "mysql", 53),
    ]
    repairs = [
        {"db": "shop", "tbl": f"shop.{table}", "key": json.dumps({"id": id}), "source": source, "at": at(minute)}
        for table, id, source, minute in facts
    ]
    write_deltalake(f"{names.lake_root(pipeline)}/{names.REPAIRS}", pl.DataFrame(repairs))
    [told] = query(pipeline, "SELECT * FROM items_as_of('2026-11-22 10:50:00+00')").doubts
    assert told == (
        "shop.items as of 2026-11-22 10:50:00+00: 1 row was mended from the source later. It has the mended values "
        "there, too, unless a change came in between: the lake's table _repairs says which, and since when"
    )
    assert query(pipeline, "SELECT * FROM items_as_of('2026-11-22 10:53:00+00')").doubts == []
    assert query(pipeline, "SELECT * FROM items").doubts == []


def test_statements_that_altered_the_table_since_are_told(pipeline: Pipeline) -> None:
    facts = [
        ("items", "shape", "ALTER TABLE items DROP COLUMN v", 52),
        ("items", "alter", "ALTER TABLE items ADD COLUMN v int DEFAULT 5", 53),
        ("items", "harmless", "ALTER TABLE items COMMENT = 'x'", 54),
        ("items", "shape", " Create TABLE items (id int)", 54),
        ("other", "shape", "ALTER TABLE other DROP COLUMN v", 54),
    ]
    statements = [
        {"id": f"{n}", "db": "shop", "tbl": table, "kind": kind, "statement": statement, "ts": at(minute)}
        for n, (table, kind, statement, minute) in enumerate(facts)
    ]
    write_deltalake(f"{names.lake_root(pipeline)}/{names.SCHEMA_CHANGES}", pl.DataFrame(statements))
    [told] = query(pipeline, "SELECT * FROM items_as_of('2026-11-22 10:50:00+00')").doubts
    assert told == (
        "shop.items as of 2026-11-22 10:50:00+00: 2 statements altered it later. A row that no change touched since "
        "has in altered columns what it has now, and NULL in dropped ones: the lake's table _schema_changes says which"
    )
    [told] = query(pipeline, "SELECT * FROM items_as_of('2026-11-22 10:52:30+00')").doubts
    assert "a statement altered it later" in told
    assert query(pipeline, "SELECT * FROM items_as_of('2026-11-22 10:53:00+00')").doubts == []
    assert query(pipeline, "SELECT * FROM items").doubts == []


def test_a_database_may_have_the_name_of_duckdbs_own_schema(pipeline: Pipeline) -> None:
    """`main` is one that is there."""
    file = Path(names.lake_root(pipeline), "_status.json")
    text = file.read_text()
    write_deltalake(names.lake_table(pipeline, "main", "items"), pl.DataFrame([row(7, "main's")], SHAPE))
    file.write_text(text.replace("shop.items", "main.items").replace('"db":"shop"', '"db":"main"'))
    assert rows_of(pipeline, "SELECT id FROM main.items") == rows_of(pipeline, "SELECT id FROM items") == [(7,)]


def test_the_command(pipeline: Pipeline) -> None:
    def told(*arguments: str, status: int = 0) -> str:
        found = CliRunner().invoke(app, ["sql", str(pipeline.path), *arguments])
        assert found.exit_code == status, found.output
        return found.output

    assert told('SELECT id, "a name" FROM items ORDER BY id', "--format", "csv") == "id,a name\n1,c\n4,it's\n"
    assert json.loads(told("SELECT id, raw FROM items WHERE id = 1", "--format", "json")) == {"id": "1", "raw": "00ff"}
    twice = "SELECT 1 AS id, 2 AS id, 3 AS id_1, 4 AS ID, 5 AS id"
    assert json.loads(told(twice, "--format", "json")) == {"id": 1, "id_2": 2, "id_1": 3, "ID": 4, "id_3": 5}
    pair = json.loads(told("SELECT * FROM items a JOIN items b USING (id) WHERE id = 1", "--format", "json"))
    assert (pair["a name"], pair["a name_1"]) == ("c", "c")
    assert told(twice, "--format", "csv") == "id,id,id_1,ID,id\n1,2,3,4,5\n"
    assert "it's" in told("SELECT * FROM items_history WHERE valid_to IS NULL")
    assert "[b]" in told("SELECT '[b]' AS x")
    odd = "SELECT {'a': 1.50::decimal(3,2), 't': TIMESTAMP '2026-01-02 03:04:05', 'n': NULL} AS s, "
    odd += "['x'] AS l, NULL AS n, chr(10) || 'z' AS z"
    made = '{"a": "1.50", "t": "2026-01-02 03:04:05", "n": null}'
    [found] = csv.DictReader(told(odd, "--format", "csv").splitlines(keepends=True))
    assert found == {"s": made, "l": '["x"]', "n": "", "z": "\nz"}
    assert all(text in told(odd) for text in (made, '["x"]', "NULL", "\\nz"))
    days = "SELECT MAP {DATE '2026-01-02': [MAP {1: 1.50::decimal(3,2)}]} AS m"
    assert json.loads(told(days, "--format", "json")) == {"m": {"2026-01-02": [{"1": "1.50"}]}}
    assert '{"2026-01-02": [{"1": "1.50"}]}' in told(days)
    assert "a value is outside what can be shown" in " ".join(told("SELECT INTERVAL 9999999 YEAR", status=1).split())
    wrong = told("SELECT * FROM itms", status=1)
    assert " ".join(wrong.split()).startswith("error (lake): ")
    assert "the lake has no itms. Did you mean shop.items? Its tables are shop.items." in " ".join(wrong.split())
    assert "Did you mean" not in told("SELECT * FROM nothing", status=1)
    assert "items_as_of" in told("SELECT * FROM items_as_off('2026-01-01')", status=1)
    assert "syntax error" in told("SELECT 1 FORM x y", status=1)
    assert "one query is wanted" in told("CREATE TABLE x (a int)", status=1)
    Path(names.lake_root(pipeline), "_status.json").unlink()
    without = " ".join(told("SELECT 1", status=1).split())
    assert without.startswith("error (lake): ")
    assert f"run the DAG shop.snapshot, or `headrace snapshot {pipeline.path} --compact`" in without


@pytest.fixture
def alike(tmp_path: Path) -> Pipeline:
    """Its lake has `shop.items` with the row 1 and `shop.Items` with the row 2, each of which was changed once."""
    file = tmp_path / "shop.yaml"
    file.write_text(FILE.format(lake=tmp_path / "lake"))
    made, tables = load(file, secrets=False), {}
    for name, n in (("items", 1), ("Items", 2)):
        frame = pl.DataFrame([{**row(n, "a"), "_seq": place(n)}], SHAPE)
        write_deltalake(names.lake_table(made, "shop", name), frame)
        append(made, [change(n, "c", None, wire(n, "a"), name)])
        tables[f"shop.{name}"] = TableStatus(db="shop", table=name, rows=1, changes=1, version=0)
    facts: dict[str, Any] = {"run": 1, "written_at": 0, "seconds": 1, "checkpoint": None, "changes_version": 0}
    status = LakeStatus(pipeline="shop", tables=tables, **facts)
    Path(names.lake_root(made), "_status.json").write_text(status.model_dump_json())
    return made


@pytest.mark.parametrize(("name", "id"), [("items", 1), ("Items", 2)])
def test_of_two_tables_whose_names_differ_by_case_the_one_that_is_spelled_is_read(
    alike: Pipeline, name: str, id: int
) -> None:
    other = {"items": "Items", "Items": "items"}[name]
    for sql in (f"FROM {name}", f'FROM "{name}"', f"FROM shop.{name} AS t WHERE t.\"a name\" <> '{other}'"):
        assert rows_of(alike, f"SELECT id {sql}") == [(id,)]
    for part in (f"{name}_history", f"{name}_as_of('2026-11-22 10:30:00+00')"):
        assert rows_of(alike, f"SELECT id FROM {part}") == [(id,)]
    assert rows_of(alike, f"SELECT after.id FROM shop.{name}_changes") == [(id,)]


@pytest.mark.parametrize("sql", ["FROM ITEMS", "FROM items, Items", "FROM ITEMS_history", "FROM items, Items_changes"])
def test_which_of_two_tables_of_one_name_is_meant_has_to_be_spelled(alike: Pipeline, sql: str) -> None:
    with pytest.raises(LakeReadError, match=r"^the lake has shop.Items and shop.items, which are one name .* spell"):
        rows_of(alike, sql)


@pytest.mark.parametrize("db", ["memory", "temp", "System", "pg_catalog"])
def test_a_database_may_have_a_name_that_is_duckdbs_own(pipeline: Pipeline, db: str) -> None:
    write_deltalake(names.lake_table(pipeline, db, "things"), pl.DataFrame([row(7, "seven")], SHAPE))
    changed = [{**change(55, "u", wire(7, "six"), wire(7, "seven"), "things"), "db": db, "tbl": f"{db}.things"}]
    append(pipeline, changed)
    file = Path(names.lake_root(pipeline), "_status.json")
    known = LakeStatus.model_validate_json(file.read_text())
    more = {f"{db}.things": TableStatus(db=db, table="things", rows=1, changes=1, version=0)}
    file.write_text(known.model_copy(update={"tables": {**known.tables, **more}}).model_dump_json())
    assert rows_of(pipeline, 'SELECT "a name" FROM items WHERE id = 1') == [("c",)], "of the others, too"
    assert rows_of(pipeline, "SELECT id FROM things") == rows_of(pipeline, f"SELECT id FROM _{db}.things") == [(7,)]
    assert rows_of(pipeline, f"""SELECT "a name" FROM _{db}.things_as_of('{at(52).isoformat()}')""") == [("six",)]
    assert f"_{db}.things" in {name for name, *_ in rows_of(pipeline, "SHOW TABLES")}
    with pytest.raises(LakeReadError, match=f"Did you mean _{db}.things"):
        query(pipeline, f"SELECT * FROM _{db}.thingz")


@pytest.mark.parametrize("changes", [1, 9])
def test_how_tables_stand_is_asked_behind_their_rows(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch, changes: int
) -> None:
    """A compaction that applies a snapshot says so first; whoever read the status before knows nothing of it."""
    told = iter([None, *(f"its snapshot is ahead of {n}" for n in range(changes))])
    known, last = readers.lake.read(pipeline), ["?"]
    assert known

    def read(_: Pipeline) -> LakeStatus:
        last[0] = next(told, last[0])  # type: ignore[assignment]
        table = known.tables["shop.items"].model_copy(update={"ahead": last[0]})
        return known.model_copy(update={"tables": {**known.tables, "shop.items": table}})

    monkeypatch.setattr("readers.lake.read", read)
    if changes == 1:
        answer = query(pipeline, "SELECT id FROM items")
        assert answer.doubts == ["shop.items: its snapshot is ahead of 0"]
        return
    with pytest.raises(LakeReadError, match="how its tables stand changed at each try: ask again"):
        query(pipeline, "SELECT id FROM items")


@pytest.mark.parametrize(("text", "word"), [("", "empty"), ('{"run": 1', "broken"), ("[]", "broken")])
def test_a_status_that_a_power_cut_left_empty_or_broken_is_told(pipeline: Pipeline, text: str, word: str) -> None:
    Path(names.lake_root(pipeline), "_status.json").write_text(text)
    with pytest.raises(LakeReadError, match=rf"^the file _status\.json of the lake is {word}, .* Remove it: the next"):
        query(pipeline, "SELECT 1")


@pytest.mark.parametrize("file", ["_evolution.json", "_lost.json", "_history.json"])
@pytest.mark.parametrize(("left", "word"), [(b"", "empty"), (b'{"bre', "broken"), (b"\x00\xff", "broken")])
def test_a_small_file_that_the_past_needs_is_told_with_its_way_back(
    pipeline: Pipeline, file: str, left: bytes, word: str
) -> None:
    path = Path(names.lake_root(pipeline), file)
    path.write_bytes(left)
    assert rows_of(pipeline, "SELECT 1 FROM items WHERE id = 1") == [(1,)], "the table itself needs none of them"
    with pytest.raises(
        LakeReadError, match=rf"^the file {path} is {word}, .* Put it back from a copy\. Without one, move"
    ):
        query(pipeline, "SELECT * FROM items_history")
