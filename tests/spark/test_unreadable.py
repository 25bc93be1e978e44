"""Which failures are one table's, by the server's number for them."""

from __future__ import annotations

import pymysql
import pytest

from spark.source.row_texts import LONGER
from spark.source.unreadable import unreadable


class Java:
    def __init__(self, kind: str, code: int, cause: Java | None = None) -> None:
        self.kind, self.code, self.cause = kind, code, cause

    def getClass(self) -> Java:
        return self

    def getSimpleName(self) -> str:
        return self.kind

    def getErrorCode(self) -> int:
        return self.code

    def getMessage(self) -> str:
        return f"{self.kind} {self.code}"

    def getCause(self) -> Java | None:
        return self.cause


class SparkError(Exception):
    def __init__(self, java_exception: Java) -> None:
        super().__init__("a job was aborted")
        self.java_exception = java_exception


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (pymysql.err.InternalError(1194, "Table 't' is marked as crashed"), "(error 1194: Table 't' is marked as "),
        (SparkError(Java("SparkException", 0, Java("SQLException", 1814))), "(error 1814: SQLException 1814)"),
        (pymysql.err.OperationalError(1142, "SELECT command denied to user"), "(error 1142: SELECT command denied"),
        (SparkError(Java("SparkException", 0, Java("SQLException", 1690))), "(error 1690: SQLException 1690)"),
    ],
)
def test_what_the_server_says_of_one_table_is_told_with_the_way_on(error: Exception, said: str) -> None:
    told = str(unreadable("shop.t", error, "the check"))
    assert told.startswith("shop.t: the server cannot read this table ")
    assert said in told
    assert told.endswith("SHOW GRANTS what the user may read), or exclude it, then run the check again")


def test_a_row_that_is_too_long_is_its_tables_fault_alone() -> None:
    error = SparkError(Java(f"SparkRuntimeException [USER_RAISED_EXCEPTION] a row of shop.t {LONGER}", 0))
    told = str(unreadable("shop.t", error, "the snapshot"))
    assert told.startswith("shop.t: a row of it is longer than the server's max_allowed_packet: raise that ")
    assert told.endswith(", then run the snapshot again")


@pytest.mark.parametrize(
    "error",
    [
        pymysql.err.OperationalError(2013, "Lost connection to MySQL server during query"),
        pymysql.err.OperationalError(1045, "Access denied for user"),
        SparkError(Java("SparkException", 1814, Java("SQLException", 0))),
        OSError(1034, "of another kind"),
        pymysql.err.OperationalError(1030, "Got error 28 - 'No space left on device' from storage engine"),
    ],
)
def test_of_another_failure_no_table_is_blamed(error: Exception) -> None:
    assert unreadable("shop.t", error, "the check") is None
