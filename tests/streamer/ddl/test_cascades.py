"""Which statements give a table a foreign key that changes its rows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamer.ddl.cascades import gives_cascade

KEY = "FOREIGN KEY (p) REFERENCES par (id)"


@pytest.mark.parametrize(
    "statement",
    [
        f"ALTER TABLE ch ADD CONSTRAINT {KEY} ON DELETE CASCADE",
        f"alter table ch add constraint k {KEY.lower()} on update set null",
        "ALTER TABLE ch ADD FOREIGN KEY (p, q) REFERENCES x.`par` (id, n) MATCH FULL ON DELETE NO ACTION "
        "ON UPDATE CASCADE",
        f"ALTER TABLE ch ADD x INT, ADD {KEY} ON DELETE SET DEFAULT",
        f"ALTER TABLE ch ADD FOREIGN KEY (x) REFERENCES a (b), ADD {KEY} ON DELETE CASCADE",
        f"CREATE TABLE ch (id INT PRIMARY KEY, p INT, CONSTRAINT `k` {KEY} ON DELETE SET NULL) ENGINE=InnoDB",
        f"CREATE OR REPLACE TABLE ch (p INT, {KEY} ON DELETE CASCADE, KEY (p))",
        f"SET STATEMENT max_statement_time=1 FOR ALTER TABLE ch ADD {KEY} ON DELETE CASCADE",
        f"/*!50000 ALTER TABLE ch ADD {KEY} /* by hand */ ON DELETE CASCADE */",
    ],
)  # fmt: skip
def test_keys_that_change_rows(statement: str) -> None:
    assert gives_cascade(statement, inline=False)


@pytest.mark.parametrize(
    "statement",
    [
        f"ALTER TABLE ch ADD {KEY}",
        f"ALTER TABLE ch ADD {KEY} ON DELETE RESTRICT ON UPDATE NO ACTION",
        f"ALTER TABLE ch ADD {KEY}, ADD t TIMESTAMP NULL ON UPDATE CURRENT_TIMESTAMP",
        "ALTER TABLE ch DROP FOREIGN KEY k",
        f"CREATE TABLE ch (p INT COMMENT '{KEY} ON DELETE CASCADE')",
        f"CREATE TABLE ch (p INT) /* {KEY} ON DELETE CASCADE */",
        "GRANT REFERENCES ON t TO u",
        f"DROP TABLE t /* {KEY} ON DELETE CASCADE */",
    ],
)
def test_what_changes_no_rows(statement: str) -> None:
    assert not gives_cascade(statement)


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE ch (id INT, p INT REFERENCES par (id) ON DELETE CASCADE)",
        "ALTER TABLE ch ADD p INT REFERENCES par (id) ON UPDATE SET NULL",
        f"CREATE TABLE ch ({KEY}, q INT REFERENCES par (id) ON DELETE CASCADE)",
    ],
)
def test_a_key_behind_a_column_is_one_where_the_server_makes_it(statement: str) -> None:
    assert gives_cascade(statement)
    assert not gives_cascade(statement, inline=False)


def test_a_backslash_that_is_no_escape() -> None:
    statement = rf"ALTER TABLE ch COMMENT 'C:\', ADD {KEY} ON DELETE CASCADE, COMMENT 'x'"
    assert gives_cascade(statement, escapes=False)
    assert not gives_cascade(statement)


@given(st.text(), st.sampled_from(["", "CREATE TABLE c (p INT REFERENCES ", "ALTER TABLE c ADD FOREIGN KEY ("]))
def test_no_text_raises(text: str, start: str) -> None:
    gives_cascade(start + text + " REFERENCES")
