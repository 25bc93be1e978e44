"""A number's text as both sides hash it, where the lake's column is still of the type of before, or of a wider one."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from contract.schema import Column
from spark.proof.checksum import lake_texts

LONG = "123456789012345678901234567890123456"


@pytest.mark.parametrize(
    ("kind", "value", "digits", "scale", "text"),
    [
        ("decimal(10,2)", "1.5", 10, 2, "1.50"),
        ("decimal(10,2)", "1.5", 12, 4, "1.5000"),
        ("decimal(12,4)", "1.5", 10, 2, "1.50"),
        ("decimal(12,4)", "-0.5", 10, 2, "-0.50"),
        ("decimal(12,4)", "0", 10, 2, "0.00"),
        ("decimal(12,4)", "1.2345", 10, 2, "1.2345"),  # another value, whatever it is rounded to
        ("decimal(38,2)", f"{LONG}.10", 38, 10, f"{LONG}.1000000000"),
        ("decimal(38,30)", "0.1", 38, 2, "0.10"),
        ("bigint", "100", 22, 2, "100.00"),
        ("bigint", "100", 20, 0, "100"),
        ("decimal(22,2)", "100", 20, 0, "100"),
        ("decimal(22,2)", "0", 20, 0, "0"),
        ("decimal(20,0)", "0", 30, 10, "0.0000000000"),
    ],
)  # fmt: skip
def test_it_is_that_of_the_sources_type(
    spark: SparkSession, kind: str, value: str, digits: int, scale: int, text: str
) -> None:
    column = Column(name="price", type="decimal", precision=digits, scale=scale)
    rows = spark.sql(f"SELECT cast('{value}' AS {kind}) AS price UNION ALL SELECT cast(NULL AS {kind})")
    found = rows.selectExpr(*[f"{one} AS text" for one in lake_texts([column], ["price"])]).collect()
    assert {row["text"] for row in found} == {f"={text}", "~"}
