"""What a server lacks is found before the stream, each with the statement that mends it; and it does mend it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr

from contract.pipeline_columns import Columns
from stack.database import Database
from streamer.connection import BinlogConnection
from streamer.errors import AccessDeniedError, PreflightError, UnreachableError
from streamer.preflight.checks import Finding, run_checks
from streamer.preflight.refusing import refuse
from streamer.protocol.model import RowsBatch
from streamer.source import facts
from tests.integration.decoding import executed, found_of, nothing, pipeline, purge, recorded, run, source

Another = Callable[..., Database]


def names(findings: list[Finding]) -> list[tuple[str, str]]:
    return [(finding.level, finding.name) for finding in findings]


def test_a_server_that_is_set_up_has_no_finding(server: Database) -> None:
    assert found_of(pipeline(server), executed(server)) == []


@pytest.mark.parametrize(
    ("setting", "wrong"),
    [
        ("binlog_format", "STATEMENT"),
        ("binlog_row_image", "MINIMAL"),
        ("binlog_row_metadata", "MINIMAL"),
    ],
)
def test_a_wrong_setting_is_named_and_its_statement_mends_it(server: Database, setting: str, wrong: str) -> None:
    """Pitfall "STATEMENT or MIXED format"."""
    run(server, f"SET GLOBAL {setting} = '{wrong}'")
    found = found_of(pipeline(server))
    run(server, *(statement for finding in found for statement in finding.statement.split(";") if statement.strip()))
    assert names(found) == [("error", setting)]
    assert wrong in found[0].what
    assert found_of(pipeline(server)) == []


@pytest.mark.lacks("mariadb", "its transactions always have GTIDs")
def test_a_server_without_gtids_is_led_to_them(another: Another) -> None:
    server = another(options=["gtid_mode=OFF", "enforce_gtid_consistency=OFF"])
    found = found_of(pipeline(server))
    assert names(found) == [("warning", "gtid_mode")]
    assert "the stream goes by file and position" in found[0].what
    run(server, *(statement for statement in found[0].statement.split(";") if statement.strip()))
    assert found_of(pipeline(server)) == []


def test_a_server_without_binlog_is_told_how_to_get_one(server: Database, another: Another) -> None:
    gtids = [] if server.flavor == "mariadb" else ["gtid_mode=OFF", "enforce_gtid_consistency=OFF"]
    server = another(options=["skip_log_bin", *gtids])
    assert ("error", "log_bin") in names(found_of(pipeline(server)))


def test_missing_grants_come_with_their_grant(server: Database) -> None:
    run(server, "DROP USER IF EXISTS poor", "CREATE USER poor IDENTIFIED BY 'x'")
    poor = pipeline(server, user="poor", password="x")
    found = found_of(poor)
    assert ("error", "grants") in names(found)
    assert found[0].statement == "GRANT REPLICATION SLAVE, REPLICATION CLIENT, SELECT ON *.* TO 'poor'@'%';"
    for finding in found:
        run(server, finding.statement)
    assert found_of(poor) == []
    run(server, "DROP USER poor")


def test_a_database_that_the_user_may_not_see_comes_with_its_grant(server: Database) -> None:
    """Its tables would be missed in silence by the checks of tables, and by the snapshot."""
    rights = f"GRANT {server.grants.replace('SELECT, ', '')} ON *.* TO narrow"
    run(server, "DROP USER IF EXISTS narrow", "CREATE USER narrow IDENTIFIED BY 'x'", rights)
    run(server, "CREATE DATABASE near", "CREATE TABLE near.t (id INT PRIMARY KEY)", "GRANT SELECT ON near.* TO narrow")
    run(server, "CREATE DATABASE checked", "CREATE TABLE checked.keyless (v INT)")
    narrow = pipeline(server, user="narrow", password="x")
    try:
        found = found_of(narrow)
        assert names(found) == [("warning", "grants")]
        assert "database checked is not there, or the user 'narrow'@'%' may not see it" in found[0].what
        mend(server, found[0])
        assert names(found_of(narrow)) == [("error", "key")], "now the table is seen"
    finally:
        run(server, "DROP USER narrow", "DROP DATABASE near", "DROP DATABASE checked")


def test_a_misspelled_table_is_told_with_the_one_that_was_meant(server: Database) -> None:
    run(server, "CREATE DATABASE checked", "CREATE TABLE checked.customers (id INT PRIMARY KEY)")
    try:
        assert run_checks(pipeline(server)) == []
        [found] = run_checks(pipeline(server, include="checked.customer"))
    finally:
        run(server, "DROP DATABASE checked")
    assert (found.level, found.name) == ("warning", "pattern")
    assert "checked.customer matches no table" in found.what
    assert found.statement.startswith("Did you mean checked.customers?")


def test_a_wrong_password_is_said_without_it(server: Database) -> None:
    with pytest.raises(AccessDeniedError, match="pipeline file") as error:
        found_of(pipeline(server, password=SecretStr("guessed wrong")))
    assert "guessed" not in str(error.value)


def test_a_server_that_does_not_answer(server: Database) -> None:
    with pytest.raises(UnreachableError, match="host and port"):
        found_of(pipeline(server, port=1))


def test_the_sources_own_server_id_is_refused(server: Database) -> None:
    assert names(found_of(pipeline(server, server_id=1))) == [("error", "server_id")]


def test_another_streamer_with_the_same_server_id_is_seen(server: Database) -> None:
    """Refused before the dump, unless it may be the pipeline's own, which was killed a moment ago."""
    for reader, level in ((pipeline(server).name, "warning"), ("another", "error")):
        other = BinlogConnection(source(server, 4731), executed(server), reader)
        reading = threading.Thread(target=lambda other=other: list(other.chunks()))
        reading.start()
        time.sleep(1)
        try:
            found = found_of(pipeline(server, server_id=4731))
        finally:
            other.close()
            reading.join(5)
        assert names(found) == [(level, "server_id")]
        assert "4731" in found[0].what
        told = "nothing to be done" if level == "warning" else "a number that nothing else has"
        assert told in found[0].statement


