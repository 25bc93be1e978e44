"""Rows of the table that are staged, and that an erasure does not see into."""

from __future__ import annotations

from contract import names
from contract.schema import TableSchema
from spark.errors import LakeError
from spark.lake.lake import Lake
from spark.lake.manifests import manifests
from spark.lake.unfinished import silent, unfinished
from spark.merging.parts import MANIFEST, parts


def refuse_reading(lake: Lake, schema: TableSchema) -> None:
    """Raises LakeError where a snapshot of the table is being read, or rows of a repair or backfill, whose table nobody
    tells before they are: what was read is not seen from here."""
    for staging in unfinished(lake):
        if staging.has(schema.db, schema.table) and not staging.silent():
            raise _busy(f"a snapshot of {schema.db}.{schema.table} is being read ({staging.folder})")
    for name in lake.list(lake.at(names.PARTS)):
        folder = lake.at(names.PARTS, name)
        if not lake.exists(f"{folder}/{MANIFEST}") and not silent(lake, folder):
            raise _busy(f"rows for a repair or backfill are being read ({folder})")


def _busy(what: str) -> LakeError:
    return LakeError(f"{what}, and may have such a row: run the erasure again when it has ended. Nothing was erased")


def staged(lake: Lake, schema: TableSchema) -> dict[str, str]:
    """Folders of rows that were staged whole and are not in the table: what they are of. Behind a compaction they are
    those that it could not take."""
    table = (schema.db, schema.table)
    read = [
        (one.rows(lake, each), one.id)
        for one in manifests(lake)
        for each in one.tables
        if (each.db, each.table) == table
    ]
    found = {folder: f"the snapshot {id}" for folder, id in read if lake.exists(folder)}
    return found | {part.folder(lake): f"a {part.job}" for part in parts(lake) if part.name == table}
