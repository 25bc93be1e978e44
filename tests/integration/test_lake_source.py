"""Snapshots and checks ask the server that the streamer reads, also when it has moved to another one."""

from __future__ import annotations

import re

import pymysql
import pytest

from contract.checkpoint import Checkpoint
from contract.pipeline import Pipeline
from spark.errors import LakeError
from spark.source.source import Source
from spark.source.streamed import streamed
from stack.database import Database
from stack.mysql import MySQL
from stack.mysql80 import MySQL80
from stack.ports import free_port
from streamer import present_table
from streamer.source import facts
from tests.checkpoints import checkpoint
from tests.integration.decoding import HOST, found_of, run, source
from tests.integration.decoding import pipeline as pipeline_of

PASSWORD = "of-this-test-alone-41"


def at(uuid: str) -> Checkpoint:
    return checkpoint(pipeline="checked", server_uuid=uuid, epoch=1)


def reads(pipeline: Pipeline, uuid: str) -> int:
    """The port of the server that is asked, by its connection and by what Spark's reader is given."""
    with streamed(pipeline, at(uuid)) as found:
        assert found.connection.port == found.pipeline.source.port
        return found.pipeline.source.port


def test_a_server_is_known_by_the_identity_that_the_streamer_writes(server: Database) -> None:
    assert reads(pipeline_of(server), facts(source(server)).server_uuid) == server.port


def test_the_failover_server_is_asked_once_the_streamer_reads_it(mysql: MySQL, mysql80: MySQL80) -> None:
    for server in (mysql, mysql80):
        create = f"CREATE USER switched IDENTIFIED WITH mysql_native_password BY '{PASSWORD}'"
        run(server, create if server is mysql80 else create.replace(" WITH mysql_native_password", ""))
    of = {server: facts(source(server)).server_uuid for server in (mysql, mysql80)}
    assert of[mysql] != of[mysql80]
    user = {"user": "switched", "password": PASSWORD}
    both = pipeline_of(mysql, failover=[f"{HOST}:{mysql80.port}"], **user)
    assert reads(both, of[mysql]) == mysql.port
    assert reads(both, of[mysql80]) == mysql80.port  # the first lives on, as a replica
    dead = pipeline_of(mysql, port=free_port(), failover=[f"{HOST}:{mysql80.port}"], **user)
    assert reads(dead, of[mysql80]) == mysql80.port

    with pytest.raises(LakeError) as caught:
        streamed(both, at("another"))
    said = f"reads the server another.*{mysql.port} is {of[mysql]}; .*{mysql80.port} is {of[mysql80]}.*in source.host"
    assert re.search(said, str(caught.value))
    with pytest.raises(LakeError, match=rf"{dead.source.port} cannot be asked.*source\.host") as caught:
        streamed(dead, at(of[mysql]))
    assert PASSWORD not in str(caught.value)
    with pytest.raises(pymysql.OperationalError, match="Can't connect"):  # as of a pipeline of one server ever
        streamed(pipeline_of(mysql, port=dead.source.port, **user), at(of[mysql]))


@pytest.mark.lacks("mysql80", "its own keys came with 8.0.30")
@pytest.mark.lacks("mariadb", "it generates none")
def test_a_generated_key_that_the_server_hides_is_the_tables_key(server: Database) -> None:
    """The binlog has it whatever the server shows."""
    shows = "GLOBAL show_gipk_in_create_table_and_information_schema"
    create = "CREATE TABLE hidden.keyless (a int)", "INSERT INTO hidden.keyless VALUES (5)"
    run(server, "DROP DATABASE IF EXISTS hidden", "CREATE DATABASE hidden")
    run(server, "SET sql_generate_invisible_primary_key = ON", *create, f"SET {shows} = OFF")
    try:
        # Each session that does not say otherwise is without it from here on.
        with Source(pipeline_of(server, "hidden.*")) as asked:
            schema = asked.schema("hidden", "keyless")
            keys = asked.rows("SELECT my_row_id, a FROM hidden.keyless")
        known = present_table.ask(source(server), "hidden", "keyless")
        found = found_of(pipeline_of(server, "hidden.*"))
    finally:
        run(server, f"SET {shows} = ON", "DROP DATABASE hidden")
    assert schema is not None
    assert known is not None
    assert (schema.key, [column.name for column in schema.columns]) == (("my_row_id",), ["my_row_id", "a"])
    assert known.schema == schema
    assert found == []
    assert list(keys) == [(1, 5)]
