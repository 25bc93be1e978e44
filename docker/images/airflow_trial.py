"""The proof of the Airflow image: it becomes healthy, lets its admin in, has every DAG, and its Spark writes Delta."""

from __future__ import annotations

import signal
from pathlib import Path

import httpx

from contract.pipeline import load
from docker.images.container import Container
from docker.images.trial import Engine, health_check, refuse_root, wait_healthy
from stack.errors import StackError
from stack.paths import CHECKOUT
from stack.ports import HOST, free_port

PIPELINES = CHECKOUT / "docker" / "pipelines"
PROBE = CHECKOUT / "docker" / "images" / "spark_probe.py"
PURPOSES = {"topics", "snapshot", "compaction", "quality"}
PASSWORD = "trial-password"


def run(engine: Engine, tag: str, folder: Path) -> int:
    """Starts the image as compose does; how many DAGs it has. Raises StackError where something is missing."""
    port = free_port()
    url = f"http://{HOST}:{port}"
    settings = [f"AIRFLOW__API__PORT={port}", f"AIRFLOW__API__HOST={HOST}", f"AIRFLOW__API__BASE_URL={url}"]
    settings.append(f"AIRFLOW__CORE__EXECUTION_API_SERVER_URL={url}/execution/")
    container = engine.start(
        tag, ["env", *settings, "airflow", "standalone"], mounts(folder), folder.parent / "airflow.log"
    )
    try:
        refuse_root(container)
        check = health_check(engine, tag, f"AIRFLOW__API__PORT={port}")
        wait_healthy(container, check, 600)
        dags = read_dags(url, container)
        probe_spark(container)
        stop(engine, tag, container)
    finally:
        container.close()
    return dags


def mounts(folder: Path) -> list[tuple[Path, str]]:
    secret, probe = folder / "password", folder / "probe.py"
    secret.write_text(PASSWORD)
    probe.write_text(PROBE.read_text())
    for path in (secret, probe):
        path.chmod(0o444)
    return [
        (secret, "/run/secrets/airflow_admin_password:ro"),
        (probe, "/tmp/probe.py:ro"),
        (PIPELINES, "/pipelines:ro"),
    ]


def read_dags(url: str, container: Container) -> int:
    """How many DAGs Airflow serves to its admin, all that the pipeline files ask for among them."""
    with httpx.Client(base_url=url, timeout=30) as client:
        token = client.post("/auth/token", json={"username": "admin", "password": PASSWORD})
        if token.status_code != 201:
            raise StackError(f"Airflow refuses its admin's password: {token.text[:200]}", log=container.log)
        client.headers["Authorization"] = f"Bearer {token.json()['access_token']}"
        errors = client.get("/api/v2/importErrors").raise_for_status().json()["import_errors"]
        found = {dag["dag_id"] for dag in client.get("/api/v2/dags").raise_for_status().json()["dags"]}
    wanted = {f"{load(file).name}.{purpose}" for file in PIPELINES.glob("*.yaml") for purpose in PURPOSES}
    if errors or wanted - found:
        words = errors[0]["stack_trace"] if errors else f"no DAG {', '.join(sorted(wanted - found))}"
        raise StackError(f"Airflow in the image could not take the DAGs: {words}", log=container.log)
    return len(found)


def probe_spark(container: Container) -> None:
    status, said = container.execute(["python", "/tmp/probe.py"])
    if status:
        raise StackError(f"Spark in the image could not write a Delta table: {said[-1500:]}")


def stop(engine: Engine, tag: str, container: Container) -> None:
    """By the image's own signal, as Docker sends it."""
    container.stop(60, signal.Signals[str(engine.config(tag)["StopSignal"])])
