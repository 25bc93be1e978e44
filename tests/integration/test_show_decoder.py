"""`headrace decoder` prints the decoder that the stream uses, though it has the schema topic and the server alone."""

from __future__ import annotations

from contract.pipeline import Pipeline
from contract.pipeline_columns import Columns
from stack.database import Database
from stack.mariadb import MariaDB
from streamer.definitions import Definitions
from streamer.protocol.filters import Filters
from streamer.protocol.model import RowsBatch, TableMap
from streamer.show_decoder import source
from streamer.transaction import BinlogDecoder
from tests.integration import decoding
from tests.integration.decoding import chunks, executed, pipeline, run
from tests.integration.edge_values import cases
from tests.integration.streaming import Make, execute, insert
from tests.integration.test_decoder_types import OLD_TIMES

HIDES = Columns.model_validate(
    {
        "secret": "s",
        "exclude": ["*.*.out*"],
        "masks": [{"columns": ["*.*.mail"], "mask": "hash"}, {"columns": ["*.*.n"], "mask": "null"}],
    }
)


def decodes(server: Database, chosen: Pipeline, *create: str) -> TableMap:
    """The table `t (id ..)` as the stream has it from its first row on."""
    run(server, "DROP DATABASE IF EXISTS decoders", "CREATE DATABASE decoders")
    begin = executed(server)
    run(server, "SET sql_mode = ''", *create, "INSERT INTO t (id) VALUES (1)", database="decoders")
    end = executed(server)
    definitions = Definitions(decoding.source(server), lambda: end)
    decoder = BinlogDecoder(chosen.tables.match, definitions=definitions, filters=Filters(chosen.show))
    found = [item for chunk in chunks(server, begin, end) for item in decoder.feed(chunk)]
    return next(item.table for item in found if isinstance(item, RowsBatch))


def is_printed(table: TableMap, chosen: Pipeline) -> None:
    printed = source(chosen, table.schema)
    assert printed.endswith(table.source)
    assert "Of the schema alone" not in printed
    compile(printed, "printed", "exec")


def test_the_decoder_of_every_type(server: Database) -> None:
    columns = ", ".join(f"`c{n}` {kind}" for n, kind in enumerate(cases(server)))
    chosen = pipeline(server, "decoders.*")
    is_printed(decodes(server, chosen, f"CREATE TABLE t (id int primary key, {columns}) ROW_FORMAT=DYNAMIC"), chosen)


def test_columns_that_are_left_out_or_masked_are_read_too(server: Database) -> None:
    chosen = pipeline(server, "decoders.*").model_copy(update={"columns": HIDES})
    create = "CREATE TABLE t (out1 varchar(9), id int primary key, mail varchar(300), out2 decimal(9,2), n int, v text)"
    table = decodes(server, chosen, create)
    assert [column.name for column in table.columns] == ["id", "mail", "n", "v"]
    is_printed(table, chosen)


def test_what_mariadb_compresses_and_hides(mariadb: MariaDB) -> None:
    """Lengths at which a compressed value's own length takes another byte; keys on long texts, also behind an ALTER."""
    chosen = pipeline(mariadb, "decoders.*")
    kinds = ("varchar(254)", "varchar(255)", "varchar(256)", "varbinary(255)", "text", "longblob")
    columns = ", ".join(f"c{n} {kind} COMPRESSED" for n, kind in enumerate(kinds))
    table = (
        f"CREATE TABLE t (id int primary key, {columns}, url varchar(1000) unique, v text, unique (v)) CHARSET latin1"
    )
    is_printed(decodes(mariadb, chosen, table.replace("1000", "9000"), "ALTER TABLE t ADD late int"), chosen)


def test_times_in_mariadbs_old_format(mariadb: MariaDB) -> None:
    chosen = pipeline(mariadb, "decoders.*")
    columns = ", ".join(f"`c{n}` {kind}" for n, kind in enumerate(OLD_TIMES))
    run(mariadb, "SET GLOBAL mysql56_temporal_format = OFF")
    try:
        table = decodes(mariadb, chosen, f"CREATE TABLE t (id int primary key, {columns})")
    finally:
        run(mariadb, "SET GLOBAL mysql56_temporal_format = ON")
    is_printed(table, chosen)


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
    assert "Of the schema alone" not in newest.stdout
    assert '"v":' in first.stdout
    assert "for the table has another shape by now" in first.stdout
    compile(newest.stdout, "printed", "exec")
    unknown = streamer.command("decoder", "printed.nothing")
    assert (unknown.returncode, unknown.stdout) == (1, "")
    assert "has no schema of it" in unknown.stderr
    assert "has its versions 1, 2 only" in streamer.command("decoder", "printed.t", "--version", "3").stderr