@pytest.mark.lacks("mysql", "whoever may read the binlog may list the replicas")
@pytest.mark.lacks("mysql80", "as there")
def test_a_server_id_that_cannot_be_looked_up_comes_with_its_grant(server: Database) -> None:
    run(
        server,
        "CREATE OR REPLACE USER plain IDENTIFIED BY 'secret'",
        "GRANT SELECT, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO plain",
    )
    found = found_of(pipeline(server, user="plain", password="secret"))
    assert names(found) == [("warning", "server_id")]
    run(server, found[0].statement)
    assert found_of(pipeline(server, user="plain", password="secret")) == []
    run(server, "DROP USER plain")


def test_a_purged_start_is_seen_before_the_dump(another: Another) -> None:
    """Pitfall "Purged position"."""
    server = another()
    run(server, "CREATE DATABASE a", "FLUSH BINARY LOGS", "CREATE DATABASE b", "FLUSH BINARY LOGS")
    purge(server, "binlog.000003")
    found = found_of(pipeline(server), nothing(server))
    assert names(found) == [("error", "purged")]
    assert "snapshot" in found[0].statement
    assert found_of(pipeline(server), executed(server)) == []


def test_tables_that_the_lake_cannot_take_are_found(server: Database) -> None:
    run(
        server,
        "CREATE DATABASE checked",
        "CREATE TABLE checked.good (id INT PRIMARY KEY, j JSON, e ENUM('a'), y YEAR, b BIT(3), n NUMERIC(5), p POINT)",
        "CREATE VIEW checked.seen AS SELECT j FROM checked.good",
    )
    try:
        assert found_of(pipeline(server)) == []
        run(
            server,
            "CREATE TABLE checked.heap (a INT NOT NULL, UNIQUE (a))",
            "CREATE TABLE checked.log (a INT)",
        )
        [key] = found_of(pipeline(server))
    finally:
        run(server, "DROP DATABASE checked")
    assert names([key]) == [("error", "key")]
    assert "checked.heap, checked.log" in key.what


