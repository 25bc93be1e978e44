"""The result of a job in words: of a check what differs, of a compaction which tables are stopped. In: its report
(contract/jobs.py). Light: no Spark, no GX."""

from __future__ import annotations

from typing import Any

from contract.counted import counted

SUITES = "suite files"  # stands where a table's name does, for faults of the files that check it
WORDS = {
    "missing": ("row", " missing in the lake"), "extra": ("row", " that the source does not have"),
    "changed": ("row", " changed"), "duplicate": ("row", " twice in the lake"), "chunk": ("whole chunk", " of rows"),
}  # fmt: skip
PAIRS = (("source_count", "lake_count", "rows"), ("source_checksum", "lake_checksum", "checksum"))


def differences(result: dict[str, Any]) -> dict[str, str]:
    """`db.table` -> what is not as it should be; empty where all is well."""
    found: dict[str, list[str]] = {}
    for table, facts in (result.get("tables") or {}).items():
        if isinstance(facts, dict) and facts.get("equal") is False:
            found.setdefault(table, []).append(_unequal(facts))
        elif isinstance(facts, dict) and facts.get("stopped"):
            found.setdefault(table, []).append(f"stopped: {facts['stopped']}")
    for table, facts in ((result.get("expectations") or {}).get("tables") or {}).items():
        found.setdefault(table, []).extend(_failed(one) for one in facts.get("failed", ()))
    if files := (result.get("expectations") or {}).get("files"):
        found[SUITES] = list(files)
    return {table: "; ".join(texts) for table, texts in found.items() if texts}


def unjudged(result: dict[str, Any]) -> dict[str, str]:
    """`db.table` -> of what its expectations were not asked, and why: another check is to tell."""
    tables = ((result.get("expectations") or {}).get("tables") or {}).items()
    found = {table: facts["unjudged"] for table, facts in tables if facts.get("unjudged")}
    return {table: "; ".join(f"{what}: {why}" for what, why in left.items()) for table, left in found.items()}


def _unequal(facts: dict[str, Any]) -> str:
    pairs = [
        f"{word} {facts[source]} in the source, {facts[lake]} in the lake"
        for source, lake, word in PAIRS
        if None not in (facts.get(source), facts.get(lake)) and facts[source] != facts[lake]
    ]
    told = [*pairs, *_rows(facts), *([str(facts["reason"])] if facts.get("reason") else [])]
    return ", ".join(told) or "not equal"


def _rows(facts: dict[str, Any]) -> list[str]:
    """How many rows differ, in which columns, by which check it was first seen; their keys are in the lake alone."""
    if not (counts := by_kind(facts)):
        return []
    since = f", first seen {facts['since']}" if facts.get("since") else ""
    pinned = " (keys in _differences of the lake)" if {*facts["differences"]} - {"chunk"} else ""
    return [f"{counts}{since}{pinned}"]


def by_kind(facts: dict[str, Any]) -> str:
    """How many rows differ, in which way and columns; empty where none does."""
    found = facts.get("differences") or {}
    columns = {"changed": f" in {', '.join(facts['columns'])}"} if facts.get("columns") else {}
    return ", ".join(
        f"{counted(found[kind], what)}{which}{columns.get(kind, '')}"
        for kind, (what, which) in WORDS.items()
        if kind in found
    )


def _failed(expectation: dict[str, Any]) -> str:
    where = f" of {expectation['column']}" if expectation.get("column") else ""
    if expectation.get("raised"):
        return f"{expectation['expectation']}{where} could not be judged: {expectation['observed']}"
    seen = f": found {expectation['observed']}" if expectation.get("observed") not in (None, "") else ""
    wanted = f", wanted {expectation['expected']}" if expectation.get("expected") not in (None, "") else ""
    return f"{expectation['expectation']}{where}{seen}{wanted}"


def describe(result: dict[str, Any]) -> str:
    """One paragraph that names every table at fault and its difference; empty where all is well."""
    return " | ".join(f"{table}: {text}" for table, text in differences(result).items())
