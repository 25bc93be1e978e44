"""What a snapshot that is staged whole says of itself, and where its rows are."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import BaseModel

from contract import names
from contract.checkpoint import Checkpoint
from contract.schema import TableSchema
from spark.kafka.topic_places import TopicPlace
from spark.lake.lake import Lake
from spark.lake.letters import BEFORE_ALL

MANIFEST = "manifest.json"


class Manifest(BaseModel):
    """A staged snapshot. `p0`: where the reads began, but for the tables of `later`, that began behind it. `p1`: a
    GTID set. `tables`: the shapes that the staged rows were read by. `nulled`: for how many of their values the lake
    has a null; `versions`: of the table that has a table's rows (staged.py). `letters`: as of Applied; the
    same of each table are `erasures`. `seen`: what was in Kafka before the first read; empty from a version that did
    not look."""

    id: str
    pipeline: str
    p0: Checkpoint
    p1: str
    tables: list[TableSchema]
    counts: dict[str, int]
    nulled: dict[str, int] = {}
    versions: dict[str, int | None] = {}
    later: dict[str, Checkpoint] = {}
    letters: int = BEFORE_ALL
    erasures: dict[str, int] = {}
    seen: dict[str, TopicPlace] = {}

    def begun(self, schema: TableSchema) -> Checkpoint:
        """P0 of the table."""
        return self.later.get(f"{schema.db}.{schema.table}", self.p0)

    def sequence(self, schema: TableSchema) -> list[int]:
        """What the table's staged rows get as `_seq`: behind everything before P0, before everything after it."""
        return [*self.begun(schema).place, -1, -1]

    def counted(self, schema: TableSchema) -> int:
        """The version of the table's staged rows that has as many as `counts` says."""
        return self.versions.get(f"{schema.db}.{schema.table}") or 0

    def folder(self, lake: Lake) -> str:
        return lake.at(names.STAGING, self.id)

    def rows(self, lake: Lake, schema: TableSchema) -> str:
        return rows_folder(self.folder(lake), schema.db, schema.table)


def rows_folder(staging: str, db: str, table: str) -> str:
    return f"{staging}/{names.escape(db)}/{names.escape(table)}"


def manifests(lake: Lake) -> Iterator[Manifest]:
    """The snapshots that are staged whole, the oldest first."""
    for name in lake.list(lake.at(names.STAGING)):
        if text := lake.text(lake.at(names.STAGING, name, MANIFEST)):
            found = Manifest.model_validate_json(text)
            yield found.model_copy(update={"tables": [lake.pipeline.lake.lands(schema) for schema in found.tables]})
