"""What the records of a compacted topic say. Kafka keeps the last one of each key: one that cannot be read and that
another of its key stands behind is as good as gone, and stops nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from pydantic import ValidationError

T = TypeVar("T")
Record = tuple[Any, ...]  # key, value, and whatever is known of it


class UnreadableError(ValueError):
    """A record that cannot be read and counts. `str(error)`: why, in one line."""

    def __init__(self, record: Record, why: str) -> None:
        super().__init__(why)
        self.record = record


def understood(records: Iterable[Record], parse: Callable[[bytes], T]) -> Iterator[T]:
    """In order, without tombstones. `parse` raises ValueError for what it cannot read. Raises UnreadableError."""
    found = list(records)
    last = {record[0]: at for at, record in enumerate(found)}
    for at, record in enumerate(found):
        if record[1] is None:
            continue
        try:
            yield parse(record[1])
        except ValueError as error:
            if last[record[0]] == at:
                raise UnreadableError(record, why(error)) from None


def why(error: ValueError) -> str:
    """In one line, without the value: it may be anybody's."""
    if not isinstance(error, ValidationError):
        return str(error).partition("\n")[0]
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(map(str, first["loc"]))
    return f"{where}: {first['msg']}" if where else first["msg"]
