"""A time as a person writes it: in the pipeline file, on the command line, in a form."""

from __future__ import annotations

from datetime import UTC, datetime


def moment(text: str) -> datetime:
    """In UTC. Raises ValueError for what is no time, or one without its zone."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is no time: write it such as 2026-11-22T10:42:00Z") from None
    if found.tzinfo is None:
        raise ValueError(f"the time {text} has no zone: add Z for UTC, or +02:00 and its like")
    try:
        return found.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"the time {text} is in no year that a calendar has") from None
