"""What the local Airflow takes from the shell that starts it."""

from __future__ import annotations

import pytest

from stack import airflow, maven


def test_jars_that_the_shell_names_are_its_jobs_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lake on S3 needs more than a folder does."""
    monkeypatch.delenv("HEADRACE_SPARK_JARS", raising=False)
    assert airflow.programs()["HEADRACE_SPARK_JARS"] == str(maven.spark_jars_folder())
    monkeypatch.setenv("HEADRACE_SPARK_JARS", "/jars:/jars-of-s3")
    assert airflow.programs()["HEADRACE_SPARK_JARS"] == "/jars:/jars-of-s3"
