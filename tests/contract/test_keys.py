"""The section `keys`: which columns a table's rows are known by, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from contract.pipeline import Pipeline
from contract.pipeline_columns import ColumnRuleError
from contract.schema import Column, TableSchema
from tests.streamer.fakes import pipeline

SCHEMA = TableSchema(
    db="shop", table="readings", key=("id",),
    columns=(
        Column(name="id", type="int", nullable=False),
        Column(name="Sensor", type="varchar", length=9, charset="utf8mb4", nullable=False),
        Column(name="place", type="varchar", length=9, charset="utf8mb4"),
        Column(name="heat", type="double", nullable=False),
    ),
)  # fmt: skip


def keyed(by: list[str], **more: Any) -> Pipeline:
    plain = pipeline()
    keys = [{"tables": ["shop.read*"], "columns": by}, {"tables": ["shop.*"], "columns": ["place"]}]
    return Pipeline.model_validate(plain.model_dump() | {"source": plain.source, "keys": keys, **more})


def test_the_first_rule_s_columns_are_the_key_by_the_names_that_the_server_has() -> None:
    shown = keyed(["sensor", "id"]).show(SCHEMA)
    assert shown.schema.key == ("Sensor", "id")
    assert shown.source.key == ("id",), "by which a snapshot walks"
    other = SCHEMA.model_copy(update={"db": "else"})
    assert keyed(["sensor"]).show(other).schema.key == ("id",)


def test_a_chosen_key_may_be_hashed() -> None:
    masks = [{"columns": ["*.*.sensor"], "mask": "hash", "keys": True}]
    shown = keyed(["sensor"], columns={"secret": "s", "masks": masks}).show(SCHEMA)
    assert (shown.schema.key, shown.schema.column("Sensor").length) == (("Sensor",), 64)


REFUSED = {
    "nothing": "there is no such column",
    "place": "may be NULL",
    "heat": "type double",
}


@pytest.mark.parametrize(("name", "told"), REFUSED.items())
def test_what_tells_no_rows_apart_is_refused(name: str, told: str) -> None:
    with pytest.raises(ColumnRuleError, match=rf"shop\.readings\.{name}.*{told}") as caught:
        keyed(["sensor", name]).show(SCHEMA)
    assert caught.value.place == ("keys", 0, "columns")


def test_a_key_s_column_is_neither_excluded_nor_masked_by_halves() -> None:
    with pytest.raises(ColumnRuleError, match="takes out"):
        keyed(["sensor"], columns={"exclude": ["*.*.sensor"]}).show(SCHEMA)
    with pytest.raises(ColumnRuleError, match="does not say that keys are masked"):
        keyed(["sensor"], columns={"masks": [{"columns": ["*.*.sensor"], "mask": "obfuscate"}]}).show(SCHEMA)
