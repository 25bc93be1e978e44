"""Snapshots and checks ask the server that the streamer reads, also when it has moved to another one."""

from __future__ import annotations

import json
import re

import pymysql
import pytest
from pyspark.sql import SparkSession

from contract.checkpoint import Checkpoint
from contract.pipeline import Pipeline
from contract.pipeline_columns import Columns
from spark.errors import LakeError, TableError
from spark.source.row_texts import rows_of
from spark.source.source import Source
from spark.source.streamed import streamed
from stack.database import Database
from stack.mysql import MySQL
from stack.mysql80 import MySQL80
from stack.ports import free_port
from streamer import present_table
from streamer.source import facts, tables
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


def test_a_limit_of_the_servers_own_cuts_no_read(spark: SparkSession, server: Database) -> None:
    numbers = ", ".join(f"({n})" for n in range(9))
    run(server, "CREATE DATABASE limited", "CREATE TABLE limited.t (id int primary key)")
    run(server, *(f"CREATE TABLE limited.{name} (id int primary key)" for name in "uvw"))
    run(server, f"INSERT INTO limited.t VALUES {numbers}", "SET GLOBAL sql_select_limit = 2")
    try:
        with Source(pipeline_of(server, "limited.*")) as asked:
            schema = asked.schema("limited", "t")
            assert schema is not None
            assert len(asked.rows("SELECT id FROM limited.t")) == 9
            assert rows_of(spark, asked, schema, ["k0 < 5", "k0 >= 5"]).count() == 9
        assert len(tables(pipeline_of(server, "limited.*"))) == 4
    finally:
        run(server, "SET GLOBAL sql_select_limit = DEFAULT")


@pytest.mark.lacks("mysql", "it has none")
@pytest.mark.lacks("mysql80", "it has none")
def test_a_year_of_two_digits_is_in_no_snapshot_and_told_before(spark: SparkSession, server: Database) -> None:
    run(server, "CREATE DATABASE years", "CREATE TABLE years.t (id int primary key, y year(2))")
    told = [found for found in found_of(pipeline_of(server, "years.*")) if "YEAR(2)" in found.what]
    assert [(found.level, "years.t.y" in found.what) for found in told] == [("warning", True)]
    with Source(pipeline_of(server, "years.*")) as asked:
        schema = asked.schema("years", "t")
        assert schema is not None
        with pytest.raises(TableError, match=r"years\.t: of YEAR\(2\) the server tells no century \(y\)"):
            rows_of(spark, asked, schema, ["1 = 1"])


def test_a_column_that_each_session_computes_otherwise_is_told_of(server: Database) -> None:
    run(server, "CREATE DATABASE computed")
    run(
        server,
        "CREATE TABLE computed.t (id int primary key, made timestamp NOT NULL, day date AS (date(made)) VIRTUAL, "
        "kept date AS (date(made)) STORED, twice int AS (id * 2) VIRTUAL, month int AS (month(day)) VIRTUAL)",
    )
    [told] = [found for found in found_of(pipeline_of(server, "computed.*")) if "VIRTUAL" in found.what]
    assert (told.level, told.name) == ("warning", "columns")
    assert told.what.endswith("whose values the stream has: computed.t.day, computed.t.month")
    without = ["computed.t.day", "computed.t.month"]
    assert f"Make them STORED, leave them out (columns.exclude: {json.dumps(without)}), or write " in told.statement
    rules = Columns(exclude=tuple(without))
    left = found_of(pipeline_of(server, "computed.*").model_copy(update={"columns": rules}))
    assert [found for found in left if "VIRTUAL" in found.what] == []


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
