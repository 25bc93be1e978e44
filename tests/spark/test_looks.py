"""How often a round with nothing new asks for files of each of many tables, and that it sees all the same what somebody
else does to one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from shutil import copytree, rmtree
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from spark.failpoints import hooked
from spark.lake.lake import Lake
from tests.spark.lake_by_hand import AT, NAME, item, stage

Compact = Callable[[], dict[str, Any]]
COUNT = 40  # tables
LOOKS = 3  # at files of one: that it ends where it did, and has begun nothing; at the run's end that it goes on no more


@pytest.fixture
def many(spark: SparkSession, lake: Lake, compact: Compact) -> None:
    """Each with a checkpoint of Delta's, and known to the last run."""
    stage(spark, lake, "1", AT, item(1), item(2))
    compact()
    path = lake.table(*NAME)
    DeltaTable(path).create_checkpoint()
    told = lake.read(lake.status) or {}
    for n in range(COUNT):
        copytree(path, lake.table("shop", f"t{n}"))
        told["tables"][f"shop.t{n}"] = {**told["tables"]["shop.items"], "table": f"t{n}", "snapshot": None}
    lake.write(lake.status, told)


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths that the store was asked for."""
    seen = list[str]()

    def counted(method: str) -> None:
        asked = getattr(Lake, method)

        def ask(lake: Lake, path: str) -> Any:
            seen.append(path)
            return asked(lake, path)

        monkeypatch.setattr(Lake, method, ask)

    for method in ("_there", "_text", "_entries"):
        counted(method)
    return seen


@pytest.mark.usefixtures("many")
def test_a_round_with_nothing_new(compact: Compact, looks: list[str]) -> None:
    facts = compact()
    assert len(facts["tables"]) == COUNT + 1
    assert all(one["rows"] == 2 and one["foreign"] is None for one in facts["tables"].values())
    of = Counter(path.split("/shop/shop/")[1].split("/")[0] for path in looks if "/shop/shop/" in path)
    assert of.keys() == {"items", *(f"t{n}" for n in range(COUNT))}
    assert max(of.values()) <= LOOKS, of


@pytest.mark.usefixtures("many")
def test_what_somebody_does_during_it(lake: Lake, compact: Compact) -> None:
    def harm(at: str) -> None:
        if at == "run noted":
            DeltaTable(lake.table("shop", "t3")).delete("id = 1")
            rmtree(lake.table("shop", "t5"))

    with hooked(harm):
        found = compact()["tables"]
    assert "DELETE as version" in found["shop.t3"]["foreign"]
    assert found["shop.t3"]["rows"] == 1
    found = compact()["tables"]
    assert {name for name, one in found.items() if one["foreign"]} == {"shop.t3", "shop.t5"}
    assert "it is gone" in found["shop.t5"]["foreign"]
    assert found["shop.t5"]["rows"] == 0
