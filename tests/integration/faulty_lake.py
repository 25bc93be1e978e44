"""A lake to which everything happens that a compaction can do, made by hand: what a run of it that is killed anywhere
must leave to the next one, which makes it the lake that it would have been.

The first runs have landed and merged FIRST. Then comes SECOND: changes that come again, a moved key, a row that is
deleted and made again, an added column, a number of more digits, a column with a name of Delta's own, a renamed one, a
truncation, a table that joins late, one of an unknown schema, one whose unknown schema is known now, a staged snapshot
and a staged repair, a table that was not followed for a time, a record that is no change.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
import s3fs
from pyspark.sql import SparkSession

from contract import status
from contract.checkpoint import Checkpoint
from contract.ddl_record import DdlRecord
from contract.pipeline import Pipeline, Tables, load
from contract.schema import Column, TableSchema
from contract.sequence import Sequence
from spark.lake.applied import Applied, AppliedSnapshots
from spark.lake.lake import Lake
from spark.lake.manifests import Manifest
from spark.lake.unfinished import BEAT
from spark.landing.marks import KEPT_MARKS, Marks
from spark.merging.parts import Part, put
from stack.kafka import Kafka
from stack.s3 import S3
from tests import checkpoints
from tests.integration.by_hand import make_topics, pipeline_of, send
from tests.spark.changes_by_hand import ITEMS, compact_json, record
from tests.spark.lake_by_hand import staged

NAME = "faults"
OF_DELTA = "filePath"  # which a table with deletion vectors cannot have
P0 = 60
PLAIN = {"request_checksum_calculation": "when_required"}  # the test's store knows no newer requests
BATCH = "compaction: {max_offsets_per_batch: 1000, unreadable: dead_letter}\n"


class Change(NamedTuple):
    """`pos`: its place in the binlog, which no other change has."""

    table: str
    pos: int
    op: str
    id: int = 0
    name: str | None = None
    version: int = 1


def made(table: str, op: str, *ids: int, at: int, name: str = "a", version: int = 1) -> list[Change]:
    return [Change(table, at + n, op, id, name, version) for n, id in enumerate(ids)]


MANY = [Change("items", 1000 + n, "u", 1 + n % 5, f"v{n}", 2) for n in range(1050)]  # more than a batch holds
FIRST = [
    *made("items", "c", *range(1, 21), at=1),
    *[Change("items", 21, "u", 5, "b"), Change("items", 22, "d", 6)],
    *made("lines", "c", *range(1, 11), at=31),
    *made("snapped", "c", 1, 2, 3, 4, 5, at=41),
    *made("waits", "c", 1, 2, 3, at=51),
    *made("mended", "c", 1, 2, 3, at=54),
    *made("named", "c", 1, 2, 3, at=57),
    Change("snapped", 65, "c", 7, "b"),  # behind the snapshot's first read, and merged before that is there
]
LATE = [change for change in FIRST if change.table == "snapped"][-2:]
AGAIN = [change for change in FIRST if change.table == "items" and change.pos > 14]
SECOND = [
    *[Change("items", 70, "d", 7), Change("items", 71, "c", 100, "moved")],
    *[Change("items", 72, "u", 8, "b", 2), Change("items", 74, "c", 6, "again", 2)],
    *MANY,
    *[
        Change("lines", 80, "u", 1, "b"),
        Change("lines", 81, "t"),
        *made("lines", "c", 2, 11, at=82, name="new", version=2),
    ],
    *[Change("snapped", 90, "u", 3, "b"), Change("snapped", 91, "d", 4), Change("snapped", 92, "c", 9, "c")],
    *[Change("waits", 95, "u", 1, "b")],
    *[Change("mended", 96, "u", 2, "b")],
    *[Change("named", 97, "u", 2, "b", 2)],
    *made("fresh", "c", 1, 2, 3, at=200),
    *made("odd", "c", 1, at=210, version=9),
]
RENAMED = DdlRecord(
    db=NAME, table="lines", kind="alter", statement="ALTER TABLE lines RENAME COLUMN price TO cost", gtid=None,
    seq=(0, 1, 81), ts_ms=1, renamed=(("price", "cost"),), only_renamed=True,
)  # fmt: skip
READ = {n: (n, "read", P0) for n in (1, 2, 4)}  # of the table `mended`, by a repair
STAGED = {n: (n, "staged", P0) for n in (2, 3, 4, 5, 6)}
ALL, NOT_LEFT = Tables(include=(f"{NAME}.*",)), Tables(include=(f"{NAME}.*",), exclude=("*.left",))


def schema_of(table: str, version: int = 1) -> TableSchema:
    columns, since = ITEMS.columns, None
    if table == "lines":
        since = Sequence(0, 1, 82 if version == 2 else 31)
    if version == 2:
        cost = columns[2].model_copy(update={"name": "cost"})
        more = Column(name=OF_DELTA if table == "named" else "note", type="int")
        wide = columns[2].model_copy(update={"precision": 12 if table == "items" else 10})
        columns = (*columns[:2], cost) if table == "lines" else (*columns[:2], wide, more)
    told = {"db": NAME, "table": table, "version": version, "columns": columns, "since": since}
    return ITEMS.model_copy(update=told)


def expected(table: str) -> list[tuple[int, str | None, int]]:
    """id, name and place of the table's rows in the end."""
    rows = dict({"snapped": STAGED, "mended": READ}.get(table, {}))
    for change in sorted((c for c in FIRST + SECOND if c.table == table), key=lambda c: c.pos):
        if table in ("snapped", "mended") and change.pos <= P0:
            continue
        if change.op == "t":
            rows.clear()
        elif change.op == "d":
            rows.pop(change.id, None)
        else:
            rows[change.id] = (change.id, change.name or "", change.pos)
    return sorted(rows.values())


