"""What a server lacks is found before the stream, each with the statement that mends it; and it does mend it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest
from pydantic import SecretStr

from contract.gtid import GtidSet
from stack.mysql import MySQL
from streamer.connection import BinlogConnection
from streamer.errors import AccessDeniedError, UnreachableError
from streamer.preflight import Finding, run_checks
from tests.integration.decoding import executed, pipeline, run, source

MySQLServer = Callable[..., MySQL]


def names(findings: list[Finding]) -> list[tuple[str, str]]:
    return [(finding.level, finding.name) for finding in findings]


def test_a_server_that_is_set_up_has_no_finding(mysql: MySQL) -> None:
    assert run_checks(pipeline(mysql), executed(mysql)) == []


@pytest.mark.parametrize(
    ("setting", "wrong"),
    [
        ("binlog_format", "STATEMENT"),
        ("binlog_row_image", "MINIMAL"),
        ("binlog_row_metadata", "MINIMAL"),
        ("binlog_row_value_options", "PARTIAL_JSON"),
    ],
)
def test_a_wrong_setting_is_named_and_its_statement_mends_it(mysql: MySQL, setting: str, wrong: str) -> None:
    run(mysql, f"SET GLOBAL {setting} = '{wrong}'")
    found = run_checks(pipeline(mysql))
    run(mysql, *(statement for finding in found for statement in finding.statement.split(";") if statement.strip()))
    assert names(found) == [("error", setting)]
    assert wrong in found[0].what
    assert run_checks(pipeline(mysql)) == []


def test_a_server_without_gtids_is_led_to_them(mysql_server: MySQLServer) -> None:
    server = mysql_server(options=["gtid_mode=OFF", "enforce_gtid_consistency=OFF"])
    found = run_checks(pipeline(server))
    assert names(found) == [("error", "gtid_mode")]
    run(server, *(statement for statement in found[0].statement.split(";") if statement.strip()))
    assert run_checks(pipeline(server)) == []


def test_a_server_without_binlog_is_told_how_to_get_one(mysql_server: MySQLServer) -> None:
    server = mysql_server(options=["skip_log_bin", "gtid_mode=OFF", "enforce_gtid_consistency=OFF"])
    assert ("error", "log_bin") in names(run_checks(pipeline(server)))


def test_missing_grants_come_with_their_grant(mysql: MySQL) -> None:
    run(mysql, "DROP USER IF EXISTS poor", "CREATE USER poor IDENTIFIED BY 'x'")
    poor = pipeline(mysql, user="poor", password="x")
    found = run_checks(poor)
    assert names(found) == [("error", "grants")]
    assert found[0].statement == "GRANT REPLICATION SLAVE, REPLICATION CLIENT, SELECT ON *.* TO 'poor'@'%';"
    run(mysql, found[0].statement)
    assert run_checks(poor) == []
    run(mysql, "DROP USER poor")


def test_a_wrong_password_is_said_without_it(mysql: MySQL) -> None:
    with pytest.raises(AccessDeniedError, match="pipeline file") as error:
        run_checks(pipeline(mysql, password=SecretStr("guessed wrong")))
    assert "guessed" not in str(error.value)


def test_a_server_that_does_not_answer(mysql: MySQL) -> None:
    with pytest.raises(UnreachableError, match="host and port"):
        run_checks(pipeline(mysql, port=1))


def test_the_sources_own_server_id_is_refused(mysql: MySQL) -> None:
    assert names(run_checks(pipeline(mysql, server_id=1))) == [("error", "server_id")]


def test_another_streamer_with_the_same_server_id_is_seen(mysql: MySQL) -> None:
    other = BinlogConnection(source(mysql, 4731), executed(mysql))
    reading = threading.Thread(target=lambda: list(other.chunks()))
    reading.start()
    time.sleep(1)
    try:
        found = run_checks(pipeline(mysql, server_id=4731))
    finally:
        other.close()
        reading.join(5)
    assert names(found) == [("warning", "server_id")]
    assert "4731" in found[0].what


def test_a_purged_start_is_seen_before_the_dump(mysql_server: MySQLServer) -> None:
    server = mysql_server()
    run(server, "CREATE DATABASE a", "FLUSH BINARY LOGS", "CREATE DATABASE b", "FLUSH BINARY LOGS")
    run(server, "PURGE BINARY LOGS TO 'binlog.000003'")
    found = run_checks(pipeline(server), GtidSet())
    assert names(found) == [("error", "purged")]
    assert "snapshot" in found[0].statement
    assert run_checks(pipeline(server), executed(server)) == []
