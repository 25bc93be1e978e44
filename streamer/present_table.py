"""A table as its server defines it by now, with what its rows have in the binlog besides: how MariaDB keeps a column,
and its hidden ones."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass

import pymysql

from contract import information_schema
from contract.pipeline import Source
from contract.schema import Column, TableSchema
from streamer.connection import connect
from streamer.connection_errors import refused
from streamer.protocol.fields import field
from streamer.protocol.values.reader import Field

# A UNIQUE key on long texts has a column at the rows' end; of MEMORY tables HASH is a kind of index as others.
HASHES = """
SELECT COUNT(DISTINCT s.index_name) FROM information_schema.statistics s
JOIN information_schema.tables t ON t.table_schema = s.table_schema AND t.table_name = s.table_name
WHERE s.table_schema = %s AND s.table_name = %s AND s.index_type = 'HASH' AND t.engine <> 'MEMORY'
"""
HASH = Column(name="DB_ROW_HASH", type="bigint", unsigned=True)


@dataclass(frozen=True)
class PresentTable:
    """`schema`: what queries show; `fields`: what rows hold, the schema's columns first."""

    schema: TableSchema
    fields: tuple[Field, ...]


def ask(source: Source, db: str, table: str) -> PresentTable | None:
    """None where there is no such table. Raises UnsupportedTypeError, and UnreachableError and its like."""
    try:
        with closing(connect(source, read_timeout=60)) as connection, connection.cursor() as cursor:
            cursor.execute(information_schema.COLUMNS, (db, table))
            columns = cursor.fetchall()
            cursor.execute(information_schema.KEYS, (db, table))
            schema = information_schema.table(db, table, columns, cursor.fetchall())
            if schema is None:
                return None
            spelled = map(information_schema.spelled, columns)
            fields = [field(column, text) for column, text in zip(schema.columns, spelled, strict=True)]
            if source.flavor == "mariadb":
                cursor.execute(HASHES, (db, table))
                [hashes] = cursor.fetchone() or (0,)
                fields += [field(HASH)] * hashes
            return PresentTable(schema, tuple(fields))
    except pymysql.MySQLError as error:
        raise refused(source, error) from None
