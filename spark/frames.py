"""Where an error came from, without what it says: a message may have a row's value, lines of code have none."""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

MOST = 30  # frames of each error, the innermost ones


def frames(errors: Iterable[BaseException]) -> str:
    """Of an error and its causes, each Python's and then Java's."""
    return "".join(line for error in errors for line in _of(error)).rstrip()


def _of(error: BaseException) -> Iterator[str]:
    yield f"{type(error).__name__}:\n"
    yield from traceback.format_tb(error.__traceback__)[-MOST:]
    with suppress(Exception):  # a Java that has died tells nothing
        yield from _java(getattr(error, "_origin", None) or getattr(error, "java_exception", None))


def _java(cause: Any) -> Iterator[str]:
    while cause is not None:
        yield f"{cause.getClass().getName()}:\n"
        yield from (f"  at {frame}\n" for frame in list(cause.getStackTrace())[:MOST])
        cause = cause.getCause()
