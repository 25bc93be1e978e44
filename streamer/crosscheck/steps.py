"""What a reader finds in a binlog, in one form for both readers: rows, DDL and the ends of transactions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from contract.schema import Column

Image = dict[str, Any]  # by the columns' names


@dataclass(frozen=True)
class Rows:
    """One rows event. `images`: for an update before, after, before, after. `key`: its columns, sorted. `columns`: of
    ours alone. `failed`: why the reader could not give the images."""

    op: str
    table: str
    key: tuple[str, ...]
    images: list[Image]
    columns: dict[str, Column] | None = None
    failed: str = ""


@dataclass(frozen=True)
class Statement:
    text: str


@dataclass(frozen=True)
class End:
    """`gtid`: empty where the reader cannot tell. `lacks`: known defects by which the reader passed a part by."""

    gtid: str
    xid: int | None
    lacks: frozenset[str] = frozenset()


Step = Rows | Statement | End
