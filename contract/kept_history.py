"""Since when the lake has the changes of tables of which older ones were removed: one small file of the lake.

It is written before the changes go. So who has read the changes, and this file after them, knows which may be missing.
"""

from __future__ import annotations

from datetime import UTC, datetime

from pydantic import BaseModel, ConfigDict

FILE = "_history.json"


class Kept(BaseModel):
    """`begins`: Unix ms UTC, the beginning of a day; every change of then or later is there. `removed`: how many of
    before were. `gone`: the greatest `_seq` of those, None where an earlier version of Headrace removed them. Since
    commit times do not only grow, there may be older ones behind it, and they are there."""

    model_config = ConfigDict(frozen=True)

    begins: int
    removed: int
    gone: tuple[int, ...] | None = None

    @property
    def since(self) -> datetime:
        return datetime.fromtimestamp(self.begins / 1000, UTC)


class KeptHistory(BaseModel):
    """`tables`: by `db.table`; of those that are not in it nothing was removed."""

    model_config = ConfigDict(frozen=True)

    tables: dict[str, Kept] = {}

    def since(self, table: str) -> datetime | None:
        kept = self.tables.get(table)
        return kept.since if kept else None


def parse(text: str | None) -> KeptHistory:
    """None: there is no such file."""
    return KeptHistory.model_validate_json(text) if text else KeptHistory()
