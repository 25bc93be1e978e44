"""At which commit the lake is what the source answered. Pure: a read, the lake's totals now, and what came since.

A consistent read of the source shows the state at one commit boundary. That is known exactly (MariaDB), or to be
behind all transactions that were seen before the read and before all that began after it. Of a table without snapshot
reads one statement does, and is known to be before what began after it, no more (instant.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from contract import gtids
from spark.proof.checksum import Total, sum_of
from spark.proof.rewind import Group, Position, Step

NOTHING = Total()


@dataclass(frozen=True)
class Read:
    """One consistent read of the source. `totals`: of every group it answers for, those without rows as well. `seen`: a
    GTID set that it shows at the least; `high`: a place in the binlog behind all that it shows; `exact`: it shows all
    that is before `high`. `at`: when it began, Unix seconds."""

    totals: Mapping[Group, Total]
    seen: str
    high: Position
    exact: bool = False
    at: float = 0.0

    @property
    def total(self) -> Total:
        return sum_of(self.totals.values())


@dataclass(frozen=True)
class Match:
    """The boundary at which the lake comes nearest to the read. `gtid`: of the transaction before it; empty where that
    is before all that are known. `states`: the lake's totals there; `wrong`: the groups that differ, none where it is
    proven; `at`: how many of the read's steps are before it."""

    gtid: str
    states: Mapping[Group, Total]
    wrong: frozenset[Group]
    at: int


def relevant(read: Read, steps: Sequence[Step]) -> list[Step]:
    """The steps as far as they are about the read's groups."""
    found = []
    for step in steps:
        deltas = {group: delta for group, delta in step.deltas.items() if group in read.totals}
        if deltas:
            found.append(Step(step.at, step.gtid, deltas))
    return found


def match(read: Read, now: Mapping[Group, Total], steps: Sequence[Step]) -> Match:
    """`steps`: of `relevant`, in order. Of boundaries that are equally near, the last."""
    first, last = window(read, steps)
    states = {group: now.get(group, NOTHING) for group in read.totals}
    for step in steps[first:]:
        _apply(states, step, -1)
    wrong = {group for group, state in states.items() if state != read.totals[group]}
    best, fewest = first, len(wrong)
    for at in range(first, last):
        if not wrong:
            break
        _apply(states, steps[at], 1)
        for group in steps[at].deltas:
            (wrong.discard if states[group] == read.totals[group] else wrong.add)(group)
        if len(wrong) <= fewest:
            best, fewest = at + 1, len(wrong)
    if not wrong:
        return Match(_gtid(steps, best), states, frozenset(), best)
    states = {group: now.get(group, NOTHING) for group in read.totals}
    for step in steps[best:]:
        _apply(states, step, -1)
    wrong = {group for group, state in states.items() if state != read.totals[group]}
    return Match(_gtid(steps, best), states, frozenset(wrong), best)


def window(read: Read, steps: Sequence[Step]) -> tuple[int, int]:
    """How many of the steps are before the read's boundary: at the least, at the most."""
    known = [step for step in steps if step.gtid is not None and step.at < read.high]
    last = len(known)
    if read.exact:
        return last, last
    if not read.seen:
        return 0, last
    seen = gtids.parse(read.seen)
    first = next((n + 1 for n in reversed(range(last)) if seen.contains(known[n].gtid or "")), 0)
    return first, last


def _apply(states: dict[Group, Total], step: Step, sign: int) -> None:
    for group, delta in step.deltas.items():
        states[group] = states[group].plus(delta) if sign > 0 else states[group].minus(delta)


def _gtid(steps: Sequence[Step], at: int) -> str:
    return (steps[at - 1].gtid or "") if at else ""
