"""The one Spark session of a test process, set as the jobs' own is."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

from contract.pipeline import Pipeline, load
from spark.session import session
from stack.maven import spark_jars, spark_s3_jars_folder
from stack.spark import LASTING

PIPELINE = """\
format: 1
name: shop
source: {{host: 127.0.0.1, user: headrace, password_file: none, server_id: 7}}
tables: {{include: ["shop.*", "_staging.*"]}}
kafka: {{bootstrap: "127.0.0.1:1"}}
lake: {{path: {lake}}}
"""


def local_session() -> SparkSession:
    warehouse = str(Path(tempfile.gettempdir(), f"headrace-warehouse-{os.getpid()}"))  # made by the first that needs it
    atexit.register(shutil.rmtree, warehouse, ignore_errors=True)
    settings = {
        "spark.pyspark.python": sys.executable,
        "spark.master": "local[2]",
        "spark.jars": ",".join(map(str, spark_jars())),
        "spark.driver.extraClassPath": f"{spark_s3_jars_folder()}/*",  # so they are not copied, as `spark.jars` are
        # Of hundreds of lakes Spark keeps plans for an hour: with 2g Java spent a quarter of its time looking for some.
        "spark.driver.memory": "4g",
        # A zone that is none of the product's: nothing may depend on the machine's. With the optimizing compiler: it
        # costs the first minutes, and then spares more than that.
        "spark.driver.extraJavaOptions": f"-Duser.timezone=America/St_Johns {LASTING}",
        "spark.sql.shuffle.partitions": "1",
        # A few rows each: compiling a query costs far more than running it.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        # Where a database made in SQL has its folder: else beside the checkout.
        "spark.sql.warehouse.dir": warehouse,
        "spark.ui.showConsoleProgress": "false",
        "spark.databricks.delta.stats.collect": "false",
        # By default a task zeroes a page of 64 MB for each sort of a few rows: Java then only collects garbage.
        "spark.buffer.pageSize": "1m",
        "spark.sql.adaptive.enabled": "false",  # each of its stages is a job of its own
    }
    return session("tests", settings)


def forget_tables() -> None:
    """Delta keeps each table it was asked for, 15 MB with the plans of its state: of some fifty lakes of tests that
    are gone the memory is full, and Java does little else than to look for some."""
    context = SparkContext._active_spark_context
    if context is not None:
        jvm: Any = context._jvm
        jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()


def forget_answer() -> None:
    """Behind a test that was cut in the middle of a call to Java: on its connection the next call, in whatever test,
    would read the answer to that one."""
    context = SparkContext._active_spark_context
    if context is not None and (connection := context._gateway._gateway_client.get_thread_connection()):  # type: ignore[union-attr]
        connection.close()


def pipeline_in(folder: Path) -> Pipeline:
    """A pipeline whose lake is in the folder; its servers are not there."""
    file = folder / "shop.yaml"
    file.write_text(PIPELINE.format(lake=folder / "lake"))
    return load(file)
