"""The lake that the readers' tests read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from deltalake import write_deltalake

from contract import names
from contract.pipeline import Pipeline, load
from contract.status import LakeStatus, TableStatus
from tests.readers.lake_by_hand import (
    CHANGES,
    FILE,
    SHAPE,
    append,
    row,
)


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    """Its lake's `shop.items` has the rows 1 and 4; 4 was never changed."""
    file = tmp_path / "shop.yaml"
    file.write_text(FILE.format(lake=tmp_path / "lake"))
    made = load(file, secrets=False)
    write_deltalake(names.lake_table(made, "shop", "items"), pl.DataFrame([row(1, "c", "2.00"), row(4, "it's")], SHAPE))
    append(made, CHANGES)
    tables = {"shop.items": TableStatus(db="shop", table="items", rows=2, changes=5, version=0)}
    facts: dict[str, Any] = {"run": 1, "written_at": 0, "seconds": 1, "checkpoint": None, "changes_version": 0}
    status = LakeStatus(pipeline="shop", tables=tables, **facts)
    Path(names.lake_root(made), "_status.json").write_text(status.model_dump_json())
    return made
