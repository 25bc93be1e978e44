"""What the environment says of how a Spark job is started, by Airflow and by the command line.

| variable                | meaning                                          | default                     |
|-------------------------|--------------------------------------------------|-----------------------------|
| HEADRACE_SPARK_JARS     | folder of the jars that the Spark jobs need, or  | what `make spark-jars` put  |
|                         | several, parted as in PATH                       | into $HEADRACE_CACHE        |
| HEADRACE_SPARK_MEMORY   | memory of a job's driver, Spark's spelling       | 1g                          |
| HEADRACE_SPARK_JAVA     | further options of a driver's JVM                | Java's parallel collector   |
| HEADRACE_SPARK_PYTHON   | Python of the jobs and of their workers          | the one that starts the job |
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from contextlib import suppress
from pathlib import Path

from contract import CHECKOUT
from contract.spark_classes import shared_classes
from contract.spark_jars import spark_jars

LOGGING = CHECKOUT / "spark" / "log4j2.properties"
LASTING = {"compact_loop"}
COLLECTOR = "-XX:+UseParallelGC"  # what counts is a batch's time, not its longest pause
# Ours, Spark's and Java's own.
OPTIONS = ("HEADRACE_SPARK_JAVA", "SPARK_SUBMIT_OPTS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
CONF = {
    "spark.log.level": "WARN",  # at INFO the job's own words drown
    "spark.ui.showConsoleProgress": "false",
}


def spark_memory() -> str:
    return os.environ.get("HEADRACE_SPARK_MEMORY") or "1g"


def spark_java(job: str = "") -> str:
    """Options of the driver's JVM; a user's stand behind ours, since of one that is given twice Java takes the last.
    For short jobs on few cores, -XX:TieredStopAtLevel=1 spares the compiler; a job that runs for days gets its
    optimizing part back."""
    given = os.environ.get("HEADRACE_SPARK_JAVA", "").split()
    kept = [option for option in given if job not in LASTING or not option.startswith("-XX:TieredStopAtLevel=")]
    ours = [*shared_classes(), *_collector(), f"-Dlog4j2.configurationFile={LOGGING.as_uri()}", "-Duser.timezone=UTC"]
    return " ".join([*ours, *kept])


def _collector() -> list[str]:
    """Ours, unless one was chosen: of two Java dies."""
    told = [os.environ.get(name, "") for name in OPTIONS]
    with suppress(OSError):
        told.append((Path(os.environ.get("SPARK_CONF_DIR") or os.devnull) / "spark-defaults.conf").read_text())
    return [] if re.search(r"-XX:\+Use\w+GC\b", " ".join(told)) else [COLLECTOR]


def spark_python() -> str:
    return os.environ.get("HEADRACE_SPARK_PYTHON") or sys.executable


def spark_environment(local: bool) -> dict[str, str]:
    """The variables of a job: where the product's packages are, and which Python its workers run.
    A `local` Spark, all of it in one process, has no reason to listen beyond the loopback."""
    python = spark_python()
    loopback = {"SPARK_LOCAL_IP": "127.0.0.1"} if local else {}
    return {"PYTHONPATH": str(CHECKOUT), "PYSPARK_PYTHON": python, "PYSPARK_DRIVER_PYTHON": python, **loopback}


def driver(job: str, master: str, *arguments: str, on_s3: bool = False) -> tuple[list[str], dict[str, str]]:
    """Command and variables of a job whose driver is a process of this machine, and which starts its Java itself: so a
    signal reaches the job, which is the parent. Raises FileNotFoundError as `spark_jars` does."""
    options = ["--master", master, "--driver-memory", spark_memory()]
    if jars := spark_jars(on_s3):
        options += ["--jars", jars]
    for name, value in {**CONF, "spark.driver.extraJavaOptions": spark_java(job)}.items():
        options += ["--conf", f"{name}={value}"]
    submit = {"PYSPARK_SUBMIT_ARGS": shlex.join([*options, "pyspark-shell"])}
    command = [spark_python(), str(CHECKOUT / "spark" / "jobs" / f"{job}.py"), *arguments]
    return command, {**spark_environment(master.startswith("local")), **submit}
