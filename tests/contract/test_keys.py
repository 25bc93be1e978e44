"""The section `keys`: which columns a table's rows are known by, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from contract.pipeline import Pipeline, PipelineFileError, load
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


def test_of_a_table_whose_changes_alone_are_kept_no_key_is_asked_and_its_own_stays() -> None:
    rules = [{"tables": ["shop.read*"], "changes_only": True}, {"tables": ["shop.*"], "columns": ["place"]}]
    made = keyed(["sensor"], keys=rules)
    assert made.show(SCHEMA).schema.key == ("id",)
    assert made.show(SCHEMA.model_copy(update={"key": ()})).schema.key == ()
    assert [made.changes_only("shop", name) for name in ("readings", "rooms")] == [True, False]
    assert not made.changes_only("else", "readings")
    assert Pipeline.model_validate(made.model_dump() | {"source": made.source}).keys == made.keys


def test_a_rule_of_columns_is_known_by_what_it_was_known_by_before_there_were_others() -> None:
    [rule, _] = keyed(["sensor"]).keys
    assert rule.model_dump(mode="json") == {"tables": ["shop.read*"], "columns": ["sensor"]}


BOTH_OR_NEITHER = {
    "columns: [id], changes_only: true": "has both columns and changes_only: true",
    "changes_only: false": "has neither columns nor changes_only: true",
    "columns: []": "is empty",
}


@pytest.mark.parametrize(("given", "told"), BOTH_OR_NEITHER.items())
def test_a_rule_has_columns_or_says_changes_only(tmp_path: Path, given: str, told: str) -> None:
    file = tmp_path / "shop.yaml"
    text = 'format: 1\nname: shop\nsource: {host: h, user: u, password: "${PASSWORD}", server_id: 7}\n'
    text += 'tables: {include: [shop.*]}\nkafka: {bootstrap: "h:9092"}\nlake: {path: lake}\n'
    file.write_text(f"{text}keys:\n  - {{tables: [shop.t], {given}}}\n")
    with pytest.raises(PipelineFileError) as caught:
        load(file, secrets=False)
    [problem] = caught.value.problems
    assert (problem.line, told in problem.message) == (8, True)
    assert problem.key.startswith("keys[0]")
    assert "columns" in problem.fix or problem.key == "keys[0].columns"


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
