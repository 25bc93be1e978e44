"""Where a user's suite files are: `<pipeline>/<db>.<table>.json` or `.py` in the folder HEADRACE_SUITES, by default
`quality/` of the checkout. Light: no GX."""

from __future__ import annotations

import os
from pathlib import Path

from contract.pipeline import Pipeline

FOLDER = Path(__file__).resolve().parent


def folder(pipeline: str) -> Path:
    return Path(os.environ.get("HEADRACE_SUITES") or FOLDER) / pipeline


def files(pipeline: Pipeline) -> list[Path]:
    found = [*folder(pipeline.name).glob("*.json"), *folder(pipeline.name).glob("*.py")]
    return sorted(path for path in found if path.stem != "__init__")


def tables(pipeline: Pipeline) -> set[str]:
    """The `db.table`s that have a file."""
    return {path.stem for path in files(pipeline)}
