"""What a driver's JVM is started with."""

from __future__ import annotations

from pathlib import Path

import pytest

from contract.spark_process import COLLECTOR, OPTIONS, spark_java


@pytest.fixture(autouse=True)
def nothing_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*OPTIONS, "SPARK_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("given", ["", "-Xss4m", "-XX:+UseStringDeduplication", "-XX:+UseGCOverheadLimit"])
def test_a_job_collects_its_garbage_side_by_side(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_SPARK_JAVA", given)
    assert spark_java().split().count(COLLECTOR) == 1


def test_nor_where_the_settings_of_spark_choose_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert COLLECTOR in spark_java()
    (tmp_path / "spark-defaults.conf").write_text("spark.driver.defaultJavaOptions -Xss4m -XX:+UseG1GC\n")
    assert COLLECTOR not in spark_java()


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("chosen", ["-XX:+UseG1GC", "-Xmn1g -XX:+UseZGC -Xss4m", COLLECTOR])
def test_unless_another_collector_was_chosen_since_java_takes_one(
    name: str, chosen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, chosen)
    by_us = spark_java().partition("-Duser.timezone=UTC")[0]
    assert "GC" not in by_us
