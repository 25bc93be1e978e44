"""`headrace crosscheck`: the decoder and mysql-replication read the same binlog and agree event by event, but for the
known defects of mysql-replication, each of which is met here.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from contract.pipeline import Pipeline
from stack.database import Database
from stack.ports import free_port
from streamer import source
from streamer.cli import app
from streamer.crosscheck import command
from streamer.crosscheck.compare import Report
from streamer.crosscheck.errors import MissingPackageError, PlaceError
from streamer.errors import UnsupportedTransactionError
from tests.integration.decoding import pipeline, run
from tests.integration.edge_values import cases, spelling

TABLES = (
    "CREATE TABLE orders (id bigint unsigned primary key auto_increment, customer int not null, qty smallint, "
    "amount decimal(12,2), status enum('new','paid','sent'), tags set('a','b','c'), note varchar(500), ratio double, "
    "weight float, created datetime(6), day date, flag bit(5), doc json, raw varbinary(20), year year)",
    "CREATE TABLE items (order_id bigint, line mediumint, text mediumtext character set latin1, t time(3), "
    "primary key (line, order_id))",
    "CREATE TABLE loose (a int, b char(5))",
)

COPY = "CREATE TABLE copied (primary key (id)) AS SELECT * FROM orders"


# By the known defect, a column's type and a value that meets it.
DEFECTS = {
    "zero date": ("date", "'2024-00-10'"),
    "zero timestamp": ("timestamp null", "'0000-00-00 00:00:00'"),
    "year 0": ("year", "0"),
    "fraction of a negative time": ("time(3)", "'-01:02:03.250'"),
    "empty set": ("set('a','b')", "''"),
    "empty binary": ("varbinary(9)", "''"),
    "padding of BINARY": ("binary(5)", "'ab'"),
    "character set": ("varchar(9) character set swe7", "'å'"),
    "JSON's opaque values": ("json", "json_array(cast(1.50 as decimal(10,2)), cast('-01:02:03.5' as time(1)))"),
}


def _workload(rng: random.Random, copy: str) -> Iterator[str]:
    """Statements, COMMITs and ROLLBACKs of one session. `copy` makes the table `copied` from `orders`."""
    for n in range(300):
        match rng.randrange(10):
            case 0 | 1 | 2:
                yield f"INSERT INTO orders VALUES {', '.join(_order(rng) for _ in range(rng.randrange(1, 40)))}"
            case 3:
                yield f"UPDATE orders SET qty = {rng.randrange(99)}, note = NULL WHERE id % 7 = {rng.randrange(7)}"
            case 4:
                yield f"DELETE FROM orders WHERE id % 31 = {rng.randrange(31)}"
            case 5:
                yield f"REPLACE INTO items VALUES ({n}, {rng.randrange(-9, 9)}, 'é {n}', '112:00:00.{n:03}')"
            case 6:
                yield "UPDATE orders, items SET qty = 5, text = 'both' WHERE orders.id = items.order_id"
            case 7:
                yield f"INSERT INTO loose (a, b) VALUES ({n}, 'x'), (NULL, NULL)"
            case 8:
                yield "SAVEPOINT s"
                yield f"UPDATE items SET line = line + 100 WHERE order_id = {n - 1} AND line < 50"
                yield rng.choice(["ROLLBACK TO s", "RELEASE SAVEPOINT s"])
            case 9:
                yield rng.choice(["COMMIT", "COMMIT", "ROLLBACK", f"ALTER TABLE loose ADD COLUMN c{n} int DEFAULT {n}"])
    yield "COMMIT"
    yield copy
    yield "TRUNCATE TABLE loose"
    yield "INSERT INTO copied (id, customer) VALUES (9000000, 1)"
    yield "COMMIT"


def _order(rng: random.Random) -> str:
    def maybe(text: str) -> str:
        return "NULL" if rng.random() < 0.2 else text

    values = [
        "NULL",
        str(rng.randrange(-(2**31), 2**31)),
        maybe(str(rng.randrange(-300, 300))),
        maybe(str(rng.randrange(-(10**6), 10**6) / 100)),
        maybe(rng.choice(["'new'", "'paid'", "'sent'"])),
        maybe(rng.choice(["''", "'a'", "'a,c'", "'b,c'"])),
        maybe("'" + rng.choice(["plain", 'qu\\"ote', "ü€😀", "", "x" * 300]) + "'"),
        maybe(repr(rng.uniform(-1e9, 1e9))),
        maybe(str(rng.randrange(1000) / 8)),
        maybe(f"'20{rng.randrange(10, 38)}-0{rng.randrange(1, 10)}-11 10:20:30.{rng.randrange(10**6):06}'"),
        maybe(f"'1{rng.randrange(100, 999)}-12-31'"),
        maybe(str(rng.randrange(32))),
        maybe(rng.choice(["'{\"a\": [1, 2.5, null, true]}'", "'[]'", "'\"text\"'"])),
        maybe(rng.choice(["x'00ff'", "''"])),
        maybe(str(rng.randrange(1901, 2155))),
    ]
    return f"({', '.join(values)})"


# It cannot read some of MariaDB's statements.
FAILS: dict[str, tuple[str, ...]] = {"mysql": (), "mysql80": (), "mariadb": ("what it fails on",)}


def checked(server: Database, db: str, begin: str) -> Report:
    return command.crosscheck(pipeline(server, f"{db}.*"), 1, begin, None)


def place(server: Database) -> str:
    facts = source.facts(pipeline(server).source)
    return f"{facts.file}:{facts.pos}"


def fresh(server: Database, db: str) -> str:
    """An empty database, and the place behind its making."""
    run(server, f"DROP DATABASE IF EXISTS {db}", f"CREATE DATABASE {db}")
    return place(server)


def test_agrees_with_mysql_replication_on_a_mixed_workload(server: Database) -> None:
    begin = fresh(server, "mixed")
    copy = "CREATE TABLE copied LIKE orders" if server.name == "mysql80" else COPY
    run(server, *TABLES, *_workload(random.Random(20), copy), database="mixed", autocommit=False)
    report = checked(server, "mixed", begin)
    assert report.unexplained == []
    assert report.unknown == 0
    assert {name for name, _ in report.known} <= {"empty binary", "empty set", *FAILS[server.name]}
    assert report.transactions > 20
    assert report.events > 100
    assert report.values > 5_000


def test_meets_every_known_defect_of_a_value(server: Database) -> None:
    begin = fresh(server, "defects")
    types, values = zip(*DEFECTS.values(), strict=True)
    columns = ", ".join(f"c{n} {kind}" for n, kind in enumerate(types))
    if server.name == "mariadb":  # its JSON is text, and has no opaque values
        values = (*values[:-1], "'[1.50]'")
    run(server, "SET sql_mode = ''", f"CREATE TABLE t ({columns})", database="defects")
    run(server, "SET sql_mode = ''", f"INSERT INTO t VALUES ({', '.join(values)})", database="defects")
    report = checked(server, "defects", begin)
    assert report.unexplained == []
    met = {(name, where) for name, where in report.known if name not in FAILS[server.name]}
    wanted = {(name, f"defects.t.c{n}") for n, name in enumerate(DEFECTS)}
    assert met == {pair for pair in wanted if server.name != "mariadb" or pair[0] != "JSON's opaque values"}


def test_every_edge_value_is_the_same_or_explained_by_its_bytes(server: Database) -> None:
    """A table for each type: what it fails on ends its reading of an event."""
    begin = fresh(server, "edges")
    statements = ["SET sql_mode = ''", "SET NAMES utf8mb4"]
    for n, (kind, values) in enumerate(cases(server).items()):
        rows = ", ".join(f"({value})" for value in (*values, "NULL")).replace(*spelling(server))
        statements += [f"CREATE TABLE t{n} (c {kind}) ROW_FORMAT=DYNAMIC", f"INSERT INTO t{n} VALUES {rows}"]
    run(server, *statements, database="edges")
    report = checked(server, "edges", begin)
    assert report.unexplained == []
    assert {name for name, _ in report.known} <= {*DEFECTS, "UUID and INET", "what it fails on"}
    assert report.values > 300


@pytest.mark.parametrize("server", ["mysql"], indirect=True)
def test_meets_every_known_defect_of_an_event(server: Database) -> None:
    begin = fresh(server, "defects")
    run(server, "CREATE TABLE t (id int primary key, v vector(1))", database="defects")
    run(server, "SET binlog_transaction_compression = ON", "INSERT INTO t (id) VALUES (1)", database="defects")
    run(server, "INSERT INTO t VALUES (2, to_vector('[1]'))", database="defects")
    run(server, "SET gtid_next = 'AUTOMATIC:tag'", "INSERT INTO t (id) VALUES (3)", database="defects")
    xa = ("XA START 'x'", "INSERT INTO t (id) VALUES (4)", "XA END 'x'", "XA PREPARE 'x'", "XA COMMIT 'x'")
    run(server, *xa, database="defects")
    run(server, "INSERT INTO t (id) VALUES (5)", database="defects")
    report = checked(server, "defects", begin)
    assert report.unexplained == []
    assert {name for name, _ in report.known} == {"compressed transaction", "what it fails on", "tagged GTID", "XA"}


@pytest.mark.parametrize("server", ["mariadb"], indirect=True)
def test_mariadbs_hidden_columns_are_no_difference(server: Database) -> None:
    begin = fresh(server, "hashed")
    run(server, "CREATE TABLE t (id int primary key, url varchar(1000) unique, v text, unique (v))",
        "INSERT INTO t VALUES (1, 'a', NULL), (2, NULL, 'b')", "UPDATE t SET v = 'c' WHERE id = 2",
        "DELETE FROM t WHERE id = 1", database="hashed")  # fmt: skip
    report = checked(server, "hashed", begin)
    assert report.unexplained == []
    assert (report.events, report.values, dict(report.known)) == (4, 15, {})


@pytest.mark.parametrize("server", ["mysql"], indirect=True)
def test_what_cannot_be_read_by_itself_is_told_with_the_way_around(server: Database) -> None:
    fresh(server, "defects")
    xa = ("XA START 'early'", "INSERT INTO t VALUES (1)", "XA END 'early'", "XA PREPARE 'early'")
    run(server, "CREATE TABLE t (id int primary key)", *xa, database="defects")
    run(server, "FLUSH BINARY LOGS")
    begin = place(server)
    run(server, "XA COMMIT 'early'")
    with pytest.raises(UnsupportedTransactionError, match="it may begin in an earlier binlog file"):
        checked(server, "defects", begin)
    later = place(server)
    run(server, "INSERT INTO t VALUES (2)", database="defects")
    assert checked(server, "defects", later).transactions == 1


@pytest.fixture
def file(server: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A pipeline file of the database `told`, in which three transactions were committed."""
    fresh(server, "told")
    run(server, "CREATE TABLE t (id int primary key, v varchar(9))", database="told")
    run(server, "INSERT INTO t VALUES (1, 'secret')", "UPDATE t SET v = 'other'", database="told")
    monkeypatch.setenv("CHECK_PASSWORD", server.password)
    made = tmp_path / "told.yaml"
    made.write_text(
        f"format: 1\nname: told\nsource: {{flavor: {server.flavor}, host: 127.0.0.1, port: {server.port}, "
        "user: headrace, password: '${CHECK_PASSWORD}', server_id: 4731}\ntables: {include: ['told.*']}\n"
        "kafka: {bootstrap: 'localhost:1'}\nlake: {path: lake}\n"
    )
    return str(made)


