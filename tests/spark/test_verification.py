"""The comparison at a commit boundary: which states count as equal, and what is said of a difference."""

from __future__ import annotations

from contract.pipeline import Pipeline
from contract.schema import Column, TableSchema
from quality.report import differences
from spark.checksum import Total
from spark.rewind import Step
from spark.verification import Answer, _matched, incomparable, result
from tests.checkpoints import checkpoint

SCHEMA = TableSchema(db="shop", table="t", columns=(Column(name="id", type="int"),), key=("id",))
LOW = checkpoint(pipeline="shop", server_uuid="u", pos=100, gtid_set="u:1-5")
# Two transactions in the window, and what came after it.
WALK = [
    Step((0, 1, 200), "u:6", Total(1, 10)),
    Step((0, 1, 300), "u:7", Total(-1, -3)),
    Step((0, 1, 999), None, Total(5, 500)),
]
NOW = Total(15, 1507)  # so: 10 rows and 1000 at the low end, 11 and 1010 after u:6, 10 and 1007 after u:7


def answer(rows: int, sum_: int) -> Answer:
    return Answer(SCHEMA, Total(rows, sum_), (0, 1, 900), 0.1)


def test_each_boundary_of_the_window_proves_it() -> None:
    for total, boundary in ((Total(10, 1000), ""), (Total(11, 1010), "u:6"), (Total(10, 1007), "u:7")):
        finding = _matched(answer(*total), NOW, WALK, None, 0.0)
        assert (finding.boundary, finding.lake, finding.now) == (boundary, total, 15)
        assert result(answer(*total), finding, LOW)["boundary"] == (boundary or "u:1-5")


def test_a_state_outside_of_the_window_is_a_difference() -> None:
    finding = _matched(answer(15, 1507), NOW, WALK, "why", 0.0)
    told = result(answer(15, 1507), finding, LOW)
    assert (told["equal"], told["boundary"], told["reason"]) == (False, None, "why")
    assert (told["source_count"], told["lake_count"]) == (15, 11)


def test_a_missing_row_and_a_changed_value_are_told_by_count_and_checksum() -> None:
    missing = result(answer(11, 1000), _matched(answer(11, 1000), NOW, [], None, 0.0), LOW)
    assert (missing["equal"], missing["source_count"], missing["lake_count"]) == (False, 11, 15)
    changed = _matched(answer(10, 1001), NOW, WALK, None, 0.0)
    assert changed.boundary is None
    assert changed.lake.rows == 10
    assert changed.now == 15  # MySQL would have as many rows now as the lake has


def test_a_table_of_which_changes_are_left_out_is_not_compared() -> None:
    rules = [
        {"tables": ["shop.*"], "drop": ["ddl"]},
        {"tables": [r"/shop\.(audit|log)/"], "drop": ["delete", "truncate"]},
    ]
    pipeline = Pipeline.model_validate(
        {
            "format": 1,
            "name": "shop",
            "source": {"host": "h", "user": "u", "password": "p", "server_id": 7},
            "tables": {"include": ["shop.*"]},
            "events": rules,
            "kafka": {"bootstrap": "h:9092"},
            "lake": {"path": "lake"},
            "transforms": [{"tables": ["shop.visits"], "function": "visits.transform"}],
            "path": "shop.yaml",
        }
    )
    transformed = incomparable(pipeline, "shop", "visits")
    assert transformed is not None
    assert (transformed["equal"], "transforms in shop.yaml change" in transformed["reason"]) == (None, True)
    assert incomparable(pipeline, "shop", "orders") is None, "all of its rows are there"
    facts = incomparable(pipeline, "shop", "audit")
    assert facts is not None
    assert facts["equal"] is None
    assert facts["reason"].startswith("not compared: events in shop.yaml leaves out its delete, truncate changes")
    assert differences({"tables": {"shop.audit": facts}}) == {}, "no false alarm"
