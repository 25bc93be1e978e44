"""Databases and tables whose names the lake cannot have as folders."""

from __future__ import annotations

from contract import names
from contract.schema import TableSchema
from spark.errors import TableStoppedError

LOG = "_delta_log"  # what makes a folder a Delta table
LONGEST = 220  # characters of both names, that files named after them have no more than 255


def refuse_names(schema: TableSchema) -> None:
    """Raises TableStoppedError."""
    name = f"{schema.db}.{schema.table}"
    if schema.db.lower() in names.FOLDERS:
        raise TableStoppedError(
            f"{name}: {schema.db} is a folder of the lake's own, so no database of this name can be there. "
            "Exclude the table, or move it to another database"
        )
    if LOG in (schema.db.lower(), schema.table.lower()):
        raise TableStoppedError(
            f"{name}: Delta takes a folder that has one named {LOG} for a table, so no database or table of this name "
            "can be in the lake. Exclude the table, or give it another name"
        )
    if "." in schema.db:
        raise TableStoppedError(
            f"{name}: its database's name has a dot, so that the lake, which knows a table as db.table, would take it "
            f"for a table of {schema.db.partition('.')[0]}. Exclude the table, or move it to another database"
        )
    if len(names.escape(schema.db) + names.escape(schema.table)) > LONGEST:
        raise TableStoppedError(
            f"{name}: the names of its database and its own are longer than {LONGEST} characters as folders of the "
            "lake, where each byte of what is no ASCII letter takes four. Exclude the table, or give it a shorter "
            "name"
        )
