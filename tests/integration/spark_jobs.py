"""A Spark job run as its users run it: by spark-submit, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from contract import jobs
from stack import spark
from stack.maven import spark_jars

ROOT = Path(__file__).parents[2]


def submit(job: str, pipeline: Path, environment: dict[str, str], *arguments: str) -> dict[str, Any]:
    """The job's report (contract/jobs.py). Fails the test where it ended without one."""
    command = [
        str(Path(sys.executable).parent / "spark-submit"), "--master", "local[2]", "--driver-memory", "1g",
        "--conf", f"spark.driver.extraJavaOptions=-Duser.timezone=UTC {spark.JAVA}",
        "--jars", ",".join(map(str, spark_jars())),
        str(ROOT / "spark" / "jobs" / f"{job}.py"), "--pipeline", str(pipeline), *arguments,
    ]  # fmt: skip
    ours = {"PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    done = subprocess.run(
        command, env={**os.environ, **ours, **environment}, capture_output=True, text=True, timeout=300, cwd=ROOT
    )
    reports = [report for line in done.stdout.splitlines() if (report := jobs.read(line))]
    assert len(reports) == 1, f"{job} ended with {done.returncode} and no report:\n{done.stdout}\n{done.stderr[-4000:]}"
    assert reports[0]["ok"] == (done.returncode == 0)
    return reports[0]
