"""What the jobs make of the rules of `columns`."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from contract.pipeline import load
from contract.schema import Column, TableSchema
from spark.errors import LakeError
from spark.source.choice import shown_of
from spark.source.row_texts import jdbc_options, row_json
from spark.source.source import SILENT, session_of

FILE = """\
format: 1
name: shop
source: {host: h, user: u, password: "${TEST_PASSWORD}", server_id: 3}
tables: {include: ["shop.*"]}
columns:
  secret: ${TEST_SECRET}
  exclude: ["shop.t.note", "shop.u.id"]
  masks: [{columns: ["*.*.email"], mask: hash}]
kafka: {bootstrap: "h:9092"}
lake: {path: lake}
"""


def table(name: str) -> TableSchema:
    columns = [Column(name=column, type="varchar", length=9, charset="utf8mb4") for column in ("id", "email", "note")]
    return TableSchema(db="shop", table=name, columns=tuple(columns), key=("id",))


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TEST_PASSWORD", "x")
    monkeypatch.setenv("TEST_SECRET", "a salt")
    made = tmp_path / "shop.yaml"
    made.write_text(FILE)
    return made


def test_a_rule_that_cannot_hold_ends_a_job_with_its_place(path: Path) -> None:
    with pytest.raises(LakeError, match=r"shop\.yaml:7: columns\.exclude\[1\]: it takes out shop\.u\.id"):
        shown_of(load(path), table("u"))


def test_no_statement_names_a_column_that_is_taken_out_or_holds_the_secret(path: Path, spark: SparkSession) -> None:
    pipeline = load(path)
    statement = row_json(shown_of(pipeline, table("t")), "mysql")
    assert "`note`" not in statement
    assert "sha2(concat(@headrace_outer" in statement
    secret = session_of(pipeline)["@headrace_inner"]
    assert secret not in statement
    assert secret in jdbc_options(spark, pipeline)["url"], "which Spark does not show"


def test_the_server_sends_its_rows_one_by_one(path: Path, spark: SparkSession) -> None:
    """By any other number MySQL's driver holds a chunk's whole result in memory, and with it the largest rows."""
    assert jdbc_options(spark, load(path))["fetchsize"] == "-2147483648"


def test_a_server_that_stands_still_is_not_waited_for_without_end(path: Path, spark: SparkSession) -> None:
    assert f"&socketTimeout={SILENT * 1000}&" in jdbc_options(spark, load(path))["url"]
