"""Texts of a key in their columns' character sets, by the server's own conversion.

A comparison with a text that the column's character set cannot write fails, and the error may have the text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from contract import types
from contract.schema import Column

Ask = Callable[[str], Sequence[Any] | None]  # runs SQL, and gives the first row
Text = tuple[str | None, str]  # a character set, and a text


def converted(column: Column) -> bool:
    """Whether the column may lack some character of a text."""
    return column.charset not in (None, "utf8mb4", "binary") and types.of(column).spark == "string"


def coded_of(texts: Sequence[Text], ask: Ask) -> dict[Text, str]:
    """The texts in hexadecimal, each in its character set. One that cannot be written in it is that of no row, or of
    one that nobody asked for."""
    return dict(zip(texts, _asked([_in(*one) for one in texts], ask), strict=True))


def writable(texts: Sequence[Text], ask: Ask) -> bool:
    """Whether each of them is the same when it comes back from its character set."""
    back = _asked([f"convert({_in(*one)} using utf8mb4)" for one in texts], ask)
    return [one.lower() for one in back] == [text.encode().hex() for _, text in texts]


def _in(charset: str | None, text: str) -> str:
    return f"convert(_utf8mb4 x'{text.encode().hex()}' using {charset})"


def _asked(each: Sequence[str], ask: Ask) -> list[str]:
    found = ask(f"SELECT {', '.join(f'hex({one})' for one in each)}") if each else ()
    return [value.decode() if isinstance(value, bytes) else value for value in found or ()]
