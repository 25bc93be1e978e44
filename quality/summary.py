"""A job's report as lines for a person, in a task's log and at a terminal: one line a table, the figures under each
other. Light: no Spark, no GX."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from contract.counted import counted
from quality.report import differences, unjudged

DAY_MS = 86_400_000  # more of them than that are a time, not a duration
HIDDEN = {"job", "pipeline", "ok", "error", "tables", "lake_run", "named", "again", "seconds"}
LONG = 60  # characters, of which no column is made
# Of a check's tables: checksums, chunks and seconds are in its JSON, and in `_checks` of the lake.
PROVEN = ("equal", "source_count", "lake_count", "reason")
FACTS = {
    "other_tables": "tables without changes: {}", "unreadable": "{} records put aside",
    "nulled": "{} values that the lake has as null", "freed_bytes": "{} bytes freed",
    "landing_seconds": "changes landed after {} s", "compacted_seconds": "compacted for {} s",
    "freshness_seconds": "{} s behind the source", "complete_to": "complete up to {}", "complete_to_ms": "as of {}",
    "p0": "begun behind {}", "p1": "read up to {}", "source": "rows out of {}", "until": "erased up to {}",
}  # fmt: skip
NULLED = "{name}: equal, where NULL stands for {values} that the lake's types cannot hold (lake.unrepresentable)"
COUNTED = {"rows": "row", "changes": "change", "rounds": "round"}
COLUMNS = {
    "source_count": "rows in the source", "lake_count": "rows in the lake", "freshness_ms": "fresh up to",
    "next_try_ms": "tried again at",
}  # fmt: skip


def lines(result: dict[str, Any], faults: bool = True) -> Iterator[str]:
    """First the job and what it said of itself, then a table of its tables. `faults`: also what is not as it should be
    of each, for who is not told by the job's error."""
    yield ", ".join([f"{result['job']} of {result['pipeline']}: {_ended(result)}", *_facts(result)])
    tables = result.get("tables")
    if isinstance(tables, dict) and tables and all(isinstance(facts, dict) for facts in tables.values()):
        shown = {name: _proven(one) for name, one in tables.items()} if result["job"] == "verify" else tables
        yield from _grid(shown)
        yield from _reasons(shown)
    yield from (f"still there: {told}" for told in result.get("remains") or ())
    yield from (f"schema change: {told}" for told in result.get("schema_changes") or ())
    yield from (f"held back: {told}" for told in result.get("held_back") or ())
    yield from (f"warning: {told}" for told in result.get("warnings") or ())
    if isinstance(result.get("expectations"), dict):
        checked = result["expectations"].get("tables", {}).values()
        count = sum(table["evaluated"] for table in checked)
        yield f"expectations: {count} evaluated, {sum(len(table['failed']) for table in checked)} failed"
        yield from (f"{table}: no expectation checks {told}" for table, told in unjudged(result).items())
        yield from (f"warning: {told}" for told in result["expectations"].get("unused") or ())
    if isinstance(tables, dict):
        proven = {name: facts for name, facts in tables.items() if isinstance(facts, dict) and facts.get("equal")}
        doubts = [(name, told) for name, facts in proven.items() for told in facts.get("doubts") or ()]
        yield from (f"{name}: equal, but {told}" for name, told in doubts)
        nulled = [(name, facts["nulled"]) for name, facts in proven.items() if facts.get("nulled")]
        yield from (NULLED.format(name=name, values=counted(count, "value")) for name, count in nulled)
    for table, fault in differences(result).items() if faults else ():
        yield f"{table}: {fault}"


def _ended(result: dict[str, Any]) -> str:
    seconds = result.get("seconds")
    return ("done" if result["ok"] else "failed") + (f" in {_text(seconds, '')} s" if seconds is not None else "")


def _facts(result: dict[str, Any]) -> Iterator[str]:
    """What the job said of itself, in words."""
    if result.get("again"):
        yield "another run may do better"
    for key, value in result.items():
        if _flat(key, value) and value not in ("", 0):
            many = COUNTED.get(key)
            told = FACTS.get(key, f"{key.replace('_', ' ')} {{}}").format(_text(value, key))
            yield counted(value, many) if many else told


def _reasons(tables: dict[str, dict[str, Any]]) -> Iterator[str]:
    """What is too long for a column; of a table that differs, or is stopped, that is told with the other faults."""
    for name, facts in sorted(tables.items()):
        for key, value in facts.items():
            fault = key == "stopped" or (key == "reason" and facts.get("equal") is False)
            if _flat(key, value) and _long(value) and not fault:
                yield f"{name}: {value}" if value.startswith(key) else f"{name}: {key}: {value}"


def _proven(facts: dict[str, Any]) -> dict[str, Any]:
    compared = facts.get("chunks_compared"), facts.get("chunks")
    sample = {"chunks_compared": f"{compared[0]} of {compared[1]}"} if compared[0] != compared[1] else {}
    return {key: facts[key] for key in PROVEN if key in facts} | sample


def _long(value: Any) -> bool:
    return isinstance(value, str) and len(value) > LONG


def _flat(key: str, value: Any) -> bool:
    return key not in HIDDEN and not isinstance(value, dict | list) and value is not None


def _grid(tables: dict[str, dict[str, Any]]) -> Iterator[str]:
    shown = {name: {k: v for k, v in facts.items() if _flat(k, v) and not _long(v)} for name, facts in tables.items()}
    columns = list(dict.fromkeys(key for facts in shown.values() for key in facts))
    rows = [["table", *(COLUMNS.get(column, column.replace("_", " ")) for column in columns)]]
    rows += [[name, *(_text(facts.get(column), column) for column in columns)] for name, facts in sorted(shown.items())]
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _text(value: Any, name: str) -> str:
    if value is None:
        return "-"
    if name.endswith("_ms") and value > DAY_MS:
        return f"{datetime.fromtimestamp(value / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.1f}" if isinstance(value, float) else str(value)
