"""`headrace decode`: a server's own binlog file gives what its dump gives, without the server."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from stack.database import Database
from streamer.cli import app
from streamer.source import facts
from tests.integration.decoding import run, source

ORDERS = "CREATE TABLE orders (id int primary key, amount decimal(8,2), note varchar(50) charset latin1, doc json)"
OPS = ("c", "u", "d")


def decoded(file: Path, *options: str) -> list[dict[str, Any]]:
    found = CliRunner().invoke(app, ["decode", str(file), *options])
    assert found.exit_code == 0, found.stderr
    return [json.loads(line) for line in found.stdout.splitlines()]


@pytest.fixture
def written(server: Database, tmp_path: Path) -> Path:
    """A copy of a whole file, in which a table lives."""
    run(server, "DROP DATABASE IF EXISTS filed", "CREATE DATABASE filed", "FLUSH BINARY LOGS")
    name = facts(source(server)).file
    run(
        server,
        ORDERS,
        "INSERT INTO orders VALUES (1, 10.50, 'café', '{\"a\": [1, null]}'), (2, -1, NULL, NULL)",
        "UPDATE orders SET amount = 11 WHERE id = 1",
        "CREATE TABLE other (id int primary key)",
        "INSERT INTO other VALUES (7)",
        "DELETE FROM orders WHERE id = 2",
        "CREATE USER IF NOT EXISTS filed IDENTIFIED BY 'hush hush'",
        "DROP USER filed",
        "FLUSH BINARY LOGS",
        database="filed",
    )
    return Path(shutil.copy(server.data / name, tmp_path / name))


def test_a_copy_whose_number_is_greater_than_that_of_the_file_that_follows(written: Path) -> None:
    copy = Path(shutil.copy(written, f"{written}.20261122"))
    assert [line["op"] for line in decoded(copy)] == [line["op"] for line in decoded(written)]


def test_a_file_gives_its_changes_statements_and_ends(server: Database, written: Path) -> None:
    found = decoded(written)
    rows = [(line["op"], line["before"], line["after"]) for line in found if line["op"] in OPS]
    first = {"id": 1, "amount": "10.50", "note": "café", "doc": '{"a":[1,null]}'}
    second = {"id": 2, "amount": "-1.00", "note": None, "doc": None}
    changed = first | {"amount": "11.00"}
    for images in rows:
        for image in filter(None, images[1:]):
            image |= {"doc": image["doc"] and image["doc"].replace(" ", "")} if "doc" in image else {}
    assert rows == [
        ("c", None, first),
        ("c", None, second),
        ("u", first, changed),
        ("c", None, {"id": 7}),
        ("d", second, None),
    ]
    statements = [line["statement"] for line in found if line["op"] == "ddl"]
    assert any("CREATE TABLE orders" in one for one in statements)
    assert "hush" not in written.name + "".join(statements)
    ends = [line["source"]["gtid"] for line in found if line["op"] == "commit"]
    assert len(ends) == len(set(ends)) == 8
    assert all(line["source"]["file"] == written.name for line in found)


def test_one_table_of_a_file(written: Path) -> None:
    made, begun, row, ended = decoded(written, "--table", "filed.oth*")
    assert (made["statement"], begun["op"]) == ("CREATE TABLE other (id int primary key)", "commit")
    assert (row["source"]["table"], row["after"], ended["op"]) == ("other", {"id": 7}, "commit")


def test_a_file_that_is_cut_off_gives_what_is_whole_and_says_so(written: Path) -> None:
    data = written.read_bytes()
    whole = CliRunner().invoke(app, ["decode", str(written)]).stdout.splitlines()
    for size in (len(data) - 3, len(data) // 2, len(data) // 3):
        written.write_bytes(data[:size])
        found = CliRunner().invoke(app, ["decode", str(written)])
        assert found.exit_code == 1
        assert "ends in the middle of" in found.stderr
        assert 0 < len(found.stdout.splitlines()) <= len(whole)
        assert _without_times(found.stdout.splitlines()) == _without_times(whole[: len(found.stdout.splitlines())])


def _without_times(lines: list[str]) -> list[Any]:
    return [{**json.loads(line), "ts_ms": None} for line in lines]


def test_a_broken_byte_is_an_error_with_its_place(written: Path) -> None:
    data = bytearray(written.read_bytes())
    at = data.index("café".encode("latin1"))
    data[at] ^= 1
    written.write_bytes(data)
    found = CliRunner().invoke(app, ["decode", str(written)])
    assert found.exit_code == 1
    assert "CRC32" in found.stderr
    assert written.name in found.stderr


def test_a_file_without_names_is_refused_with_the_setting(server: Database, tmp_path: Path) -> None:
    """Pitfall: rows without names of columns."""
    run(server, "DROP DATABASE IF EXISTS filed", "CREATE DATABASE filed", "FLUSH BINARY LOGS")
    name = facts(source(server)).file
    minimal = "NO_LOG" if server.flavor == "mariadb" else "MINIMAL"
    run(server, f"SET GLOBAL binlog_row_metadata = {minimal}")
    try:
        run(server, ORDERS, "INSERT INTO orders (id) VALUES (1)", "FLUSH BINARY LOGS", database="filed")
    finally:
        run(server, "SET GLOBAL binlog_row_metadata = FULL")
    found = CliRunner().invoke(app, ["decode", str(shutil.copy(server.data / name, tmp_path / name))])
    assert found.exit_code == 1
    assert "missing_metadata" in found.stderr
    assert "binlog_row_metadata" in found.stderr