class FaultyLake:
    """The pipeline's topics, and its lake after the first runs, of which `copy` makes as many as there are tests."""

    def __init__(self, folder: Path, kafka: Kafka) -> None:
        self.folder, self.kafka = folder, kafka
        tables = ("items", "lines", "snapped", "waits", "mended", "named")
        make_topics(kafka, *(f"{NAME}.{NAME}.{t}" for t in tables), f"{NAME}.schemas", f"{NAME}.commit-log")
        make_topics(kafka, f"{NAME}.ddl")
        self._schemas(schema_of("items"), schema_of("lines"), schema_of("snapped"))
        self._schemas(schema_of("odd"), schema_of("mended"), schema_of("named"))
        self._checkpoint(self._reached(P0).following(ALL))
        self.pipeline = pipeline_of(folder, kafka, NAME, BATCH)

    def before(self, spark: SparkSession) -> None:
        """What the first run finds."""
        lake = Lake(spark, self.pipeline)
        older = Marks(lake, "older")
        for number in range(KEPT_MARKS):
            older.write(number, [])
        facts = {"p0": "", "p1": "", "rows": 0, "applied_at": 1}
        AppliedSnapshots(lake).note((NAME, "left"), Applied(id="1", floor=[0, 1, 50, -1, -1], **facts))
        self._send(change for change in FIRST if change not in LATE)

    def between(self, number: int) -> None:
        """What a run more finds: the table whose place is taken has more versions than the staged one."""
        self._send(LATE[number : number + 1])

    def after(self, spark: SparkSession) -> None:
        """What the second run finds, which is the one that is killed."""
        make_topics(self.kafka, *(f"{NAME}.{NAME}.{t}" for t in ("fresh", "odd")))
        self._schemas(schema_of("waits"), schema_of("fresh"), *(schema_of(t, 2) for t in ("items", "lines", "named")))
        send(self.kafka, f"{NAME}.ddl", (b"key", RENAMED.model_dump_json().encode()))
        self._send(AGAIN + SECOND)
        send(self.kafka, f"{NAME}.{NAME}.odd", (b"key", b"no change"))
        self._checkpoint(self._reached(70).following(ALL).following(NOT_LEFT).model_copy(update={"pos": 9000}), ALL)
        self._stage(spark)

    def copy(self, name: str) -> Pipeline:
        folder = self.folder / name
        shutil.copytree(self.folder / "lake", folder / "lake")
        return pipeline_of(folder, self.kafka, NAME, BATCH)

    def stored(self, name: str, s3: S3) -> tuple[Pipeline, Pipeline]:
        """A copy in the bucket `lakes`; and the same as the folder that the store has it in, to look at."""
        folder, bucket = self.folder / name, s3.home / "data" / "lakes" / name
        there = {"endpoint_url": s3.endpoint}
        store = s3fs.S3FileSystem(key=s3.key, secret=s3.secret, client_kwargs=there, config_kwargs=PLAIN)
        store.put(f"{self.folder / 'lake'}/", f"lakes/{name}/", recursive=True)
        folder.mkdir()
        below = pipeline_of(folder, self.kafka, NAME, BATCH)
        text = below.path.read_text().partition("lake: ")[0] + s3.lake_section(f"lakes/{name}") + BATCH
        (folder / "s3.yaml").write_text(text)
        seen = below.model_copy(update={"lake": below.lake.model_copy(update={"path": str(bucket)})})
        return load(folder / "s3.yaml"), seen

    def _reached(self, pos: int) -> Checkpoint:
        return checkpoints.checkpoint(pipeline=NAME, pos=pos, gtid_set=f"{checkpoints.SOURCE}:1-{pos}", ts_ms=pos)

    def _checkpoint(self, checkpoint: Checkpoint, tables: Tables | None = None) -> None:
        checkpoint = checkpoint.following(tables) if tables else checkpoint
        send(self.kafka, f"{NAME}.commit-log", (NAME.encode(), checkpoint.model_dump_json().encode()))

    def _schemas(self, *schemas: TableSchema) -> None:
        for schema in schemas:
            key = f"{schema.table}-{schema.version}".encode()
            send(self.kafka, f"{NAME}.schemas", (key, schema.model_dump_json().encode()))

    def _send(self, changes: Iterable[Change]) -> None:
        by_table: dict[str, list[tuple[bytes | None, bytes]]] = {}
        for change in changes:
            by_table.setdefault(change.table, []).append(message(change))
        for table, messages in by_table.items():
            send(self.kafka, f"{NAME}.{NAME}.{table}", *messages)

    def _stage(self, spark: SparkSession) -> None:
        lake, schema = Lake(spark, self.pipeline), schema_of("snapped")
        counts, p0 = {f"{NAME}.snapped": len(STAGED)}, self._reached(P0)
        manifest = Manifest(id="2", pipeline=NAME, p0=p0, p1=p0.gtid_set, tables=[schema], counts=counts)
        staged(spark, lake, manifest, *[row_of(n, "staged") for n in STAGED])
        shape = schema_of("mended")
        part = Part(
            id="3", pipeline=NAME, job="repair", by="", source="mysql", shape=shape, told="all", where=None,
            keyed=False, texts=True, p0=p0, p1=p0.gtid_set,
        )  # fmt: skip
        texts = [(compact_json({"id": n}), compact_json(row_of(n, "read"))) for n in READ]
        spark.createDataFrame(texts, "key string, after string").write.parquet(f"{part.folder(lake)}/rows")
        lake.write(f"{part.folder(lake)}/{BEAT}", {"at": 0.0, "by": "test"})
        put(lake, part)


