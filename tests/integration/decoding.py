"""Reads a stretch of a real server's binlog through the product's connection and decoder."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import pytest

from contract.gtid import GtidSet
from contract.pipeline import Pipeline, Source
from stack.database import USER, Database
from streamer.connection import BinlogConnection
from streamer.ddl.notes import DdlNotes
from streamer.definitions import Definitions
from streamer.preflight.checks import CHECKS, Finding, run_checks
from streamer.preflight.unmatched import unmatched
from streamer.protocol.held import PreparedXa
from streamer.protocol.model import Commit, Ddl, Item, RowsBatch
from streamer.protocol.packets import ServerAnswerError
from streamer.routes import Router
from streamer.schemas import Schemas
from streamer.source import facts
from streamer.transaction import BinlogDecoder

HOST = "127.0.0.1"


def source(server: Database, server_id: int = 4711, heartbeat_seconds: float = 1.0) -> Source:
    return Source(
        flavor=server.flavor, host=HOST, port=server.port, user=USER, password=server.password, server_id=server_id,
        heartbeat_seconds=heartbeat_seconds,
    )  # type: ignore[arg-type]  # fmt: skip


def pipeline(server: Database, include: str = "checked.*", **changes: Any) -> Pipeline:
    given = {
        "flavor": server.flavor,
        "host": HOST,
        "port": server.port,
        "user": USER,
        "password": server.password,
        "server_id": 4730,
    }
    return Pipeline.model_validate(
        {
            "format": 1,
            "name": "checked",
            "source": given | changes,
            "tables": {"include": [include]},
            "kafka": {"bootstrap": "localhost:9092"},
            "lake": {"path": "lake"},
        }
    )


def found_of(pipeline: Pipeline, start: GtidSet | None = None, since: float | None = None) -> list[Finding]:
    """What preflight finds, without patterns that match no table: those depend on what other tests left there."""
    return run_checks(pipeline, start, since, checks=[check for check in CHECKS if check is not unmatched])


def executed(server: Database) -> GtidSet:
    return facts(source(server)).executed


def nothing(server: Database) -> GtidSet:
    """The start of everything."""
    return source(server).gtids("")


def endless(server: Database) -> GtidSet:
    """An end that never comes."""
    return source(server).gtids("77-1-1" if server.flavor == "mariadb" else f"{UUID(int=0)}:1")


def run(server: Database, *statements: str, database: str | None = None, autocommit: bool = True) -> None:
    """Statements as root in one session."""
    with server.connect(database=database, autocommit=autocommit) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def purge(server: Database, kept: str) -> None:
    """Binlog files before `kept` go. MariaDB passes by in silence what a checkpoint still needs, for a moment."""
    until = time.monotonic() + 20
    while time.monotonic() < until:
        run(server, f"PURGE BINARY LOGS TO '{kept}'")
        if facts(source(server)).first_file == kept:
            return
        time.sleep(0.1)
    raise AssertionError("the files stayed")


def chunks(server: Database, begin: GtidSet, end: GtidSet, server_id: int = 4711) -> list[bytes]:
    """The dump's bytes as received, from behind `begin` up to and with `end`."""
    received: list[bytes] = []
    for _ in items(server, begin, end, server_id=server_id, received=received):
        pass
    return received


def items(
    server: Database, begin: GtidSet, end: GtidSet, wanted: Callable[[str, str], bool] = lambda db, table: True,
    server_id: int = 4711, received: list[bytes] | None = None, prepared: PreparedXa | None = None,
    statements: bool = False,
) -> Iterator[Item]:  # fmt: skip
    """Everything behind `begin` up to and with `end`."""
    chosen = source(server, server_id).model_copy(update={"statements": statements})
    connection = BinlogConnection(chosen, begin)
    seen = begin.copy()
    decoder = BinlogDecoder(wanted, prepared, statements, Definitions(chosen, lambda: seen))
    if seen.issuperset(end):
        return
    try:
        for chunk in connection.chunks():
            if received is not None:
                received.append(chunk)
            for item in decoder.feed(chunk):
                yield item
                if isinstance(item, Commit):
                    seen.add(item.gtid)
            if seen.issuperset(end):
                connection.close()
    except ServerAnswerError as error:
        raise connection.answered(error) from None


@contextmanager
def recorded(server: Database) -> Iterator[list[Item]]:
    """The list is filled, when the block ends, with what was written inside it."""
    begin = executed(server)
    found: list[Item] = []
    yield found
    found += items(server, begin, executed(server))


@pytest.fixture
def streams(server: Database) -> None:
    """An empty database `streams` with the table `t (id, v, doc)`."""
    run(server, "DROP DATABASE IF EXISTS streams", "CREATE DATABASE streams")
    run(server, "CREATE TABLE t (id int primary key, v varchar(100), doc json)", database="streams")


def rows(found: list[Item]) -> list[tuple[str, object]]:
    return [(item.op, json.loads(row)) for item in found if isinstance(item, RowsBatch) for row in item.rows]


def shape(found: list[Item]) -> list[str]:
    return [item.op if isinstance(item, RowsBatch) else type(item).__name__ for item in found]


def told(server: Database, found: list[Item]) -> list[tuple[str, str]]:
    """Kind and table of each record of the DDL topic."""
    checked = pipeline(server, include="changing.*")
    notes, router = DdlNotes(checked), Router(checked, Schemas(), lambda wanted: [], lambda schema: None)
    sent = [one for item in found if isinstance(item, Ddl) for one in notes.records(item, 0, router)]
    values = [json.loads(one.value) for one in sent if not one.everywhere]
    return [(value["kind"], value["table"]) for value in values]
