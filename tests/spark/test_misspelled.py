"""A repair, backfill or erasure of a table that is none: what is told, and that no lake is made for it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from contract.pipeline import Pipeline
from spark.errors import LakeError
from spark.jobs import erase as erasing
from spark.jobs.backfill import backfill
from spark.jobs.erase import erase
from spark.jobs.repair import repair
from spark.mending import choice
from tests.spark.changes_by_hand import ITEMS

TOLD = "shop.itemz (did you mean shop.items?) is no table that the pipeline has sent changes of; those are: shop.items"


@pytest.fixture(autouse=True)
def sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Changes of shop.items alone."""
    for module in (choice, erasing):
        monkeypatch.setattr(module, "Broker", lambda _: SimpleNamespace(schemas=lambda: [ITEMS], checkpoint=None))


@pytest.mark.parametrize(
    ("job", "given"), [(repair, {}), (repair, {"keys": "[1]"}), (backfill, {}), (erase, {"keys": "[1]"})]
)
def test_a_misspelled_table_is_told_so_where_there_is_no_lake_yet_and_none_is_made(
    spark: SparkSession, pipeline: Pipeline, tmp_path: Path, job: Any, given: dict[str, str]
) -> None:
    with pytest.raises(LakeError) as caught:
        job(spark, pipeline, ["shop.itemz"], **given)
    assert str(caught.value).startswith(TOLD)
    assert not (tmp_path / "lake").exists()


@pytest.mark.parametrize("job", [repair, backfill])
def test_a_table_that_has_yet_to_come_is_led_to_the_commands_that_bring_it(
    spark: SparkSession, pipeline: Pipeline, tmp_path: Path, job: Any
) -> None:
    with pytest.raises(LakeError) as caught:
        job(spark, pipeline, ["shop.items"])
    told = f"the lake {tmp_path}/lake/shop has no table yet: run a snapshot and a compaction first (the DAGs"
    assert (
        str(caught.value) == f"{told} shop.snapshot and .compaction, or `headrace snapshot {pipeline.path} --compact`)"
    )
    assert not (tmp_path / "lake").exists()
