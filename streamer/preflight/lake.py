"""What the jobs of the lake need of the machine: the lake's folder, and what starts Spark. They may run on another one,
so that nothing of it is an error here.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from contract import cron, names, spark_process, status
from contract.java import java_missing, java_program
from contract.pipeline import Pipeline
from contract.spark_jars import spark_jars
from streamer import disk
from streamer.preflight.findings import Result

LEAST, JAVA_SECONDS = 17, 10.0
VERSION = re.compile(r'version "(?:1\.)?(\d+)')
ELSEWHERE = "{} is in no folder, nor on S3: Airflow's waits and page, and `headrace sql`, cannot read how it stands"
BY_COMMANDS = "Run its jobs by their commands, with --compact, or write a folder or s3a:// as lake.path."
OTHERWISE = "Where the lake's jobs run on another machine, this is nothing to mend here."


def lake(pipeline: Pipeline) -> Iterator[Result]:
    """Nothing of a pipeline that feeds none."""
    if not pipeline.feeds_lake:
        return
    root = names.lake_root(pipeline)
    if "://" in root and pipeline.lake.bucket is None:
        yield Result("warning", "lake", ELSEWHERE.format(root), BY_COMMANDS)
    elif pipeline.lake.bucket is None:
        yield _folder(Path(root))
    if rare := _rare(pipeline):
        yield rare
    if spark_process.spark_python() == sys.executable and importlib.util.find_spec("pyspark") is None:
        yield Result("ok", "spark", "no job of the lake is started from here: Python has no pyspark")
        return
    yield _jars(pipeline.lake.bucket is not None)
    yield _java()


def _folder(root: Path) -> Result:
    if (root.parent / status.FILE).exists():
        cause = f"lake.path is {root.parent}, which is itself the lake of a pipeline: tables of the two would meet"
        return Result("warning", "lake", cause, "Write the folder above it: no job of the lake begins in this one.")
    if why := disk.obstacle(root):
        return Result("warning", "lake", f"the folder {root}: {why}", f"Mend lake.path, or its rights. {OTHERWISE}")
    return Result("ok", "lake", f"the folder {root} may be written")


def _rare(pipeline: Pipeline) -> Result | None:
    """A check waits for the lake, which a schedule takes there too late."""
    waits, between = pipeline.quality.wait_seconds, cron.longest_seconds(pipeline.compaction.schedule)
    if between <= waits:
        return None
    told = (
        f"compaction.schedule leaves up to {between:,} s between two runs, and a check waits {waits:,} s for the lake"
    )
    step = f"Write quality.wait_seconds of {between:,} and as much more as a run takes, or compact more often."
    return Result("warning", "lake", told, step)


def _jars(on_s3: bool) -> Result:
    try:
        spark_jars(on_s3)
    except FileNotFoundError as error:
        return Result("warning", "spark", str(error), OTHERWISE)
    return Result("ok", "spark", "the jars of its jobs are there")


def _java() -> Result:
    java = java_program()
    step = f"Install a JDK {LEAST}. {OTHERWISE}"
    if java is None:
        return Result("warning", "java", java_missing(), step)
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=JAVA_SECONDS).stderr
    except (OSError, subprocess.TimeoutExpired) as error:
        return Result("warning", "java", f"{java} does not run: {error}", step)
    found = VERSION.search(said)
    if found is None or int(found[1]) < LEAST:
        what = f"{java} is Java {found[1] if found else 'of a version that it does not tell'}, and Spark needs {LEAST}"
        return Result("warning", "java", what, step)
    return Result("ok", "java", f"{java} is Java {found[1]}")
