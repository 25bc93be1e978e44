"""Where a pipeline's quality records are kept: data docs, the last result, alerts.

Beside the tables, in `<lake>/<pipeline>/_quality`, where the lake is a folder. A lake in an object store has no
pages to open and no file to append to: then `.headrace/quality/<pipeline>` of the checkout. HEADRACE_QUALITY
names another folder for both.
"""

from __future__ import annotations

import fcntl
import json
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any

from contract import CHECKOUT
from contract.names import QUALITY, lake_root
from contract.pipeline import Pipeline
from quality import alert_lines


def folder(pipeline: Pipeline) -> Path:
    if chosen := os.environ.get("HEADRACE_QUALITY"):
        return Path(chosen) / pipeline.name
    root = lake_root(pipeline)
    if "://" in root:
        return CHECKOUT / ".headrace" / "quality" / pipeline.name
    return Path(root) / QUALITY


def docs(pipeline: Pipeline) -> Path:
    return folder(pipeline) / "docs"


@contextmanager
def alone(pipeline: Pipeline) -> Iterator[None]:
    """Nobody else who asks for this changes pages or last result meanwhile, as a check beside a repair's would. A
    folder on a server may have no locks: then each still replaces them as a whole. Raises OSError."""
    path = folder(pipeline) / "checks.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def write_last(pipeline: Pipeline, result: dict[str, Any]) -> Path:
    """Keeps the result of the last check, replaced in one step. Raises OSError."""
    path = folder(pipeline) / "last.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(f".{uuid.uuid4().hex}")  # a number of a process is one of a container's, too
    try:
        draft.write_text(json.dumps(result, indent=1, default=str))
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    return path


def read_last(pipeline: Pipeline) -> dict[str, Any] | None:
    """The result of the last check, or None where there was none yet."""
    try:
        result = json.loads((folder(pipeline) / "last.json").read_text())
    except FileNotFoundError:
        return None
    return result if isinstance(result, dict) else None


def append_alert(pipeline: Pipeline, alert: dict[str, Any]) -> Path:
    """One JSON line a failure, oldest first (alert_lines.py). Raises OSError."""
    path = folder(pipeline) / "alerts.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    alert_lines.append(path, json.dumps(alert, default=str).encode())
    return path


def read_alerts(pipeline: Pipeline, last: int = 20) -> list[dict[str, Any]]:
    """The newest alerts, newest first."""
    return list(islice(_alerts(pipeline), last))


def alerts_of(pipeline: Pipeline, task: str, dag: str | None = None) -> Iterator[dict[str, Any]]:
    """Those of a task, newest first; without `dag` of the tasks of this name of whichever DAG. Raises OSError,
    ValueError."""
    return (one for one in _alerts(pipeline) if one.get("task") == task and dag in (None, one.get("dag")))


def _alerts(pipeline: Pipeline) -> Iterator[dict[str, Any]]:
    """Newest first, without what was not written whole."""
    try:
        lines = (folder(pipeline) / "alerts.jsonl").read_text(errors="replace").splitlines()
    except FileNotFoundError:
        return
    for line in reversed(lines):
        with suppress(ValueError):
            if isinstance(alert := json.loads(line), dict):
                yield alert