def mend(server: Database, finding: Finding) -> None:
    run(server, *(statement for statement in finding.statement.split(";") if statement.strip()))


def test_binlogs_that_go_after_an_hour_are_kept_longer(server: Database) -> None:
    run(server, "SET GLOBAL binlog_expire_logs_seconds = 3600")
    try:
        [found] = found_of(pipeline(server))
        assert (found.level, found.name) == ("warning", "retention")
        assert "60 minutes" in found.what
        mend(server, found)
        assert found_of(pipeline(server)) == []
    finally:
        run(server, "SET GLOBAL binlog_expire_logs_seconds = DEFAULT")


def test_a_stream_that_is_as_far_behind_as_binlogs_are_kept_is_warned(server: Database) -> None:
    """Pitfall "Purged position": said before it happens."""
    seen, days = executed(server), 86_400
    run(server, "CREATE DATABASE IF NOT EXISTS behind", f"SET GLOBAL binlog_expire_logs_seconds = {5 * days}")
    try:
        assert found_of(pipeline(server), executed(server), time.time() - 3 * days) == [], "it has all"
        assert found_of(pipeline(server), seen, time.time() - 2 * days) == []
        [found] = found_of(pipeline(server), seen, time.time() - 3 * days)
        assert (found.level, found.name) == ("warning", "lag")
        assert "3 days behind" in found.what
        assert "5 days" in found.what
        mend(server, found)
        assert found_of(pipeline(server), seen, time.time() - 3 * days) == []
    finally:
        run(server, "SET GLOBAL binlog_expire_logs_seconds = DEFAULT", "DROP DATABASE behind")


def test_a_replica_that_keeps_what_it_applies_out_of_its_binlog_is_refused(another: Another, server: Database) -> None:
    if server.flavor == "mariadb":
        off, replica = "log_slave_updates=OFF", "SET GLOBAL gtid_slave_pos = '5-5-5'"
    elif server.name == "mysql80":
        off = "log_slave_updates=OFF"
        replica = "CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_AUTO_POSITION = 1"
    else:
        off = "log_replica_updates=OFF"
        replica = "CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_AUTO_POSITION = 1"
    own = another([off])
    assert found_of(pipeline(own)) == [], "it is no replica"
    run(own, replica)
    [found] = found_of(pipeline(own))
    assert found.level == "error"
    assert f"{found.name} is OFF" in found.what
    [option] = [word for word in found.statement.split() if "=" in word]
    mended = another([option])
    run(mended, replica)
    assert found_of(pipeline(mended)) == []


@pytest.fixture(params=["its own sql_mode", "another sql_mode"])
def spelled_otherwise(server: Database, request: pytest.FixtureRequest) -> Iterator[None]:
    """A server of which new sessions quote names in another way, or not at all."""
    mode = {"mysql": "ANSI,NO_BACKSLASH_ESCAPES", "mariadb": "ORACLE,EMPTY_STRING_IS_NULL"}[server.flavor]
    if request.param == "its own sql_mode":
        yield
        return
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT @@GLOBAL.sql_mode")
        [before] = cursor.fetchone()
        cursor.execute(f"SET GLOBAL sql_mode = '{mode}', GLOBAL sql_quote_show_create = 0")
        yield
        cursor.execute("SET GLOBAL sql_mode = %s, GLOBAL sql_quote_show_create = 1", (before,))


