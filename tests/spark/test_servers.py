"""When a query sees a transaction: MySQL is asked, MariaDB's own places in the binlog are compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spark.source.servers import MariaDB, MySQL


class Answers:
    """A MariaDB whose engine is behind its binlog for a while: the places at which each consistent read begins."""

    def __init__(self, written: str, *begins: int) -> None:
        self.written, self.begins, self.asked = written, list(begins), 0

    def __call__(self, sql: str, *arguments: Any) -> Sequence[Any] | None:
        if "gtid_binlog_pos" in sql:
            return (self.written,)
        if sql.startswith("SHOW MASTER STATUS"):
            return "binlog.000002", 500
        if "binlog_snapshot_file" in sql:
            return "Binlog_snapshot_file", "binlog.000002"
        if "binlog_snapshot_position" in sql:
            self.asked += 1
            return "Binlog_snapshot_position", self.begins.pop(0) if len(self.begins) > 1 else self.begins[0]
        return None


def test_mariadb_is_waited_for_until_a_read_begins_behind_what_was_written() -> None:
    answers = Answers("0-1-7,3-1-2", 300, 400, 500)
    assert MariaDB().sees(answers, "3-1-2", 5)
    assert answers.asked == 3


def test_a_transaction_that_is_in_the_binlog_and_not_to_be_seen_is_no_answer() -> None:
    assert not MariaDB().sees(Answers("0-1-7", 300), "0-1-7", 0.2)


def test_a_mariadb_without_the_transactions_is_another_server() -> None:
    assert not MariaDB().sees(Answers("0-1-7", 500), "0-1-8", 0.2)
    assert not MariaDB().sees(Answers("0-1-7", 500), "5-1-1", 0.2)


def test_mysql_says_itself_whether_it_timed_out() -> None:
    for timed_out in (0, 1):
        assert MySQL().sees(lambda sql, *arguments, said=timed_out: (said,), "u:1", 1) == (not timed_out)
