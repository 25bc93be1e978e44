"""A row's hash: of two rows that differ it is another one, whatever their texts have."""

from __future__ import annotations

import hashlib

import pytest
from pyspark.sql import SparkSession

from contract.schema import Column
from spark.proof.checksum import row_hash

BETWEEN = "\u001f"  # what stands between two texts of a row
SHAPES = [
    [Column(name=name, type=kind, length=20, charset="utf8mb4") for name in ("a", "b")] for kind in ("char", "varchar")
]


@pytest.mark.parametrize("columns", SHAPES, ids=["char", "varchar"])
def test_a_text_that_has_a_separator_is_not_taken_for_two(spark: SparkSession, columns: list[Column]) -> None:
    rows = [(f"a{BETWEEN}=b", "c"), ("a", f"b{BETWEEN}=c"), (f"a{BETWEEN}1=b", "c"), ("a", f"1=b{BETWEEN}=c")]
    rows += [("", None), (None, ""), (f"{BETWEEN}~", None), (None, f"{BETWEEN}~"), ("NULL", None), (None, None)]
    found = spark.createDataFrame(rows, "a string, b string").select(row_hash(columns, ["a", "b"]))
    assert len({row[0] for row in found.collect()}) == len(rows)


def test_its_size_is_that_of_its_bytes_and_the_hash_as_it_always_was(spark: SparkSession) -> None:
    frame = spark.createDataFrame([("größe 🌍", 7)], "a string, n int")
    columns = [SHAPES[0][0], Column(name="n", type="int")]
    [row] = frame.select(row_hash(columns, ["a", "n"])).collect()
    line = f"12=größe 🌍{BETWEEN}=7".encode()
    assert len("größe 🌍".encode()) == 12
    assert row[0] == int(hashlib.sha256(line).hexdigest()[:12], 16)
