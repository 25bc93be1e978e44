"""A pipeline file, and the contexts that Airflow gives to the notifiers of its tasks."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from headrace.spark_job import JobFailed

RESULT = {
    "job": "verify",
    "pipeline": "shop",
    "ok": False,
    "error": "1 of 2 tables differ",
    "tables": {
        "shop.orders": {
            "equal": False,
            "source_count": 5,
            "lake_count": 4,
            "source_checksum": "1",
            "lake_checksum": "2",
        },
        "shop.items": {"equal": True, "source_count": 9, "lake_count": 9},
    },
}


def pipeline_file(tmp_path: Path, webhook: str = "") -> str:
    file = tmp_path / "shop.yaml"
    file.write_text(
        "format: 1\nname: shop\nsource: {host: localhost, user: u, password_file: p, server_id: 7}\n"
        "tables: {include: ['shop.*']}\nkafka: {bootstrap: 'localhost:9092'}\n"
        f"lake: {{path: {tmp_path}/lake}}\n" + (f"quality: {{webhook: '{webhook}'}}\n" if webhook else "")
    )
    return str(file)


def failed() -> dict[str, Any]:
    ti = SimpleNamespace(dag_id="shop.quality", task_id="verify", run_id="r1", log_url="http://a/log")
    return {"ti": ti, "exception": JobFailed(RESULT)}


def succeeded(task: str = "verify", *tables: str) -> dict[str, Any]:
    """`tables`: those that it was started for; none: all."""
    report = {"named": [*tables]} if tables else None
    facts: dict[str, Any] = {"dag_id": "shop.quality", "task_id": task, "run_id": "r2", "log_url": "http://a/log"}
    return {"ti": SimpleNamespace(**facts, xcom_pull=lambda task_ids: report)}


def verified(**tables: Any) -> dict[str, Any]:
    ti = SimpleNamespace(dag_id="shop.quality", task_id="verify", run_id="r3", log_url="http://a/log")
    return {"ti": ti, "exception": JobFailed({**RESULT, "tables": {f"shop.{name}": t for name, t in tables.items()}})}


def of_dag(context: dict[str, Any], dag: str) -> dict[str, Any]:
    context["ti"].dag_id = dag
    return context


def taken(received: Any, status: int, *told: tuple[Any, dict[str, Any]], file: str) -> list[dict[str, Any]]:
    """What was sent to the webhook, which answers so, of each notifier and its context."""
    received.status = status
    received.bodies.clear()
    for notifier, context in told:
        notifier(file)(context)
    return [*received.bodies]
