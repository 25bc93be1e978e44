"""What a replica leaves out of its source's changes, by filters of its own, as its status tells.

Filters are as servers show them, and mean what they mean for row events: a database is the table's own. Of names that
differ by small and capital letters alone one is not taken for the other where that would let a table pass.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

Status = Mapping[str, Any]  # of one channel
EVERYTHING = ("Replicate_Do_Domain_Ids", "Replicate_Ignore_Domain_Ids", "Replicate_Ignore_Server_Ids")
BY_TABLE = ("Replicate_Do_Table", "Replicate_Ignore_Table", "Replicate_Wild_Do_Table", "Replicate_Wild_Ignore_Table")
REWRITE = "Replicate_Rewrite_DB"
WILD = re.compile(r"\\(.)|(%)|(_)|(.)", re.DOTALL)


def left_out(status: Iterable[Status], server_id: int, db: str, table: str) -> str | None:
    """The filter of the replica of `server_id` by which rows of the table may be missing, as an option; None where
    none are."""
    return next((found for one in _reading(status, server_id) if (found := filter_of(one, db, table))), None)


def _reading(status: Iterable[Status], server_id: int) -> list[Status]:
    """The channels that read this server; all, where there is another in between."""
    rows = list(status)
    own = [row for row in rows if any(n.endswith("_Server_Id") and int(row[n] or 0) == server_id for n in row)]
    return own or rows


def filter_of(status: Status, db: str, table: str) -> str | None:
    """The filter by which rows of the table may be missing, as an option; None where none are."""
    found = (*_of_databases(status, db), _of_tables(status, f"{db}.{table}"))
    return next((_option(status, name) for name in found if name), None)


def _of_databases(status: Status, db: str) -> Iterator[str]:
    yield from (name for name in EVERYTHING if _values(status, name))
    rewritten = re.split(r"->|[(),]", str(status.get(REWRITE) or ""))  # (from,to) or from->to
    if db.lower() in (one.strip().lower() for one in rewritten):
        yield REWRITE
    wanted = _values(status, "Replicate_Do_DB")
    if wanted and db not in wanted:
        yield "Replicate_Do_DB"
    if db.lower() in map(str.lower, _values(status, "Replicate_Ignore_DB")):
        yield "Replicate_Ignore_DB"


def _of_tables(status: Status, name: str) -> str | None:
    """The first that means the table decides, in the servers' order; where none does, one that names what is wanted."""
    for rule in BY_TABLE:
        do = "Do" in rule
        if any(map(_meaning(name, "Wild" in rule, exactly=do), _values(status, rule))):
            return None if do else rule
    return next((rule for rule in BY_TABLE if "Do" in rule and _values(status, rule)), None)


def _meaning(name: str, wild: bool, exactly: bool) -> Callable[[str], bool]:
    flags = re.DOTALL if exactly else re.DOTALL | re.IGNORECASE
    return lambda told: re.fullmatch(WILD.sub(_regex, told) if wild else re.escape(told), name, flags) is not None


def _regex(found: re.Match[str]) -> str:
    escaped, many, one, plain = found.groups()
    return ".*" if many else "." if one else re.escape(escaped or plain)


def _values(status: Status, name: str) -> list[str]:
    return [one.strip() for one in str(status.get(name) or "").split(",") if one.strip()]


def _option(status: Status, name: str) -> str:
    return f"{name.lower().replace('_', '-')}={status[name]}"
