"""The one Spark session of a test process, set as the jobs' own is."""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import SparkSession

from contract.pipeline import Pipeline, load
from spark.session import session
from stack.maven import spark_jars
from stack.spark import JAVA

PIPELINE = """\
format: 1
name: shop
source: {{host: 127.0.0.1, user: headrace, password_file: none, server_id: 7}}
tables: {{include: ["shop.*", "_staging.*"]}}
kafka: {{bootstrap: "127.0.0.1:1"}}
lake: {{path: {lake}}}
"""


def local_session() -> SparkSession:
    settings = {
        "spark.pyspark.python": sys.executable,
        "spark.master": "local[2]",
        "spark.jars": ",".join(map(str, spark_jars())),
        "spark.driver.memory": "1g",
        # A zone that is none of the product's: nothing may depend on the machine's.
        "spark.driver.extraJavaOptions": f"-Duser.timezone=America/St_Johns {JAVA}",
        "spark.sql.shuffle.partitions": "1",
        # A few rows each: compiling a query costs far more than running it.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.ui.showConsoleProgress": "false",
        "spark.databricks.delta.stats.collect": "false",
    }
    return session("tests", settings)


def pipeline_in(folder: Path) -> Pipeline:
    """A pipeline whose lake is in the folder; its servers are not there."""
    file = folder / "shop.yaml"
    file.write_text(PIPELINE.format(lake=folder / "lake"))
    return load(file)
