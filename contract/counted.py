"""A number of things in words, as messages have it."""

from __future__ import annotations


def counted(number: int, thing: str) -> str:
    """`thing` in the singular, such as "row", whose plural has an s: "1 row", "1,200 rows"."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
