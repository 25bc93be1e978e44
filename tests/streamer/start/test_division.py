"""When a start by other rules of what is sent leaves every table without a snapshot, and when not."""

from __future__ import annotations

from typing import Any

import pytest
from structlog.testing import capture_logs

from contract import fingerprint
from contract.checkpoint import KEPT, Checkpoint
from contract.gtid import GtidSet
from contract.pipeline import Pipeline, Tables
from streamer.start import division
from tests.checkpoints import SOURCE, checkpoint
from tests.streamer.fakes import pipeline

END = (0, 1, 900)
BEHIND = GtidSet.parse(f"{SOURCE}:7")
OF_A_LAKE = pipeline(delivery="at_least_once")


def marked(known: Checkpoint, sent: GtidSet, made: Pipeline = OF_A_LAKE, sends: str = "new") -> Checkpoint:
    return division.marked(made, known, known, sends, END, lambda: sent)


def test_what_was_sent_in_part_by_other_rules_needs_a_snapshot_behind_it() -> None:
    with capture_logs() as logs:
        begin = marked(checkpoint(sends="old"), BEHIND)
    assert begin.since("shop", "t") == END
    assert begin.place == checkpoint().place
    assert logs[0]["transactions"] == str(BEHIND)
    assert "sales.snapshot" in logs[0]["next_step"]


def test_a_run_by_kafka_transactions_that_began_behind_a_killed_one_without_them_hides_nothing() -> None:
    begin = marked(checkpoint(sends="old", run="a run of exactly-once delivery"), BEHIND)
    assert begin.since("shop", "t") == END


def test_nothing_is_asked_for_where_nothing_can_be_lacking() -> None:
    def never() -> GtidSet:
        raise AssertionError

    files = OF_A_LAKE.model_copy(update={"checkpoints": None})
    for known, made in (
        (checkpoint(sends="new"), OF_A_LAKE),
        (checkpoint(sends="old"), files),
    ):
        assert division.marked(made, known, known, "new", END, never) is known
    stopped_well = checkpoint(sends="old")
    assert marked(stopped_well, GtidSet()) is stopped_well


@pytest.mark.parametrize(
    ("known", "used", "gap"),
    [
        ({}, ["sales.schemas"], True),
        ({}, ["sales.schemas", "sales.shop.t"], False),
        ({"templates": ("x.{table}",)}, [], False),
        ({"events": 0}, [], False),
        ({"sends": "new"}, [], False),
    ],
    ids=["all are empty", "one is not", "it says so", "nothing was sent", "no edit"],
)
def test_behind_a_version_that_did_not_say_how_topics_were_named_those_of_now_tell(
    known: dict[str, Any], used: list[str], gap: bool
) -> None:
    was = checkpoint(**{"sends": "old", "events": 5, **known})
    with capture_logs() as logs:
        begin = division.renamed(OF_A_LAKE, was, was, "new", END, lambda: used)
    assert (begin.since("shop", "t") == END) is gap
    assert [log["log_level"] for log in logs] == ["warning"] * gap


def sending(**changes: Any) -> str:
    made = Pipeline.model_validate(
        {
            "format": 1, "name": "sales", "source": {"host": "h", "user": "u", "password": "p", "server_id": 7},
            "tables": {"include": ["shop.*"]}, "kafka": {"bootstrap": "h:9092"}, "lake": {"path": "lake"},
        } | changes
    )  # fmt: skip
    return fingerprint.of_sending(made, "rules")


def test_the_fingerprint_changes_with_what_divides_records_and_with_nothing_else() -> None:
    aside = {"oversized": {"target": "/large"}}
    large = {"bootstrap": "h:9092", "max_message_bytes": 20_000_000}
    first = sending()
    assert first == sending(kafka=large) == sending(lake={"path": "other"}, tables={"include": ["shop.t"]})
    assert sending(records=aside) == sending(records={"oversized": {"target": "/elsewhere"}})
    others = [
        sending(events=[{"tables": ["shop.t"], "drop": ["insert"]}]),
        sending(records={"partition_by": "single"}),
        sending(kafka={"bootstrap": "h:9092", "topic": "sales.{db}.{table}"}),
        sending(records=aside),
        sending(records=aside, kafka=large),
        sending(records=aside | {"headers": ["op"]}),
        sending(records=aside | {"transactions": True}),
    ]
    assert len({first, *others}) == len(others) + 1


def test_gaps_by_such_starts_are_one_gap_and_none_is_forgotten_unseen() -> None:
    known = checkpoint()
    for pos in range(10, 100):
        known = known.without_snapshots((0, 1, pos))
    assert len(known.earlier) == 1
    assert known.since("shop", "t") == (0, 1, 99)
    assert known.forgotten is None
    for n in range(2 * KEPT):
        known = known.model_copy(update={"pos": 200 + n}).following(Tables(include=(f"shop.t{n}",)))
    assert known.forgotten == (0, 1, 200 + KEPT - 1)


@pytest.mark.parametrize(("last", "gap"), [(None, True), ((0, 1, 40), True), ((0, 1, 60), False)])
def test_the_lake_takes_what_was_forgotten_unseen_for_a_gap(last: Any, gap: bool) -> None:
    from spark.lake.applied import Applied, AppliedSnapshots

    class Lake:
        def at(self, name: str) -> str:
            return name

        def read(self, path: str) -> Any:
            facts = Applied(id="1", p0="", p1="", rows=1, applied_at=0, floor=[0, 1, 30, -1, -1])
            return [["shop", "t", facts.model_dump(mode="json")]] if path == "_snapshots.json" else None

        def write(self, path: str, facts: Any) -> None: ...

    snapshots = AppliedSnapshots(Lake())  # type: ignore[arg-type]
    before = None if last is None else checkpoint(file="binlog.000001", pos=last[2])
    snapshots.find_gaps(checkpoint(pos=90, forgotten=(0, 1, 50)), before)
    assert snapshots.gap(("shop", "t")) is gap
