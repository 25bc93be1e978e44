"""Run inside the Airflow image by its trial: Spark writes a Delta table with the image's jars and reads it back."""

import os
import sys
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession

jars = ",".join(sorted(str(jar) for jar in Path(os.environ["HEADRACE_SPARK_JARS"]).glob("*.jar")))
spark = (
    SparkSession.builder.master("local[1]")
    .config("spark.jars", jars)
    .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    .config("spark.ui.enabled", "false")
    .getOrCreate()
)
with tempfile.TemporaryDirectory(dir="/lake") as folder:
    spark.range(100).write.format("delta").save(f"{folder}/table")
    rows = spark.read.format("delta").load(f"{folder}/table").count()
spark.stop()
sys.exit(0 if rows == 100 else f"{rows} rows came back of 100")