@pytest.mark.usefixtures("spelled_otherwise")
def test_foreign_keys_that_change_rows_below_the_binlog(server: Database) -> None:
    """Pitfall "Changes without row events": a finding exactly where the server writes no rows for what a key did."""
    run(
        server,
        "CREATE DATABASE checked",
        "CREATE TABLE checked.parent (id INT PRIMARY KEY)",
        "CREATE TABLE checked.child (id INT PRIMARY KEY, p INT, "
        "CONSTRAINT goes FOREIGN KEY (p) REFERENCES checked.parent (id) ON DELETE CASCADE)",
        "INSERT INTO checked.parent VALUES (1)",
        "INSERT INTO checked.child VALUES (1, 1)",
    )
    try:
        found = found_of(pipeline(server))
        with recorded(server) as written:
            run(server, "DELETE FROM checked.parent")
        tables = {item.table.table for item in written if isinstance(item, RowsBatch)}
        if server.name == "mysql":
            assert (found, tables) == ([], {"parent", "child"})
            return
        assert tables == {"parent"}, "the child's row went without a word"
        assert names(found) == [("error", "foreign_key")]
        assert "goes of checked.child" in found[0].what
        with pytest.raises(PreflightError, match=r"checked\.child"):
            refuse(pipeline(server), executed(server), None)
        allowing = pipeline(server)
        allowed = allowing.tables.model_copy(update={"cascades": ("checked.ch*",)})
        allowing = allowing.model_copy(update={"tables": allowed})
        refuse(allowing, executed(server), None)
        assert names(found_of(allowing)) == [("ok", "foreign_key")]
        statement, _, other = found[0].statement.partition(";")
        assert 'tables.cascades: ["checked.child"]' in other
        run(server, statement)
        assert found_of(pipeline(server)) == []
    finally:
        run(server, "DROP DATABASE checked")


@pytest.mark.lacks("mysql80", "it has no other foreign keys than InnoDB's")
@pytest.mark.lacks("mariadb", "it has no other foreign keys than InnoDB's")
def test_foreign_keys_that_innodb_does_itself_again(another: Another) -> None:
    """Pitfall "Changes without row events", with the way back to it that MySQL 9.6 and later have."""
    own = another(["innodb_native_foreign_keys=ON"])
    run(
        own,
        "CREATE DATABASE checked",
        "CREATE TABLE checked.parent (id INT PRIMARY KEY)",
        "CREATE TABLE checked.child (id INT PRIMARY KEY, p INT, "
        "CONSTRAINT goes FOREIGN KEY (p) REFERENCES checked.parent (id) ON DELETE CASCADE)",
        "INSERT INTO checked.parent VALUES (1)",
        "INSERT INTO checked.child VALUES (1, 1)",
    )
    with recorded(own) as written:
        run(own, "DELETE FROM checked.parent")
    assert {item.table.table for item in written if isinstance(item, RowsBatch)} == {"parent"}
    assert names(found_of(pipeline(own))) == [("error", "foreign_key")]
    assert not facts(source(own)).logs_cascades


@pytest.fixture
def merged(server: Database) -> Iterator[str]:
    """A MERGE table outside of the pipeline, with a member inside and one outside; and one whose members do not fit."""
    run(server, "CREATE DATABASE checked", "CREATE DATABASE outside",
        "CREATE TABLE checked.m (id INT NOT NULL, PRIMARY KEY (id)) ENGINE=MyISAM",
        "CREATE TABLE outside.n LIKE checked.m",
        "CREATE TABLE outside.`all` (id INT NOT NULL, PRIMARY KEY (id)) ENGINE=MERGE UNION=(outside.n, checked.m) "
        "INSERT_METHOD=LAST",
        "CREATE TABLE outside.broken (id BIGINT) ENGINE=MERGE UNION=(checked.m)")  # fmt: skip
    yield "outside.all (MERGE)"
    run(server, "DROP DATABASE outside", "DROP DATABASE checked")


def test_writes_through_a_merge_table_are_refused(server: Database, merged: str) -> None:
    with recorded(server) as written:
        run(server, "INSERT INTO outside.`all` VALUES (5)")
    [batch] = [item for item in written if isinstance(item, RowsBatch)]
    assert (batch.table.db, batch.table.table) == ("outside", "all"), "the row is one of checked.m"
    [found] = found_of(pipeline(server))
    assert (found.level, found.name) == ("error", "engine")
    assert merged in found.what
    assert found.what.endswith(": checked.m")
    assert 'tables.exclude: ["checked.m"]' in found.statement
    run(server, found.statement.partition(";")[0])
    assert found_of(pipeline(server)) == []
    run(server, "CREATE TABLE checked.`all` (id INT NOT NULL, PRIMARY KEY (id)) ENGINE=MERGE UNION=(checked.m)")
    own, member = found_of(pipeline(server))
    assert own.what.endswith(": checked.all (MRG_MYISAM)")
    assert member.what.endswith(": checked.m")


