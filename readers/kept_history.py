"""Since when the lake has its tables' changes, without Spark, of a lake in a folder or on S3."""

from __future__ import annotations

from pathlib import Path

from contract import names
from contract.kept_history import FILE, KeptHistory, parse
from contract.pipeline import Pipeline
from readers import store


def read(pipeline: Pipeline) -> KeptHistory:
    """Raises OSError, ValueError."""
    path = f"{names.lake_root(pipeline)}/{FILE}"
    if pipeline.lake.bucket:
        return parse(store.text(pipeline, path))
    try:
        return parse(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return parse(None)
