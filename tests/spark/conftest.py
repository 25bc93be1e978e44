"""Spark, a lake in a temporary folder, and changes made by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from contract.pipeline import Pipeline
from spark.lake import Lake
from tests.spark.sessions import local_session, pipeline_in


@pytest.fixture(scope="session")
def spark() -> SparkSession:
    return local_session()


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    return pipeline_in(tmp_path)


@pytest.fixture
def lake(spark: SparkSession, pipeline: Pipeline) -> Lake:
    return Lake(spark, pipeline)
