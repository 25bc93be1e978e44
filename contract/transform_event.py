"""What a transform sees of one change of a row."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

Image = dict[str, Any]


class Event:
    """One change. A transform may set or edit `before`, `after`, `key` and `topic`; the rest only tells.

    `before`, `after`: the row's images, column -> value as in the record's JSON; None where the change has none. `key`:
    the record's key, None for a table without one. `topic`: where the record goes. `op`: `c`, `u`, `d`, or `r` of a row
    that a snapshot reads. `source`: the facts of the record's `source`, read-only.
    """

    __slots__ = ("_db", "_op", "_source", "_table", "after", "before", "key", "topic")

    def __init__(
        self, op: str, db: str, table: str, key: Image | None, before: Image | None, after: Image | None, topic: str,
        source: Mapping[str, Any],
    ) -> None:  # fmt: skip
        self._op, self._db, self._table = op, db, table
        self.key, self.before, self.after, self.topic = key, before, after, topic
        self._source = source if isinstance(source, MappingProxyType) else MappingProxyType(dict(source))

    @property
    def op(self) -> str:
        return self._op

    @property
    def db(self) -> str:
        return self._db

    @property
    def table(self) -> str:
        return self._table

    @property
    def source(self) -> Mapping[str, Any]:
        return self._source

    def copy(self) -> Event:
        """Whose images can be edited apart from this one's."""
        before, after, key = (
            None if image is None else _copied(image) for image in (self.before, self.after, self.key)
        )
        return Event(self._op, self._db, self._table, key, before, after, self.topic, self._source)

    def __repr__(self) -> str:
        """Without the row's data, which must not get into logs."""
        return f"<Event {self._op} {self._db}.{self._table}>"


def _copied(image: Image) -> Image:
    return {name: value.copy() if isinstance(value, list | dict) else value for name, value in image.items()}
