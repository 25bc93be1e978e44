"""The suite really runs (GX can end a process in silence), says what is wrong, and writes its pages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from contract.pipeline import Pipeline, load
from contract.pipeline_keys import KeyRule
from contract.schema import Column, TableSchema
from quality import checks, folder, suite
from quality.operands import UntranslatableError
from quality.report import describe, differences, unjudged
from quality.summary import lines

SCHEMA = TableSchema(
    db="shop",
    table="orders",
    version=1,
    key=("shop_id", "id"),
    columns=(
        Column(name="shop_id", type="int", nullable=False),
        Column(name="id", type="bigint", nullable=False),
        Column(name="state", type="enum", members=("new", "paid")),
    ),
)
ROWS = [(1, 1, "new"), (1, 2, "paid"), (2, 1, None), (2, 2, "")]


@pytest.fixture
def pipeline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pipeline:
    file = tmp_path / "shop.yaml"
    file.write_text(
        "format: 1\nname: shop\nsource: {host: localhost, user: u, password_file: p, server_id: 7}\n"
        "tables: {include: ['shop.*']}\nkafka: {bootstrap: 'localhost:9092'}\n"
        f"lake: {{path: {tmp_path}/lake}}\n"
    )
    monkeypatch.setenv("HEADRACE_SUITES", str(tmp_path / "suites"))
    return load(file)


def check(spark: SparkSession, pipeline: Pipeline, rows: list[tuple], source_count: int, **more: Any) -> dict:
    frame = spark.createDataFrame(rows, "shop_id bigint, id bigint, state string")
    results = {"shop.orders": {"source_count": source_count, "equal": True}}
    given: dict[str, Any] = {"schemas": {"shop.orders": SCHEMA}, "frames": {"shop.orders": frame}}
    return suite.run(spark, pipeline, results, **given, **more)


def test_a_good_table_passes_and_leaves_pages_and_a_result(spark: SparkSession, pipeline: Pipeline) -> None:
    result = check(spark, pipeline, ROWS, 4)
    assert result["ok"] is True
    table = result["tables"]["shop.orders"]
    assert (table["ok"], table["evaluated"], table["failed"], table["untranslated"]) == (True, 9, [], {})
    assert {one["expectation"] for one in table["evaluations"]} > {"expect_column_values_to_be_of_type"}
    assert all(one["ok"] for one in table["evaluations"])
    assert "shop.orders" in (Path(result["docs"]) / "index.html").read_text()
    assert folder.read_last(pipeline)["expectations"]["ok"] is True


def test_a_column_that_was_widened_is_judged_in_the_type_of_before_until_a_row_changes(
    spark: SparkSession, pipeline: Pipeline
) -> None:
    wide = SCHEMA.columns[1].model_copy(update={"unsigned": True})
    schema = SCHEMA.model_copy(update={"columns": (SCHEMA.columns[0], wide, SCHEMA.columns[2])})
    results = {"shop.orders": {"source_count": 4, "equal": True}}
    for kind, ok in (("bigint", True), ("decimal(20,0)", True), ("double", False)):
        frame = spark.createDataFrame(ROWS, "shop_id bigint, id bigint, state string")
        frame = frame.withColumn("id", frame["id"].cast(kind))
        given: dict[str, Any] = {"schemas": {"shop.orders": schema}, "frames": {"shop.orders": frame}}
        assert suite.run(spark, pipeline, results, **given)["ok"] is ok, kind


def test_a_column_whose_name_changed_its_letters_case_is_the_lakes_of_before(
    spark: SparkSession, pipeline: Pipeline
) -> None:
    columns = tuple(column.model_copy(update={"name": column.name.upper()}) for column in SCHEMA.columns)
    schema = SCHEMA.model_copy(update={"columns": columns, "key": ("SHOP_ID", "ID")})
    results = {"shop.orders": {"source_count": 4, "equal": True}}
    frame = spark.createDataFrame(ROWS, "shop_id bigint, id bigint, state string")
    given: dict[str, Any] = {"schemas": {"shop.orders": schema}, "frames": {"shop.orders": frame}}
    clauses = {"shop.orders": {"some": "(`ID` > 0)"}}
    table = suite.run(spark, pipeline, results, constraints=clauses, **given)["tables"]["shop.orders"]
    assert (table["ok"], table["evaluated"], table["failed"]) == (True, 10, [])


def test_a_suite_of_which_a_table_was_not_judged_is_not_well_and_not_wrong(
    spark: SparkSession, pipeline: Pipeline, tmp_path: Path
) -> None:
    own(tmp_path, "shop.items.json", "{")
    frame = spark.createDataFrame(ROWS, "shop_id bigint, id bigint, state string")
    results: dict[str, Any] = {name: {"source_count": 4, "equal": True} for name in ("shop.orders", "shop.items")}
    given: dict[str, Any] = {"schemas": {"shop.orders": SCHEMA}, "frames": {"shop.orders": frame}}
    found = suite.run(spark, pipeline, results, **given, unjudged={"shop.items": {"its rows": "altered"}})
    assert (found["ok"], found["tables"]["shop.items"]["ok"], found["tables"]["shop.orders"]["ok"]) == (
        None,
        None,
        True,
    )
    assert unjudged({"expectations": found}) == {"shop.items": "its rows: altered"}
    assert (found["files"], found["unread"]) == ([], [str(tmp_path / "suites" / "shop" / "shop.items.json")])
    later = suite.run(spark, pipeline, results, **given, later=lambda name: {"its rows": "made anew"})["tables"]
    assert (later["shop.orders"]["ok"], later["shop.orders"]["unjudged"]) == (None, {"its rows": "made anew"})
    results["shop.orders"]["source_count"] = 5
    assert suite.run(spark, pipeline, results, **given, unjudged={"shop.items": {"its rows": "altered"}})["ok"] is False


def test_a_suite_file_of_a_table_that_is_checked_no_more_is_warned_of(
    spark: SparkSession, pipeline: Pipeline, tmp_path: Path
) -> None:
    """It was renamed in the source, and the lake keeps the one of before."""
    own(tmp_path, "shop.buys.json", '{"expectations": []}')
    result = check(spark, pipeline, ROWS, 4, lake=["shop.orders", "shop.buys"])
    assert (result["ok"], result["files"]) == (True, [])
    told = [*lines({"job": "verify", "pipeline": "shop", "ok": True, "tables": {}, "expectations": result})][-1]
    assert told.startswith("warning: ")
    assert "shop.buys.json was not run: shop.buys is in the lake, and no table of the source any more" in told


def test_a_suite_file_of_a_table_without_rows_is_no_stray_and_says_so(
    spark: SparkSession, pipeline: Pipeline, tmp_path: Path
) -> None:
    only = pipeline.model_copy(update={"keys": (KeyRule(tables=("shop.log",), changes_only=True),)})
    own(tmp_path, "shop.log.json", '{"expectations": []}')
    for lake in (["shop.orders", "shop.log"], ["shop.orders"]):
        result = check(spark, only, ROWS, 4, lake=lake)
        assert (result["ok"], result["files"]) == (True, [])
        [told] = result["unused"]
        assert "the pipeline file keeps the changes alone of shop.log (keys, changes_only), so there are no" in told
        assert "no table of the source" not in told


def test_a_check_of_some_tables_keeps_what_is_known_of_the_others(
    spark: SparkSession, pipeline: Pipeline, tmp_path: Path
) -> None:
    files = [str(tmp_path / "suites" / "shop" / f"shop.{name}") for name in ("items.py", "orders.json", "buys.json")]
    for name in ("items.py", "orders.json"):
        own(tmp_path, f"shop.{name}", '{"expectations": []}')
    wrong = {"at": "2026-01-01", "tables": {"shop.items": {"equal": False, "source_count": 2, "lake_count": 1}}}
    told = [f"{files[0]}:1: KeyError: 'id'", f"{files[1]}: cannot be read", f"{files[2]}: was removed since"]
    folder.write_last(pipeline, {**wrong, "expectations": {"tables": {"shop.items": {"ok": True}}, "files": told}})
    rows = spark.createDataFrame(ROWS, "shop_id bigint, id bigint, state string")
    given: dict[str, Any] = {"schemas": {"shop.orders": SCHEMA}, "frames": {"shop.orders": rows}}
    given |= {"some": True, "lake": [f"shop.{name}" for name in ("orders", "items", "buys")]}
    found = suite.run(spark, pipeline, {"shop.orders": {"source_count": 4, "equal": True}}, **given)
    assert found["files"] == [], "a report is of what the check itself looked at"
    kept = folder.read_last(pipeline)
    assert kept is not None
    assert differences(kept) == {
        "shop.items": "rows 2 in the source, 1 in the lake",
        "suite files": f"{files[0]}:1: KeyError: 'id'",
    }
    assert {*kept["expectations"]["tables"]} == {"shop.items", "shop.orders"}


def test_each_kind_of_fault_is_named(spark: SparkSession, pipeline: Pipeline) -> None:
    result = check(spark, pipeline, [*ROWS, (1, 1, "lost"), (None, 3, "new")], 4)
    assert result["ok"] is False
    failed = {one["expectation"]: one for one in result["tables"]["shop.orders"]["failed"]}
    assert failed["expect_table_row_count_to_equal"]["observed"] == 6
    assert failed["expect_table_row_count_to_equal"]["expected"] == 4
    assert failed["expect_column_values_to_not_be_null"]["column"] == "shop_id"
    assert failed["expect_compound_columns_to_be_unique"]["column"] == "shop_id, id"
    assert failed["expect_column_values_to_be_in_set"]["observed"] == "1 rows that break it"
    pages = list((Path(result["docs"]) / "validations").rglob("*.html"))
    assert len(pages) == 1
    assert "lost" in pages[0].read_text()  # the pages, which stay here, show what broke it
    text = describe({"expectations": result})
    assert text.startswith("shop.orders: ")
    assert "expect_table_row_count_to_equal: found 6, wanted 4" in text
    assert "lost" not in text  # no values of rows in what may be sent anywhere


def test_a_column_that_is_missing_is_a_failure_not_an_accident(spark: SparkSession, pipeline: Pipeline) -> None:
    frame = spark.createDataFrame([(1, 1)], "shop_id bigint, id bigint")
    results = {"shop.orders": {"source_count": 1}}
    result = suite.run(spark, pipeline, results, schemas={"shop.orders": SCHEMA}, frames={"shop.orders": frame})
    assert result["ok"] is False
    [failed] = result["tables"]["shop.orders"]["failed"]
    assert failed["expectation"] == "expect_table_columns_to_match_set"
    lacking = ", ".join(sorted({column.name for column in SCHEMA.columns} - {"shop_id", "id"}))
    told = differences({"expectations": result})["shop.orders"]
    assert told == f"expect_table_columns_to_match_set: found no column {lacking}"


def test_what_cannot_be_read_is_told_as_not_judged(spark: SparkSession, pipeline: Pipeline, tmp_path: Path) -> None:
    frame = spark.createDataFrame([(1, 1, "new")], "shop_id bigint, id bigint, state string")
    frame.write.parquet(str(tmp_path / "rows"))
    read = spark.read.parquet(str(tmp_path / "rows"))
    for file in (tmp_path / "rows").glob("*.parquet"):
        file.unlink()
    result = suite.run(
        spark, pipeline, {"shop.orders": {"source_count": 1}}, schemas={"shop.orders": SCHEMA},
        frames={"shop.orders": read},
    )  # fmt: skip
    assert result["ok"] is False
    told = differences({"expectations": result})["shop.orders"]
    assert "expect_table_row_count_to_equal could not be judged: " in told
    assert "An error occurred while calling" not in told
    assert ".parquet" in told


ODD = TableSchema(
    db="shop",
    table="odd",
    version=1,
    key=("id", "a.b"),
    columns=(
        Column(name="id", type="int", nullable=False),
        Column(name="a.b", type="varchar", length=3, nullable=False),
        Column(name="a`b", type="enum", members=("x",)),
        Column(name="*", type="int", nullable=False),
    ),
)


def test_a_column_that_gx_cannot_name_fails_no_table(spark: SparkSession, pipeline: Pipeline) -> None:
    def frame_of(rows: list[tuple[Any, ...]]) -> DataFrame:
        return spark.createDataFrame(rows, "id bigint, `a.b` string, `a``b` string, `*` bigint")

    frame = frame_of([(1, "a", "x", 1)])
    given: dict[str, Any] = {"schemas": {"shop.odd": ODD}, "constraints": {"shop.odd": {"few": "`a.b` < 'b'"}}}
    found = suite.run(spark, pipeline, {"shop.odd": {"frame_rows": 1}}, frames={"shop.odd": frame}, **given)
    table = found["tables"]["shop.odd"]
    assert table["failed"] == []
    assert set(table["untranslated"]) == {"CHECK few", "column a`b", "column *", "the key"}
    wrong = suite.run(spark, pipeline, {"shop.odd": {"frame_rows": 2}}, frames={"shop.odd": frame.drop("*")}, **given)
    told = {one["expectation"] for one in wrong["tables"]["shop.odd"]["failed"]}
    assert told == {"expect_table_row_count_to_equal", "expect_table_columns_to_match_set"}
    rows = [(1, "long", "x", 1), (1, "long", "x", 1), (2, None, "x", 1)]
    broken = suite.run(spark, pipeline, {"shop.odd": {"frame_rows": 3}}, frames={"shop.odd": frame_of(rows)}, **given)
    told = {(one["expectation"], one["column"]) for one in broken["tables"]["shop.odd"]["failed"]}
    assert told == {
        ("expect_column_values_to_not_be_null", "`a.b`"),
        ("expect_column_value_lengths_to_be_between", "`a.b`"),
    }  # fmt: skip


ITEMS = TableSchema(
    db="shop",
    table="items",
    version=1,
    key=("id",),
    columns=(
        Column(name="id", type="int", nullable=False),
        Column(name="code", type="varchar", length=3),
        Column(name="price", type="decimal", precision=10, scale=2),
        Column(name="sold", type="date"),
        Column(name="later", type="int"),
    ),
)
CLAUSES = {
    "cheap": "((`price` >= 0) and (`price` < 100.5))",
    "recent": "(`sold` > _utf8mb4\\'2020-01-01\\')",
    "coded": "(char_length(`code`) between 2 and 3)",
    "named": "(`code` in (_utf8mb4\\'ab\\',_utf8mb4\\'cd\\'))",
    "odd": "((`id` % 2) = 1)",
}


def items(spark: SparkSession, pipeline: Pipeline, rows: str) -> dict:
    """The table lacks the column `later`, which no row has written to."""
    frame = spark.sql(f"SELECT * FROM VALUES {rows} AS t(id, code, price, sold)")
    frame = frame.selectExpr(
        "cast(id as bigint)", "code", "cast(price as decimal(10,2)) price", "cast(sold as date) sold"
    )
    results = {"shop.items": {"frame_rows": None, "equal": True}}
    found = suite.run(
        spark, pipeline, results, schemas={"shop.items": ITEMS}, frames={"shop.items": frame},
        constraints={"shop.items": CLAUSES},
    )  # fmt: skip
    return found["tables"]["shop.items"]


def test_lengths_types_and_constraints_follow_from_the_servers_own_schema(
    spark: SparkSession, pipeline: Pipeline
) -> None:
    good = items(spark, pipeline, "(1, 'abc', 1.5, '2024-01-01'), (2, 'größ', null, null), (3, null, 0, '2021-01-01')")
    assert {(one["expectation"], one["column"]) for one in good["failed"]} == {
        ("expect_column_value_lengths_to_be_between", "code"), ("CHECK coded", None),
    }  # fmt: skip
    assert set(good["untranslated"]) == {"CHECK named", "CHECK odd"}, "a collation may take ab for AB"
    bad = items(spark, pipeline, "(1, 'abc', 100.5, '2019-01-01'), (2, 'x', -1, null)")
    assert {one["expectation"] for one in bad["failed"]} == {"CHECK cheap", "CHECK coded", "CHECK recent"}
    assert "2019" not in json.dumps(bad), "no value of a row in what may be sent anywhere"


@pytest.mark.parametrize(
    ("clause", "told"),
    [
        ("`state` = 'new'", "is enum"),
        ("`id` = abs(1)", "abs is not translated"),
        ("`id` = '2'", "by a collation"),
        ("`gone` > 1", "the lake does not have"),
        ("json_valid(`id`)", "json_valid"),
    ],
)
def test_what_may_mean_another_thing_in_spark_is_not_translated(clause: str, told: str) -> None:
    with pytest.raises(UntranslatableError, match=told):
        checks.translated(clause, SCHEMA)


def own(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / "suites" / "shop" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_hand_written_suites_run_too(spark: SparkSession, pipeline: Pipeline, tmp_path: Path) -> None:
    entry = {"type": "expect_column_values_to_be_between", "kwargs": {"column": "id", "max_value": 1}}
    own(tmp_path, "shop.orders.json", json.dumps({"expectations": [entry]}))
    own(
        tmp_path,
        "shop.orders.py",
        "import great_expectations.expectations as gxe\n"
        "def expectations(schema):\n"
        "    return [gxe.ExpectColumnMaxToBeBetween(column=schema.key[0], max_value=1)]\n",
    )
    result = check(spark, pipeline, ROWS, 4)["tables"]["shop.orders"]
    assert result["evaluated"] == 11
    failed = {one["expectation"] for one in result["failed"]}
    assert failed == {"expect_column_values_to_be_between", "expect_column_max_to_be_between"}


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("shop.orders.json", "{", "cannot be read as a suite"),
        ("shop.orders.json", '{"expectations": [{"type": "expect_luck"}]}', "expect_luck"),
        ("shop.orders.json", '{"expectations": ["expect_column_to_exist"]}', "cannot be read as a suite ("),
        ("shop.orders.json", '{"expectations": {"type": "expect_column_to_exist"}}', "cannot be read as a suite ("),
        ("shop.orders.json", '{"expectations": [null]}', "cannot be read as a suite ("),
        ("shop.orders.json", "[null]", "cannot be read as a suite ("),
        (
            "shop.orders.json",
            '{"expectations": [{"type": "expect_table_row_count_to_equal", "kwargs": {"value": {"$PARAMETER": "x"}}}]}',
            "expect_table_row_count_to_equal cannot be run: No value found for $PARAMETER x",
        ),
        ("shop.orders.py", "x = 1", "no function expectations"),
        ("shop.orders.py", "import sys\nsys.exit()", "shop.orders.py:2: SystemExit"),
        ("shop.orders.py", "def expectations(schema):\n    return {}['name']", "shop.orders.py:2: KeyError: 'name'"),
        ("shop.orders.py", "{}['name']", "shop.orders.py:1: KeyError: 'name'"),
        (
            "shop.orders.py",
            "def expectations(schema): return [schema.column('nope')]",
            "shop.orders has no column nope",
        ),
        ("shop.orders.py", "def expectations(:", "SyntaxError: "),
        ("shop.orders.py", "def expectations(schema): return [1]", "no GX expectation"),
        ("shop.order.json", '{"expectations": []}', "is no table of pipeline shop"),
        (
            "shop.orders.json",
            '{"expectations": [{"type": "expect_column_values_to_be_null", "kwargs": {"column": "stat"}}]}',
            "expect_column_values_to_be_null: shop.orders has no column stat, did you mean state? Its columns are",
        ),
        (
            "shop.orders.py",
            "import great_expectations.expectations as gxe\n"
            "def expectations(schema):\n"
            "    return [gxe.ExpectCompoundColumnsToBeUnique(column_list=['id', 'zz'])]\n",
            "shop.orders has no column zz. Its columns are shop_id, id, state",
        ),
    ],
)
def test_a_wrong_suite_file_is_named(
    spark: SparkSession, pipeline: Pipeline, tmp_path: Path, name: str, text: str, told: str
) -> None:
    own(tmp_path, name, text)
    result = check(spark, pipeline, ROWS, 4)
    assert result["ok"] is False
    assert result["tables"]["shop.orders"]["ok"] is True  # the file's fault is not the table's
    fault = differences({"expectations": result})["suite files"]
    assert name in fault
    assert told in fault


def test_what_great_expectations_cannot_run_keeps_no_other_of_the_users_from_it(
    spark: SparkSession, pipeline: Pipeline, tmp_path: Path
) -> None:
    unknown = {"type": "expect_table_row_count_to_equal", "kwargs": {"value": {"$PARAMETER": "x"}}}
    entry = {"type": "expect_column_values_to_be_between", "kwargs": {"column": "id", "max_value": 1}}
    own(tmp_path, "shop.orders.json", json.dumps({"expectations": [unknown, entry]}))
    result = check(spark, pipeline, ROWS, 4)
    assert len(result["files"]) == 1
    table = result["tables"]["shop.orders"]
    assert table["evaluated"] == 10
    assert {one["expectation"] for one in table["failed"]} == {"expect_column_values_to_be_between"}
    assert len(list((Path(result["docs"]) / "validations").rglob("*.html"))) == 1
