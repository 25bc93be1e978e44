"""What a server says of one table that it cannot read, while it answers for all others.

The numbers are those of MySQL's and MariaDB's error references; Spark's readers pass them on as JDBC's vendor codes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pymysql

from spark.errors import TableError, chain, reason
from spark.source.row_texts import LONGER

ENGINE, FULL = 1030, "error 28"  # that is the server's disk, which is full for all tables
OWN = frozenset({
    1016,  # its file cannot be opened
    1017,  # or found
    ENGINE,  # it gave an error
    1033,  # the file has wrong information
    1034, 1035,  # the key file is of another table, or an old one
    1194, 1195,  # it is marked as crashed
    1142, 1143,  # the user may not read it, or a column of it
    1286,  # its storage engine is not there
    1356,  # what it is made of is not there
    1365, 1690,  # an expression of a column of it fails, as a difference below zero of unsigned ones does
    1712,  # an index of it is corrupted
    1812, 1814,  # its tablespace is missing, or was discarded
    1877,  # it is not there in the tablespace
    1932,  # the storage engine does not have it
    3185,  # its tablespace is encrypted, and the key is not to be had
})  # fmt: skip


def unreadable(name: str, error: BaseException, job: str) -> TableError | None:
    """None where the failure is another than that the server cannot read the table, or give one of its rows. `job`:
    what is to be run again, as "the snapshot"."""
    if any(LONGER in said for said in chain(error)):
        return TableError(f"{name}: a row of it {LONGER}, then run {job} again")
    code = next((code for code in _codes(error) if code in OWN), None)
    if code is None or (code == ENGINE and FULL in _said(error)):
        return None
    return TableError(
        f"{name}: the server cannot read this table (error {code}: {_said(error)}). Mend it there (CHECK TABLE says "
        f"what is wrong, SHOW GRANTS what the user may read), or exclude it, then run {job} again"
    )


def _said(error: BaseException) -> str:
    own = isinstance(error, pymysql.MySQLError) and len(error.args) > 1
    return str(error.args[1]) if own else reason(error)


def _codes(error: BaseException) -> Iterator[int]:
    """Of the error and its causes, Java's after Python's."""
    known: BaseException | None = error
    while known is not None:
        if isinstance(known, pymysql.MySQLError) and known.args and isinstance(known.args[0], int):
            yield known.args[0]
        yield from _java(getattr(known, "_origin", None) or getattr(known, "java_exception", None))
        known = known.__cause__ or known.__context__


def _java(cause: Any) -> Iterator[int]:
    while cause is not None:
        if "SQL" in cause.getClass().getSimpleName():
            yield int(cause.getErrorCode())
        cause = cause.getCause()
