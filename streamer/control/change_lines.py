"""A change as a line for a person: what it is, its key, and the columns that it changed."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from rich.text import Text

from streamer.tail import Change

OPS = {
    "c": ("insert", "green"),
    "u": ("update", "yellow"),
    "d": ("delete", "red"),
    "t": ("truncate", "bold red"),
    "r": ("read", "blue"),
}
LONGEST = 200  # characters of a value


def line(change: Change) -> Text:
    word, colour = OPS.get(str(change.value.get("op")), (str(change.value.get("op")), ""))
    at = datetime.fromtimestamp(change.value["source"].get("ts_ms", 0) / 1000, UTC)
    text = Text.assemble((f"{at:%H:%M:%S}.{at.microsecond // 1000:03} ", "dim"), (f"{word:8} ", colour))
    text.append(change.table, "bold")
    key = change.key or {}
    if key:
        text.append("  " + " ".join(f"{name}={_told(value)}" for name, value in key.items()), "cyan")
    before, after = change.value.get("before") or {}, change.value.get("after") or {}
    for name in {**before, **after}:
        if name not in key:
            _column(text, name, before, after, colour)
    return text


def _column(text: Text, name: str, before: dict[str, Any], after: dict[str, Any], colour: str) -> None:
    """Of an update, only what it changed."""
    old, new = before.get(name), after.get(name)
    if before and after:
        if old == new:
            return
        text.append(f"  {name}: ", "dim").append(_told(old), "red").append(" → ", "dim").append(_told(new), "green")
    else:
        text.append(f"  {name}: ", "dim").append(_told(new if after else old), colour)


def _told(value: Any) -> str:
    told = json.dumps(value, ensure_ascii=False)
    return told if len(told) <= LONGEST else f"{told[:LONGEST]}… ({len(told):,} characters)"
