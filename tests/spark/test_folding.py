"""What comes to the driver of a table's changes, and that less of it finds the same boundary."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from contract.pipeline_columns import Columns
from contract.sequence import SPARK_TYPE
from spark.proof import rewind
from spark.proof.answer import Answer
from spark.proof.boundary import Read, match, relevant
from spark.proof.checksum import Total
from spark.proof.finding import found_of
from spark.proof.folding import shown, steps_of
from spark.proof.rewind import Past, Step
from spark.proof.splits import Ranges
from tests.checkpoints import SOURCE
from tests.spark.changes_by_hand import ITEMS, compact_json

CHUNKS = 5
SPLIT = Ranges((ITEMS.columns[0],), [(str(100 * n),) for n in range(1, CHUNKS)])
CHANGE = f"before string, after string, schema int, _seq {SPARK_TYPE}, gtid string, op string"
KINDS = {"id": "bigint", "name": "string", "price": "decimal(10,2)"}
END = (1, 0, 0)


def place(number: int) -> tuple[int, int, int]:
    """Of a transaction: over two binlog files."""
    return 0, 1 + number // 30, 100 * number


def transaction(number: int, *rows: tuple[int | None, int | None]) -> list[tuple[Any, ...]]:
    """Of each row its id before and after."""

    def image(id: int | None) -> str | None:
        return None if id is None else compact_json({"id": id, "name": f"n{number}", "price": "1"})

    seq = place(number)
    return [
        (image(before), image(after), 1, (*seq, 0, at), f"{SOURCE}:{number}", "u")
        for at, (before, after) in enumerate(rows)
    ]


def past_of(spark: SparkSession, changes: list[tuple[Any, ...]]) -> Past:
    shape = ITEMS.model_copy(update={"version": 1})
    return Past(spark.createDataFrame(changes, CHANGE), [shape], ITEMS, KINDS, place(1))


def some_transactions(rng: random.Random, count: int) -> list[tuple[Any, ...]]:
    def id() -> int | None:
        return rng.choice([None, rng.randrange(1, 100 * CHUNKS)])

    return [row for n in range(1, count) for row in transaction(n, *((id(), id()) for _ in range(rng.randrange(3))))]


def read_of(
    rng: random.Random, groups: Sequence[int], now: dict[int, Total], walk: Sequence[Step], exact: bool
) -> Read:
    """At one of the boundaries, mostly as the lake has it there."""
    at = rng.randrange(2, 80)
    totals = {group: now.get(group, Total()) for group in groups}
    for step in walk:
        for group in totals:
            if step.at > place(at) and group in step.deltas:
                totals[group] = totals[group].minus(step.deltas[group])
    if rng.random() < 0.3:
        group = rng.choice(groups)
        totals[group] = totals[group].plus(Total(0, 1))
    if exact:
        return Read(totals, "", place(at + 1), exact=True)
    seen = rng.choice(["", f"{SOURCE}:1-{rng.randrange(1, at + 1)}", f"{SOURCE}:1-{at}"])
    return Read(totals, seen, place(at + rng.randrange(1, 20)))


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(n, marks=pytest.mark.soak) for n in range(2, 9))])
def test_the_same_boundary_is_found_as_by_every_transaction(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, seed: int, exact: bool
) -> None:
    rng = random.Random(seed)
    monkeypatch.setattr(rewind, "SPREAD", [1, 2, 4, 8, 1024][seed])
    past = past_of(spark, some_transactions(rng, 100))
    walk = past.steps(END, SPLIT.number)
    now = {group: Total(rng.randrange(1000), rng.randrange(10**6)) for group in range(CHUNKS - 1)}
    for _ in range(3):
        reads = [read_of(rng, groups, now, walk, exact) for groups in ([0], [1], [2, 3])]  # and none of the last chunk
        high = max(read.high for read in reads)
        all_of_them, folded = past.steps(high, SPLIT.number), steps_of(past, SPLIT, reads)
        for read in reads:
            one, other = (match(read, now, relevant(read, steps)) for steps in (all_of_them, folded))
            assert (other.gtid, other.states, other.wrong) == (one.gtid, one.states, one.wrong)
        answer = Answer(Columns().show(ITEMS), SPLIT, reads)
        one, other = (replace(found_of(answer, now, steps, None), seconds=0) for steps in (all_of_them, folded))
        assert other == one
        assert sum(len(step.deltas) for step in folded) <= sum(len(step.deltas) for step in all_of_them)


def test_what_comes_to_the_driver_does_not_grow_with_the_time_of_the_check(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hot table whose chunks are read one after the other, an age behind the check's begin."""
    monkeypatch.setattr(rewind, "SPREAD", 8)
    count = 3_000
    changes = [row for n in range(1, count) for row in transaction(n, (None, 1 + n * 97 % (100 * CHUNKS)))]
    past = past_of(spark, changes)
    reads = [
        Read({group: Total()}, f"{SOURCE}:1-{1000 + 300 * group}", place(1003 + 300 * group)) for group in range(CHUNKS)
    ]
    assert sum(len(step.deltas) for step in past.steps(END, SPLIT.number)) == count - 1
    # Of each chunk the two sums, and what may be about its read.
    assert sum(len(step.deltas) for step in steps_of(past, SPLIT, reads)) < 20 * CHUNKS


def test_what_a_read_shows_for_certain_is_before_its_end() -> None:
    some = [(place(n), f"{SOURCE}:{n}") for n in (10, 20, 30, 40)]
    assert shown(Read({}, f"{SOURCE}:1-35", place(60)), some) == place(30)
    assert shown(Read({}, f"{SOURCE}:1-35", place(30)), some) == place(20), "which the set alone would pass"
    assert shown(Read({}, f"{SOURCE}:1-5", place(60)), some) is None
    assert shown(Read({}, "", place(60)), some) is None
    assert shown(Read({}, "", place(60), exact=True), some) == place(60)
