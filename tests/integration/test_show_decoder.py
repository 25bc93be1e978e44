"""`headrace decoder` prints the decoder that the stream uses, though it has the schema topic alone."""

from __future__ import annotations

import pytest

from stack.database import Database
from streamer.protocol.model import RowsBatch
from streamer.show_decoder import source
from tests.integration.decoding import recorded, run
from tests.integration.edge_values import CASES
from tests.integration.streaming import Make, execute, insert


@pytest.mark.lacks("mariadb", "it has not all of MySQL's character sets")
def test_the_decoder_of_every_type_follows_from_its_schema(server: Database) -> None:
    columns = ", ".join(f"`c{n}` {kind}" for n, kind in enumerate(CASES))
    run(server, "DROP DATABASE IF EXISTS decoders", "CREATE DATABASE decoders")
    with recorded(server) as found:
        run(server, "SET sql_mode = ''", f"CREATE TABLE t (id int primary key, {columns})", database="decoders")
        run(server, "INSERT INTO t (id) VALUES (1)", database="decoders")
    [table] = [item.table for item in found if isinstance(item, RowsBatch)]
    assert source(table.schema).endswith(table.source)


def test_it_is_printed_from_the_schema_topic(make: Make) -> None:
    streamer = make("printed").started()
    insert(streamer.mysql, "printed", 1, 1)
    streamer.wait_until_released()
    execute(streamer.mysql, "ALTER TABLE printed.t DROP COLUMN v, ADD COLUMN more DECIMAL(9,2)")
    execute(streamer.mysql, "INSERT INTO printed.t VALUES (2, 'y', 1)")
    streamer.wait_until_released()
    newest, first = streamer.command("decoder", "printed.t"), streamer.command("decoder", "printed.t", "--version", "1")
    assert "schema version 2" in newest.stdout
    assert '"more":' in newest.stdout
    assert '"v":' in first.stdout
    compile(newest.stdout, "printed", "exec")
    unknown = streamer.command("decoder", "printed.nothing")
    assert (unknown.returncode, unknown.stdout) == (1, "")
    assert "has no schema of it" in unknown.stderr
    assert "has its versions 1, 2 only" in streamer.command("decoder", "printed.t", "--version", "3").stderr