def test_the_command_checks_the_last_transactions(server: Database, file: str) -> None:
    done = CliRunner().invoke(app, ["crosscheck", file, "--last", "2"])
    assert done.exit_code == 0, done.output
    assert "2 transactions, 2 events and 6 values compared" in done.output
    assert "no difference is unexplained" in done.output
    more = CliRunner().invoke(app, ["crosscheck", file, "--last", "3", "--to", place(server)])
    assert "3 transactions, 3 events" in more.output
    told = json.loads(CliRunner().invoke(app, ["crosscheck", file, "--last", "2", "--json"]).output)
    assert (told["transactions"], told["values"], told["unexplained"]) == (2, 6, 0)


@pytest.mark.parametrize("server", ["mysql"], indirect=True)
def test_an_unexplained_difference_fails_and_shows_values_only_when_asked(
    server: Database, file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pymysqlreplication import row_event

    monkeypatch.setattr(row_event.UpdateRowsEvent, "_fetch_one_row", _wrong)
    done = CliRunner().invoke(app, ["crosscheck", file, "--last", "2"])
    assert done.exit_code == 1
    assert "told.t.v" in done.output
    assert "not the same value" in done.output
    assert "secret" not in done.output
    assert "'other'" in CliRunner().invoke(app, ["crosscheck", file, "--last", "2", "--values"]).output
    done = CliRunner().invoke(app, ["crosscheck", file, "--last", "2", "--json"])
    assert (done.exit_code, json.loads(done.output)["unexplained"]) == (1, 1)
    assert "other" not in done.output


def _wrong(self: object) -> dict[str, object]:
    images = {name: self._read_column_data(self.columns_present_bitmap) for name in ("before_values", "after_values")}  # type: ignore[attr-defined]
    return images | {"after_values": {"id": 1, "v": "wrong"}}


@pytest.mark.parametrize("server", ["mysql"], indirect=True)
@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--from", "yesterday"], "it is no place in a binlog"),
        (["--from", "binlog.999999:4"], "binlog.999999"),
        (["--from", "{last}:999999999"], "no transaction begins there"),
    ],
)
def test_a_place_that_is_none_is_told(server: Database, file: str, arguments: list[str], told: str) -> None:
    run(server, "FLUSH BINARY LOGS")
    last = list(source.files(pipeline(server).source))[-1]
    done = CliRunner().invoke(app, ["crosscheck", file, *(argument.format(last=last) for argument in arguments)])
    assert done.exit_code == 1
    assert told in done.stderr
    assert "Traceback" not in done.output


@pytest.mark.parametrize("server", ["mysql"], indirect=True)
def test_a_place_that_is_none_needs_no_server(server: Database) -> None:
    checking = pipeline(server)
    away = checking.model_copy(update={"source": checking.source.model_copy(update={"port": free_port()})})
    for stretch in (("yesterday", None), (None, "tomorrow")):
        with pytest.raises(PlaceError, match="it is no place in a binlog"):
            command.crosscheck(away, 1, *stretch)


@pytest.mark.parametrize("server", ["mysql"], indirect=True)
def test_a_missing_package_is_told_with_its_mend(server: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pymysqlreplication", None)
    checking: Pipeline = pipeline(server)
    with pytest.raises(MissingPackageError, match="pip install mysql-replication=="):
        command.crosscheck(checking, 1, None, None)