def row_of(id: int, name: str | None) -> dict[str, Any]:
    return {"id": id, "name": name, "price": "1.00"}


def message(change: Change) -> tuple[bytes | None, bytes]:
    at, schema = (0, 1, change.pos, 0, 0), schema_of(change.table, change.version)
    row = row_of(change.id, change.name)
    if change.op == "t":
        told = {"name": NAME, "db": NAME, "table": change.table, "ts_ms": 1_700_000_000_000, "seq": list(at)}
        return None, compact_json({"before": None, "after": None, "source": told, "op": "t"}).encode()
    if change.version == 2:
        more = {OF_DELTA if change.table == "named" else "note": 7}
        row |= {"cost": row.pop("price")} if change.table == "lines" else more
    images = (None, row) if change.op == "d" else (row, None)
    key, value, *_ = record(0, at, change.op, *images, schema, pipeline=NAME)
    return key, value


def assert_as_expected(pipeline: Pipeline) -> None:
    """Every row once, each from the change that made it; every change once; and the status tells it."""
    lake = Path(pipeline.lake.path) / NAME
    changes = pl.scan_delta(str(lake / "_changes")).select("tbl", "_seq").collect().rows()
    told = sorted((tbl.removeprefix(f"{NAME}."), seq["pos"]) for tbl, seq in changes)
    assert told == sorted((c.table, c.pos) for c in FIRST + SECOND)
    standing = status.read(pipeline)
    assert standing is not None
    found = {t.table: t for t in standing.tables.values()}
    for table in ("items", "lines", "snapped", "waits", "fresh", "mended", "named"):
        rows = pl.scan_delta(str(lake / NAME / table)).select("id", "name", "_seq").collect().rows()
        assert sorted((id, name, seq["pos"]) for id, name, seq in rows) == expected(table), table
        assert (found[table].stopped, found[table].freshness_ms) == (None, 70)
        changes_of = len([c for c in FIRST + SECOND if c.table == table])
        assert (found[table].rows, found[table].changes) == (len(rows), changes_of), table
    notes = pl.scan_delta(str(lake / NAME / "items")).select("id", "note").collect().rows()
    assert sorted(id for id, note in notes if note == 7) == [1, 2, 3, 4, 5, 6, 8]
    lines = pl.scan_delta(str(lake / NAME / "lines")).collect()
    assert lines.columns == ["id", "name", "cost", "_seq", "_ts"]
    assert set(lines["cost"].cast(pl.String)) == {"1.00"}
    assert found["lines"].stale is None
    assert (applied := found["snapped"].snapshot)
    assert (applied.id, applied.rows) == ("2", len(STAGED))
    assert found["left"].freshness_ms is None
    assert "version 9" in (found["odd"].stopped or "")
    assert [stop["table"] for stop in json.loads((lake / "_stopped.json").read_text())] == ["odd"]
    assert pl.read_delta(str(lake / "_dead_letters"))["value"].to_list() == [b"no change"]
    assert standing.unreadable == 1
    assert [name for name, table in found.items() if table.unequal] == ["odd"]
    assert standing.parts["3"].rows == {"changed": 1, "extra": 1, "missing": 1}
    assert pl.read_delta(str(lake / "_repairs")).height == 3
    assert not [*(lake / "_staging").glob("*"), *(lake / "_parts").glob("*")]
    assert not list(lake.glob("_running.json*"))
