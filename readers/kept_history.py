"""Since when the lake has its tables' changes, without Spark, of a lake in a folder or on S3."""

from __future__ import annotations

from contract.kept_history import FILE, KeptHistory, parse
from contract.pipeline import Pipeline
from readers import store


def read(pipeline: Pipeline) -> KeptHistory:
    """Raises OSError, ValueError, and LakeReadError where the file is not whole."""
    return parse(store.small_file(pipeline, FILE))
