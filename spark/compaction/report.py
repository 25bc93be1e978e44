"""What a compaction's report says, and what of it is told while it runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from contract.counted import counted
from contract.status import LakeStatus
from spark.job import JobFailedError
from spark.lake.letters import Letters
from spark.lake.stopped import Name

FAULTS = ("stopped", "unequal", "stale", "outdated", "unread", "ahead", "foreign")  # of a table's facts


def put_aside(letters: Letters, count: int, last: LakeStatus | None) -> int:
    """How many records since the last run that came to its end: what one put aside that was killed, this one tells."""
    new = count - (last.unreadable if last else 0)
    if new:
        print(f"{new:,} record(s) that are no change were put aside in {letters.table}", flush=True)
    return new


def nulled(values: Mapping[Name, int]) -> dict[str, int]:
    """How many of this run by table, told too."""
    counts = {".".join(name): count for name, count in sorted(values.items())}
    for name, count in counts.items():
        told = f"{count:,} value(s) that the lake's types cannot hold are null there (lake.unrepresentable)"
        print(f"{name}: {told}", flush=True)
    return counts


def facts_of(status: LakeStatus, counts: dict[str, Any], evolved: list[str]) -> dict[str, Any]:
    checkpoint = status.checkpoint
    facts = {
        **counts,
        "seconds": status.seconds,
        "complete_to": checkpoint.gtid_set if checkpoint else None,
        "complete_to_ms": checkpoint.ts_ms if checkpoint else None,
        "schema_changes": evolved,
        "tables": {
            name: {
                "rows": None if t.changes_only else t.rows,
                "changes": t.changes_last_run,
                "snapshot": t.snapshot is not None,
                "stopped": t.stopped,
                "unequal": t.unequal,
                "stale": t.stale.reason if t.stale else None,
                "outdated": t.outdated,
                "unread": t.unread,
                "ahead": t.ahead,
                "foreign": t.foreign.reason if t.foreign else None,
                **({"next_try_ms": t.next_try_ms} if t.next_try_ms else {}),
                **({"changes_only": True} if t.changes_only else {}),
            }
            for name, t in status.tables.items()
        },
    }
    stopped = [t.stopped for t in status.tables.values() if t.stopped]
    if stopped:
        many = f"{counted(len(stopped), 'table')} stopped, the others are complete: " if len(status.tables) > 1 else ""
        raise JobFailedError(many + "; ".join(stopped), facts)
    return facts


def of_a_round(facts: dict[str, Any]) -> dict[str, Any]:
    """The facts with those tables alone that had changes, or are at fault, and how many others there are: a loop tells
    them every few seconds, and the ten facts of each of 200 tables would be some 600 MB of log a day."""
    tables = facts["tables"]
    named = {name: one for name, one in tables.items() if one["changes"] or any(one[fault] for fault in FAULTS)}
    return {**facts, "tables": named, "other_tables": len(tables) - len(named)}
