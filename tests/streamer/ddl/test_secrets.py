"""What of a statement is told: no secret in the DDL topic, no text at all in a log."""

from __future__ import annotations

import pytest

from streamer.ddl import secrets


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE USER a IDENTIFIED BY 's3cret'",
        "ALTER TABLE t CONNECTION='mysql://u:s3cret@h/db'",
        'CHANGE X SOURCE_PASSWORD = "it\\"s s3cret"',
        "ALTER TABLE t COMMENT 'it''s s3cret', ADD a INT",
        "ALTER TABLE t " + "x" * 150 + " PASSWORD 's3cret" + "y" * 300,
        "ALTER USER a IDENTIFIED WITH x AS 0x53337372",
    ],
)
def test_no_secret_is_shown(statement: str) -> None:
    text = secrets.shown(statement)
    assert "s3cret" not in text
    assert "53337372" not in text
    assert text[:6] == statement[:6]
    assert len(text) <= 200


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE f (id int) ENGINE=FEDERATED CONNECTION='mysql://u:s3cret@h/db/t'",
        "ALTER TABLE f CONNECTION 'x/s3cret'",
        "CREATE TABLE c (id int) ENGINE=CONNECT table_type=MYSQL option_list='user=u,host=h,s3cret'",
        'CREATE TABLE s (id int) ENGINE=SPIDER COMMENT=\'host "h", user "u", password "s3cret"\'',
        "CREATE TABLE s (id int) PARTITION BY HASH (id) (PARTITION p COMMENT = \"server 'x', password 's3cret'\")",
        "CREATE TABLE t (id int) PASSWORD='s3cret'",
        'CREATE TABLE t (id int) `password`="s3cret"',
        "CREATE USER a IDENTIFIED WITH p BY 's3cret' REPLACE 's3cret', b IDENTIFIED BY PASSWORD 's3cret'",
        "ALTER USER a IDENTIFIED VIA ed25519 USING 's3cret' OR unix_socket",
        "CREATE SERVER s FOREIGN DATA WRAPPER mysql OPTIONS (HOST 'h', PASSWORD 's3cret')",
        "CHANGE X SOURCE_PASSWORD = 's3cret'",
        "SET PASSWORD FOR a = PASSWORD('s3cret')",
        "ALTER USER a IDENTIFIED WITH x AS 0x533373s3cret",
        "CREATE TABLE f (id int) CONNECTION='s3cret",
    ],
)
def test_no_secret_reaches_the_ddl_topic(statement: str) -> None:
    text = secrets.without_secrets(statement)
    assert "s3cret" not in text
    assert text[:12] == statement[:12]


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE t (id int, e enum('a','it''s') DEFAULT 'a' COMMENT 'of \"a\"', b binary(2) DEFAULT 0x4142)",
        "CREATE TABLE users (password varchar(99), e enum('a', 'b'))",
        "ALTER TABLE t COMMENT 'see https://example.org/a@b'",
        "ALTER TABLE t ADD c int -- password 'x",
    ],
)
def test_other_texts_stay(statement: str) -> None:
    assert secrets.without_secrets(statement) == statement


def test_a_backslash_that_is_no_escape_hides_no_secrets_end() -> None:
    statement = r"CREATE USER a COMMENT 'C:\' IDENTIFIED BY 's3cret'"
    assert "s3cret" not in secrets.without_secrets(statement, escapes=False)
    assert "s3cret" not in secrets.shown(statement, escapes=False)
