"""What Airflow's side of Headrace takes from the environment; read when it is used, not at import.

| variable                | meaning                                          | default                |
|-------------------------|--------------------------------------------------|------------------------|
| HEADRACE_PIPELINES      | folder of the pipeline files                     | `<checkout>/pipelines` |
| HEADRACE_SPARK_JARS     | folder of the jars that the Spark jobs need      | none: Spark's own only |
| HEADRACE_SPARK_MEMORY   | memory of a job's driver, Spark's spelling       | 1g                     |
| HEADRACE_SPARK_JAVA     | further options of a driver's JVM                | none                   |
| HEADRACE_SPARK_PYTHON   | Python of the jobs and of their workers          | the one Airflow runs on|
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from headrace import CHECKOUT


def pipelines_folder() -> Path:
    return Path(os.environ.get("HEADRACE_PIPELINES") or CHECKOUT / "pipelines")


def spark_jars() -> str | None:
    """`--jars`: every jar of HEADRACE_SPARK_JARS, by comma. Raises FileNotFoundError where it has none."""
    folder = os.environ.get("HEADRACE_SPARK_JARS")
    if not folder:
        return None
    jars = sorted(str(jar) for jar in Path(folder).glob("*.jar"))
    if not jars:
        raise FileNotFoundError(f"HEADRACE_SPARK_JARS is {folder}, which holds no .jar file: run `make spark-jars`")
    return ",".join(jars)


def spark_memory() -> str:
    return os.environ.get("HEADRACE_SPARK_MEMORY") or "1g"


def spark_java() -> str:
    """Options of the driver's JVM. For short jobs on few cores, -XX:TieredStopAtLevel=1 spares the compiler."""
    return f"-Duser.timezone=UTC {os.environ.get('HEADRACE_SPARK_JAVA', '')}".strip()


def spark_environment(local: bool) -> dict[str, str]:
    """The variables of a job: where the product's packages are, and which Python its workers run.
    A `local` Spark, all of it in one process, has no reason to listen beyond the loopback."""
    python = os.environ.get("HEADRACE_SPARK_PYTHON") or sys.executable
    loopback = {"SPARK_LOCAL_IP": "127.0.0.1"} if local else {}
    return {"PYTHONPATH": str(CHECKOUT), "PYSPARK_PYTHON": python, "PYSPARK_DRIVER_PYTHON": python, **loopback}
