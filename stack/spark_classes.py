"""Writes the archive of Spark's classes that `contract/spark_classes.py` finds: a small job runs once, and Java writes
at its end what it had to load."""

from __future__ import annotations

import logging
import os
import shlex
import sys
import tempfile
from pathlib import Path

from contract import CHECKOUT
from contract.spark_classes import FILE, archive_name
from stack import maven
from stack.errors import StackError
from stack.fetch import install, run_client
from stack.spark import JAVA

log = logging.getLogger("stack")
JOB = "stack.first_job"
HINT = "Jobs run without these classes, too, and start slower."


def spark_classes() -> Path | None:
    """The folder of the archive, written where there is none; None, with a warning, where that cannot be done."""
    name = archive_name()
    if name is None:
        return None
    jars = maven.spark_jars()
    try:
        return install(name, lambda folder: _write(folder, jars))
    except StackError as error:
        log.warning("spark: %s", error)
        return None


def _write(folder: Path, jars: list[Path]) -> dict[str, str]:
    log.info("spark: keeping its classes as Java loads them, for quicker starts (half a minute)")
    java = f"-XX:ArchiveClassesAtExit={folder / FILE} -Xlog:disable {JAVA}"
    options = ["--master", "local[2]", "--jars", ",".join(map(str, jars)), "--driver-java-options", java]
    with tempfile.TemporaryDirectory(prefix="headrace-classes-") as lake:
        variables = [
            f"PYSPARK_SUBMIT_ARGS={shlex.join([*options, 'pyspark-shell'])}", "SPARK_LOCAL_IP=127.0.0.1",
            f"PYTHONPATH={CHECKOUT}", f"PYSPARK_PYTHON={sys.executable}",
        ]  # fmt: skip
        run_client("spark", ["env", *variables, sys.executable, "-m", JOB, lake], HINT)
    if not (folder / FILE).is_file():
        raise StackError("Java wrote no archive of Spark's classes", HINT)
    return {"java": os.environ.get("JAVA_HOME", "on PATH")}
