"""CHECK constraints in Spark SQL: what means the same is translated, and nothing else."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from contract.schema import Column, TableSchema
from quality import checks
from quality.operands import UntranslatableError

COLUMNS = (
    Column(name="id", type="int", nullable=False),
    Column(name="a", type="int"),
    Column(name="b", type="bigint"),
    Column(name="u", type="int", unsigned=True),
    Column(name="n", type="decimal", precision=10, scale=2),
    Column(name="long", type="decimal", precision=38, scale=0),
    Column(name="longer", type="decimal", precision=40, scale=0),
    Column(name="y", type="year"),
    Column(name="d", type="date"),
    Column(name="e", type="date"),
    Column(name="at", type="datetime"),
    Column(name="name", type="varchar", length=20),
    Column(name="state", type="enum", members=("new",)),
)
SCHEMA = TableSchema(db="shop", table="t", version=1, key=("id",), columns=COLUMNS)
LAKE = (
    "id bigint, a bigint, b bigint, u bigint, n decimal(10,2), long decimal(38,0), y bigint, d date, e date, "
    "at timestamp_ntz, name string"
)
SAID = {
    # As a server has it, of a row that fulfils it and one that breaks it.
    "((((`a` is null) + (`b` is null)) = 1))": ("a = 1", "a = 1, b = 1"),
    "(not((`a` <=> `b`)))": ("a = 1", "a = 1, b = 1"),
    "!(`a` <=> `b`)": ("a = 1", "a = 1, b = 1"),
    "(`a` or `b`)": ("a = 0, b = 2", "a = 0, b = 0"),
    "(not `a`)": ("a = 0", "a = 3"),
    "`a`": ("a = 3", "a = 0"),
    "(`a` is true)": ("a = 2", "a = null"),
    "((`a` = 1) = (`b` = 1))": ("a = 2, b = 2", "a = 1, b = 2"),
    "`a` = `b` in (0,1)": ("a = 1, b = 0", "a = 2, b = 2"),
    "`a` is null = 1": ("a = null", "a = 1"),
    "(`a` in (true,false))": ("a = 1", "a = 2"),
    "(`b` + 1 > -(`a`))": ("b = 9223372036854775807, a = 1", "b = -9223372036854775808, a = 1"),
    "(`u` - 5 >= -10)": ("u = 0", "u = -6"),
    "(`n` not between 0 and 99.5)": ("n = 99.51", "n = 99.5"),
    "`y` >= 2000": ("y = 2000", "y = 1999"),
    "((`d` is null) or (`d` <= `at`))": ("d = null", "d = '2024-01-02', at = '2024-01-01 23:59:59'"),
    "(`d` between _utf8mb4\\'2024-01-01\\' and `e`)": (
        "d = '2024-01-01', e = '2024-01-01'",
        "d = '2023-12-31', e = null",
    ),
    "`at` < '2024-01-01 10:00:00'": ("at = '2024-01-01'", "at = '2024-01-01 10:00:00'"),
    "(`name` is not null and char_length(`name`) > 2)": ("name = 'größ'", "name = 'ab'"),
}


def row(spark: SparkSession, facts: str) -> str:
    """A view of one row, NULL where nothing is said."""
    told = dict(one.split(" = ") for one in facts.split(", "))
    kinds = dict(one.strip().split(" ") for one in LAKE.split(", "))
    values = ", ".join(f"cast({told.get(name, 'null')} as {kind}) as {name}" for name, kind in kinds.items())
    spark.sql(f"SELECT {values}").createOrReplaceTempView("one_row")
    return "one_row"


def test_a_constraint_is_broken_by_the_rows_that_the_server_would_refuse(spark: SparkSession) -> None:
    found = {}
    for clause, (good, bad) in SAID.items():
        condition = checks.translated(clause, SCHEMA)
        broken = [
            spark.sql(f"SELECT 1 FROM {row(spark, facts)} WHERE NOT ({condition})").count() for facts in (good, bad)
        ]
        found[clause] = broken
    assert found == {clause: [0, 1] for clause in SAID}


@pytest.mark.parametrize(
    ("clause", "told"),
    [
        ("(`d` > 20200101)", "a date is compared with what is none"),
        ("(`at` + 0 > 5)", "is taken for a number"),
        ("(not `d`)", "is taken for a number"),
        ("(`d` > '2020-02-30')", "by a collation"),
        ("(`d` > '2020-01-01 10:00:00')", "a text that has a time"),
        ("('2020-01-01' < '2021-01-01')", "by a collation"),
        ("(`d` in ('2020-01-01',`at`))", "moments of several kinds"),
        ("('2020-01-01' between `d` and `e`)", "moments of several kinds"),
        ("(`d` is not null)", "zero or partial date"),
        ("(not((`d` is null)))", "zero or partial date"),
        ("((`d` is null) = (`e` is null))", "zero or partial date"),
        ("(((`d` is null) + (`a` is null)) = 1)", "zero or partial date"),
        ("(`d` <=> `e`)", "zero or partial date"),
        ("((`d` > `e`) is true)", "zero or partial date"),
        ("(`y` > 70)", "no year of four digits"),
        ("(`y` = `a`)", "no year of four digits"),
        ("(`longer` > 1)", "is decimal"),
        ("((`long` + 1) > 0)", "more than 38 digits"),
        ("(`long` > 0.5)", "more than 38 digits"),
        ("(`a` > 1e3)", "1e3.* is not translated"),
        ("(`a` > `name`)", "by a collation"),
        ("(`name` like 'a')", "is not translated"),
        ("(`name`)", "is taken for a number"),
        ("(`state` = 1)", "is enum"),
        ("((`a` / 2) > 1)", "is not translated"),
        ("((`a` DIV 2) > 1)", "div is not translated"),
        ("(`a` || `b`)", "is not translated"),
        ("(`a` in (1,NULL))", "null is not translated"),
        ("(`a` xor `b`)", "xor is not translated"),
        ("(`a` > 1) and", "ends in the middle"),
        ("(`a` > (1)", "ends in the middle"),
        ("(char_length(`a`) > 1)", "which is no text"),
        ("(`a` is unknown)", "NULL, TRUE and FALSE alone"),
    ],
)
def test_what_may_mean_another_thing_in_spark_is_told(clause: str, told: str) -> None:
    with pytest.raises(UntranslatableError, match=told):
        checks.translated(clause, SCHEMA)


def test_where_zero_dates_have_a_place_of_their_own_null_may_be_asked_for() -> None:
    kept = SCHEMA.model_copy(update={"columns": tuple(c.model_copy(update={"unfit": "fail"}) for c in COLUMNS)})
    assert checks.translated("(`d` is not null)", kept) == "(`d` is not null)"
    texts = SCHEMA.model_copy(update={"columns": tuple(c.model_copy(update={"unfit": "string"}) for c in COLUMNS)})
    with pytest.raises(UntranslatableError, match="is a text in the lake"):
        checks.translated("(`d` is null)", texts)
