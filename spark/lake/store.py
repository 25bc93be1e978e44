"""What Hadoop's client of S3, by which Spark reads and writes, is told of a lake's store.

For the lake's bucket alone, so that lakes of several stores go together in one session; and in Hadoop's settings, not
in Spark's, which are shown in more places.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from contract.pipeline import Pipeline

# Spark's other one makes no file in a folder that is empty, which a store need not know of.
CHECKPOINTS = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
PROVIDERS = "org.apache.hadoop.fs.s3a."
KEYS, SESSION = f"{PROVIDERS}SimpleAWSCredentialsProvider", f"{PROVIDERS}TemporaryAWSCredentialsProvider"


def configure(spark: SparkSession, pipeline: Pipeline) -> None:
    """Nothing where the lake is not on S3."""
    if pipeline.lake.bucket is None:
        return
    configuration: Any = spark._jsc.hadoopConfiguration()
    configuration.set("spark.sql.streaming.checkpointFileManagerClass", CHECKPOINTS)
    for name, value in settings(pipeline).items():
        configuration.set(f"fs.s3a.bucket.{pipeline.lake.bucket}.{name}", value)


def settings(pipeline: Pipeline) -> dict[str, str]:
    """Each without its `fs.s3a.`. What is left out in the pipeline file is left to Hadoop's own settings and places."""
    s3 = pipeline.lake.s3
    given = {
        "endpoint": s3.endpoint_url,
        "endpoint.region": s3.of_region,
        "connection.ssl.enabled": "false" if s3.plain else None,
        "path.style.access": "true" if s3.in_path else None,
        "access.key": s3.key,
        "secret.key": s3.secret,
        "session.token": s3.token,
        # Those alone, so that a wrong one is an error, and not another user's right.
        "aws.credentials.provider": (SESSION if s3.token else KEYS) if s3.key else None,
        "create.conditional.enabled": str(s3.conditional_writes).lower(),
    }
    more = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in s3.client.items()}
    return {name: value for name, value in given.items() if value is not None} | more
