"""A file of the lake that goes away while a job reads it: what failed and what to do, no pages of where in Spark."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from contract import spark_process
from tests.spark.sessions import PIPELINE

ROOT = Path(__file__).parents[2]
JOB = """\
from pathlib import Path
from delta.tables import DeltaTable
from spark import job
def work(spark, pipeline, tables):
    path = pipeline.lake.path + "/gone"
    spark.range(9).write.format("delta").save(path)
    rows = spark.read.format("delta").load(path)
    for file in Path(path).glob("*.parquet"):
        file.unlink()
    try:
        merge = DeltaTable.forPath(spark, path).alias("t").merge(spark.range(5).alias("s"), "t.id = s.id")
        merge.whenMatchedDelete().execute()
    except Exception:
        print("merged not")
    return {"sums": rows.selectExpr("sum(id)").collect()}
job.run("compact", work)
"""


def test_it_is_told_in_a_few_lines_with_the_next_step(tmp_path: Path) -> None:
    file, job = tmp_path / "shop.yaml", tmp_path / "job.py"
    file.write_text(PIPELINE.format(lake=tmp_path))
    job.write_text(JOB)
    command, variables = spark_process.driver("compact", "local[1]", "--pipeline", str(file))
    done = subprocess.run(
        [command[0], str(job), *command[2:]], env={**os.environ, **variables}, cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert not [line for line in lines if line.strip().startswith(("at ", "... "))]
    assert "merged not" in done.stdout
    assert [line for line in lines if " MergeIntoCommand: " in line]
    assert [line for line in lines if line.startswith("Caused by: java.io.FileNotFoundException")]
    assert lines[-1].startswith("error (spark_job): compact of shop: a file of the lake is missing or cannot be read (")
    assert "Run this again: a snapshot that was taken in meanwhile" in lines[-1]
