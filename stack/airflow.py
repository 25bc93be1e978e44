"""A real Airflow: API server with UI, scheduler, DAG processor and triggerer over SQLite, on the loopback."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import httpx
import psutil

from stack import kept, maven, spark
from stack.paths import CHECKOUT, program
from stack.ports import HOST
from stack.process import Server
from stack.spark_classes import spark_classes

PIPELINES = "HEADRACE_PIPELINES"
COMPONENTS = ("metadatabase", "scheduler", "dag_processor", "triggerer")


class Airflow(Server):
    """One Airflow with its home under `home`/airflow, its DAGs and plugins from the checkout.

    `settings` are environment variables of Airflow and its tasks and win: HEADRACE_* for the pipelines,
    AIRFLOW__SECTION__KEY for Airflow. Nobody has to log in, so the port is on the loopback alone.
    """

    name = "airflow"
    title = "Airflow"
    port_option = "--airflow-port"
    start_seconds = 300.0
    stop_seconds = 20.0

    def __init__(self, home: Path | str, port: int, settings: Mapping[str, str] | None = None) -> None:
        super().__init__(home, port)
        self.settings = dict(settings or {})

    @property
    def url(self) -> str:
        return f"http://{self.address}"

    def command(self) -> Sequence[str]:
        return [sys.executable, "-m", "stack.airflow_parts"]

    def folder(self) -> Path:
        return CHECKOUT

    def prepare(self) -> None:
        program("airflow")
        (self.home / "airflow").mkdir(exist_ok=True)

    def environment(self) -> Mapping[str, str]:
        foreign = ("AIRFLOW__", "AIRFLOW_CONN_", "AIRFLOW_VAR_")
        inherited = {key: value for key, value in os.environ.items() if not key.startswith(foreign)}
        return {**inherited, **programs(), **self._airflow(), **self.settings, PIPELINES: str(self.pipelines)}

    @property
    def pipelines(self) -> Path:
        """The folder of the pipeline files. A relative one is the shell's, in whose folder Airflow does not run."""
        given = self.settings.get(PIPELINES) or os.environ.get(PIPELINES)
        return Path(given or CHECKOUT / "pipelines").absolute()

    def keeps(self, running: psutil.Process) -> list[str]:
        """Another folder of pipeline files, or another value of a variable that they or Spark's jobs read."""
        has = running.environ()
        folder = CHECKOUT / (has.get(PIPELINES) or "pipelines")
        if folder.resolve() != self.pipelines.resolve():
            return [f"the pipelines of {folder} and not of {self.pipelines}"]
        given = {name for name in os.environ if name.startswith("HEADRACE_SPARK_")}
        return kept.other_settings(has, self.environment(), given | kept.named_in(self.pipelines.glob("*.y*ml")))

    def healthy(self) -> bool:
        """Whether all four parts report that they are well."""
        try:
            answer = httpx.get(f"{self.url}/api/v2/monitor/health", timeout=5)
            return answer.is_success and all(answer.json()[part]["status"] == "healthy" for part in COMPONENTS)
        except (httpx.HTTPError, ValueError, KeyError):
            return False

    def _airflow(self) -> dict[str, str]:
        return {
            "AIRFLOW_HOME": str(self.home / "airflow"),
            "AIRFLOW__CORE__DAGS_FOLDER": str(CHECKOUT / "dags"),
            "AIRFLOW__CORE__PLUGINS_FOLDER": str(CHECKOUT / "plugins"),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__DEFAULT_TIMEZONE": "utc",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
            "AIRFLOW__CORE__PARALLELISM": "4",
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{self.url}/execution/",
            "AIRFLOW__API__BASE_URL": self.url,
            "AIRFLOW__API__HOST": HOST,
            "AIRFLOW__API__PORT": str(self.port),
            "AIRFLOW__API__WORKERS": "1",
            "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "10",
            "AIRFLOW__DAG_PROCESSOR__PARSING_PROCESSES": "1",
            "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
            # As JSON: the form spark://local[2] would be read as a YARN cluster.
            "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": "local[2]"}),
        }


def programs() -> dict[str, str]:
    """The environment in which the product's programs find each other, whatever the user's shell says."""
    spark_classes()
    return {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]),
        "PYTHONPATH": str(CHECKOUT),
        "PYTHONUNBUFFERED": "1",
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "HEADRACE_SPARK_JARS": os.environ.get("HEADRACE_SPARK_JARS") or str(maven.spark_jars_folder()),
        "HEADRACE_SPARK_JAVA": os.environ.get("HEADRACE_SPARK_JAVA", spark.JAVA),
        "GX_ANALYTICS_ENABLED": "False",
        "TZ": "UTC",
    }
