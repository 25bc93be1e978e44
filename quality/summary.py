"""A job's report as lines for a person, in a task's log and at a terminal: one line a table, the figures under each
other. Light: no Spark, no GX."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from quality.report import differences, unjudged

DAY_MS = 86_400_000  # more of them than that are a time, not a duration
HIDDEN = {"job", "pipeline", "ok", "error", "tables", "lake_run"}


def lines(result: dict[str, Any]) -> Iterator[str]:
    """First the job and what it said of itself, then a table of its tables."""
    facts = ", ".join(f"{key} {_text(value, key)}" for key, value in result.items() if _flat(key, value))
    yield f"{result['job']} of {result['pipeline']}: {'done' if result['ok'] else 'failed'}" + (
        f", {facts}" if facts else ""
    )
    tables = result.get("tables")
    if isinstance(tables, dict) and tables and all(isinstance(facts, dict) for facts in tables.values()):
        yield from _grid(tables)
    yield from (f"still there: {told}" for told in result.get("remains") or ())
    yield from (f"schema change: {told}" for told in result.get("schema_changes") or ())
    yield from (f"held back: {told}" for told in result.get("held_back") or ())
    yield from (f"warning: {told}" for told in result.get("warnings") or ())
    if isinstance(result.get("expectations"), dict):
        checked = result["expectations"].get("tables", {}).values()
        count = sum(table["evaluated"] for table in checked)
        yield f"expectations: {count} evaluated, {sum(len(table['failed']) for table in checked)} failed"
        yield from (f"{table}: no expectation checks {told}" for table, told in unjudged(result).items())
    if isinstance(tables, dict):
        proven = {name: facts for name, facts in tables.items() if isinstance(facts, dict) and facts.get("equal")}
        doubts = [(name, told) for name, facts in proven.items() for told in facts.get("doubts") or ()]
        yield from (f"{name}: equal, but {told}" for name, told in doubts)
    for table, fault in differences(result).items():
        yield f"{table}: {fault}"


def _flat(key: str, value: Any) -> bool:
    return key not in HIDDEN and not isinstance(value, dict | list) and value is not None


def _grid(tables: dict[str, dict[str, Any]]) -> Iterator[str]:
    columns = list(dict.fromkeys(key for facts in tables.values() for key, value in facts.items() if _flat(key, value)))
    rows = [["table", *columns]]
    rows += [
        [name, *(_text(facts.get(column), column) for column in columns)] for name, facts in sorted(tables.items())
    ]
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
