"""What the session of every job sets, seen in the files that it writes."""

from __future__ import annotations

from pathlib import Path

from pyarrow import parquet
from pyspark.sql import SparkSession


def test_files_have_row_groups_that_eight_writers_can_hold_in_memory(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(3_000_000, numPartitions=1).selectExpr("rand() AS r").write.parquet(f"file://{tmp_path}/some")
    (file,) = (tmp_path / "some").glob("*.parquet")
    written = parquet.ParquetFile(file).metadata
    groups = [written.row_group(at) for at in range(written.num_row_groups)]
    assert len(groups) > 1
    assert max(group.total_byte_size for group in groups) < 20_000_000
    assert {group.column(0).compression for group in groups} == {"ZSTD"}