@pytest.mark.lacks("mariadb", "it comes without the engine")
def test_tables_that_keep_no_rows_are_refused(server: Database) -> None:
    run(server, "CREATE DATABASE checked", "CREATE TABLE checked.hole (id INT PRIMARY KEY) ENGINE=BLACKHOLE")
    with recorded(server) as written:
        run(server, "INSERT INTO checked.hole VALUES (5)")
    try:
        assert any(isinstance(item, RowsBatch) for item in written), (
            "there is a row in the stream, and none in the table"
        )
        [found] = found_of(pipeline(server))
    finally:
        run(server, "DROP DATABASE checked")
    assert (found.level, found.name) == ("error", "engine")
    assert "checked.hole (BLACKHOLE)" in found.what


def test_databases_that_the_server_keeps_out_of_its_binlog(another: Another) -> None:
    """Pitfall "Never lose a change silently": there would be no row to miss."""
    for option, hidden in (
        ("binlog_ignore_db=checked", True),
        ("binlog_do_db=checked", False),
        ("binlog_do_db=other", True),
    ):
        own = another([option])
        found = found_of(pipeline(own))
        assert names(found) == ([("error", option.partition("=")[0])] if hidden else [])
        if hidden:
            assert "out of its binlog: checked" in found[0].what
        own.kill()


@pytest.mark.lacks("mysql", "it has neither")
@pytest.mark.lacks("mysql80", "it has neither")
def test_tables_whose_rows_are_not_what_a_query_shows_are_refused(server: Database) -> None:
    run(server, "CREATE DATABASE checked", "CREATE SEQUENCE checked.numbers",
        "CREATE TABLE checked.past (id INT PRIMARY KEY) WITH SYSTEM VERSIONING")  # fmt: skip
    try:
        [found] = found_of(pipeline(server))
    finally:
        run(server, "DROP DATABASE checked")
    assert (found.level, found.name) == ("error", "table")
    assert "checked.numbers (sequence), checked.past (system versioned)" in found.what
    assert 'tables.exclude: ["checked.numbers", "checked.past"]' in found.statement


def test_rules_of_columns_that_cannot_hold_are_told_with_their_place(server: Database, tmp_path: Path) -> None:
    run(server, "DROP DATABASE IF EXISTS ruled", "CREATE DATABASE ruled")
    run(server, "CREATE TABLE ruled.t (id int, part char(9), p point, PRIMARY KEY (id, part))")
    rules = Columns.model_validate({"exclude": ["*.*.part", "ruled.t.prat"]})
    path = tmp_path / "ruled.yaml"
    path.write_text("columns:\n  exclude:\n    - a\n    - b\n  masks:\n    - {columns: [c]}\n")
    given = pipeline(server, "ruled.*").model_copy(update={"columns": rules, "path": path})
    found = found_of(given, executed(server))
    assert names(found) == [("error", "columns"), ("warning", "columns")]
    assert f"{path}:3: columns.exclude[0]: it takes out ruled.t.part, a column of the primary key" in found[0].what
    assert f"{path}:4: columns.exclude[1]: ruled.t.prat chooses no column" in found[1].what
    for column, cause in (("id", "a column of the primary key"), ("p", "of type point")):
        rules = Columns.model_validate({"masks": [{"columns": [f"ruled.t.{column}"], "mask": "truncate", "n": 1}]})
        [first] = found_of(given.model_copy(update={"columns": rules}))
        assert f"{path}:6: columns.masks[0]: it masks ruled.t.{column}" in first.what
        assert cause in first.what
    assert first.statement == "Write mask: null, or exclude the column."
