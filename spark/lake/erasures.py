"""What the lake remembers of erasures: one small file, by which no change of before an erasure comes back.

A key is kept as a hash with the lake's own salt, never in plain. A change is known by its place, and behind a failover
or a move back (`headrace seek`), which give it a greater one, by its GTID. Of a server without GTIDs a move back alone
gives it a greater one, by its epoch: it is known by file and position. Those of another server, or of a binlog that was
begun anew, say nothing beside these, and no record tells which it is of: what was committed later than the erasure's
place is not taken for one of before.
"""

from __future__ import annotations

import hashlib
import secrets
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import BaseModel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from contract import gtids
from contract.checkpoint import Place
from contract.gtid import GtidSet
from contract.gtid_mariadb import MariaGtids
from contract.schema import TableSchema
from contract.sequence import SPARK_TYPE
from spark.failpoints import reached
from spark.lake.keys import key_json
from spark.lake.lake import Lake

FILE = "_erasures.json"
INTERVAL = "struct<name: string, first: bigint, last: bigint>"
ONE = f"struct<until: {SPARK_TYPE}, until_ms: bigint, maria: boolean, inside: array<{INTERVAL}>>"
SLACK_MS = 60_000  # by which the source's clock may have been set back
# Whether a change's GTID is in the set of the erasure that is told beside it.
WITHIN = """
    exists(e.inside, one -> try_cast(regexp_extract(gtid, '([0-9]+)$', 1) AS bigint) BETWEEN one.first AND one.last
        AND one.name = if(e.maria, substring_index(gtid, '-', 1), regexp_replace(gtid, ':[0-9]+$', '')))
"""
# The same of a change without a GTID, or where the erasure's server went by places: at the place itself the next
# transaction begins.
PLACED = f"""
    (gtid IS NULL OR size(e.inside) = 0) AND unix_millis(ts) <= e.until_ms + {SLACK_MS}
        AND struct(_seq.file, _seq.pos) < struct(e.until.file, e.until.pos)
"""
# A key may have been erased again behind a move back, where the first one knows of more changes.
GONE = f"exists(_erased, e -> _seq <= e.until OR ({WITHIN}) OR ({PLACED}))"


class Topic(BaseModel):
    """What a topic has of some keys. `last_ms`: up to when its records came, Unix ms; None, by an earlier version of
    Headrace, where Kafka had none any more. `policy`: its cleanup.policy; `earliest_ms`: when the broker may remove the
    last record of them, None where that is not known; `latest_ms`: when it will have at the latest, None where it need
    not. `tombstone`: whether one was sent; `found`: whether changes of the keys were landed from it."""

    name: str
    policy: str
    last_ms: int | None = None
    earliest_ms: int | None = None
    latest_ms: int | None = None
    tombstone: bool = False
    found: bool = True

    @property
    def compacts(self) -> bool:
        return "compact" in self.policy.split(",")


class Erased(BaseModel):
    """One key of the table `tbl` (`db.table`) as records have it, by its `hash`. Erased is what was before the place
    `until`, or is in the GTID set. `until_ms`: the commit time of that place, Unix ms; `number`: the erasure's. Both
    are 0 of one by an earlier version of Headrace."""

    tbl: str
    hash: str
    until: Place
    gtid_set: str
    until_ms: int = 0
    number: int = 0

    def covers(self, other: Erased) -> bool:
        """Whether it is about all changes that another erasure of the key is about: not behind a move back to an
        earlier place, which the stream comes from anew."""
        ours, theirs = gtids.parse(self.gtid_set), gtids.parse(other.gtid_set)
        more = not theirs or (type(ours) is type(theirs) and ours.issuperset(theirs))
        return more and self.until >= other.until and self.until[1:] >= other.until[1:]

    def behind(self, number: int, since: Place) -> bool:
        """Whether it was behind a reading of the source's rows, which began with `number` as the last erasure, and
        showed no less than the place. Of an idle source that place is the erasure's too, so it alone does not tell."""
        return self.number > number and self.until >= since


class Begun(BaseModel):
    """An erasure that has not come to its end. `hashes`: of its keys, sorted; `removed`: rows by place, counted before
    they were; `topics`: where Kafka had them."""

    id: str
    tbl: str
    hashes: list[str]
    removed: dict[str, int] = {}
    topics: list[Topic] = []


class Known(BaseModel):
    """`number`: of the last erasure."""

    salt: str
    number: int = 0
    erased: list[Erased] = []
    begun: list[Begun] = []


class Erasures:
    """Those of a lake."""

    def __init__(self, lake: Lake) -> None:
        self.lake, self.path = lake, lake.at(FILE)
        text = lake.text(self.path)
        self.known = Known.model_validate_json(text) if text else Known(salt=secrets.token_hex(16))

    def hash_of(self, tbl: str, key: str) -> str:
        return hashlib.sha256(f"{self.known.salt} {tbl} {key}".encode()).hexdigest()

    def begin(self, begun: Begun, erased: Iterable[Erased]) -> Begun:
        """Notes it, with what a run of the same keys had counted that was killed behind that."""
        for before in self.known.begun:
            if (before.tbl, before.hashes) == (begun.tbl, begun.hashes):
                places = {**before.removed, **begun.removed}
                removed = {place: max(before.removed.get(place, 0), begun.removed.get(place, 0)) for place in places}
                topics = together([*before.topics, *begun.topics])
                begun = before.model_copy(update={"removed": removed, "topics": topics})
        number = self.known.number + 1
        fresh = {(one.tbl, one.hash): one.model_copy(update={"number": number}) for one in erased}
        others = [
            one for one in self.known.erased if not (new := fresh.get((one.tbl, one.hash))) or not new.covers(one)
        ]
        self._write([*others, *fresh.values()], [*self._others(begun), begun], number)
        reached("erasure noted")
        return begun

    def end(self, begun: Begun) -> None:
        self._write(self.known.erased, self._others(begun), self.known.number)
        reached("erasure ended")

    def _others(self, begun: Begun) -> list[Begun]:
        return [one for one in self.known.begun if one.id != begun.id]

    def _write(self, erased: list[Erased], begun: list[Begun], number: int) -> None:
        self.known = Known(salt=self.known.salt, number=number, erased=erased, begun=begun)
        self.lake.write(self.path, self.known.model_dump(mode="json"))

    def without(self, changes: DataFrame) -> DataFrame:
        """Changes (`tbl`, `key`, `_seq`, `gtid`, `ts`) without those that an erasure was about."""
        if not self.known.erased:
            return changes
        rows = defaultdict[str, list[tuple[Any, ...]]](list)
        for one in self.known.erased:
            rows[one.hash].append(((*one.until, -1, -1), one.until_ms, *_intervals(one.gtid_set)))
        erased = changes.sparkSession.createDataFrame([*rows.items()], f"_hash string, _erased array<{ONE}>")
        marked = changes.withColumn("_hash", self._hash(fn.col("tbl"), fn.col("key")))
        found = marked.join(fn.broadcast(erased), "_hash", "left")
        return found.where(~fn.coalesce(fn.expr(GONE), fn.lit(False))).select(*changes.columns)

    def unstaged(self, rows: DataFrame, schema: TableSchema, read_behind: Sequence[int], number: int) -> DataFrame:
        """The lake's rows that were read of the source behind that place, without those that were erased since:
        `number` was the last erasure when it began. A row that came since has a change of its own."""
        epoch, file, pos, *_ = read_behind
        tbl, since = f"{schema.db}.{schema.table}", (epoch, file, pos)
        late = [one.hash for one in self.known.erased if one.tbl == tbl and one.behind(number, since)]
        if not late:
            return rows
        hash = self._hash(fn.lit(tbl), fn.expr(key_json(schema)))
        return rows.where(~fn.coalesce(hash.isin(late), fn.lit(False)))

    def _hash(self, tbl: Column, key: Column) -> Column:
        """Of tables that have an erasure alone."""
        tables = sorted({one.tbl for one in self.known.erased})
        made = fn.sha2(fn.concat(fn.lit(f"{self.known.salt} "), tbl, fn.lit(" "), key), 256)
        return fn.when(tbl.isin(tables), made)


def _intervals(gtid_set: str) -> tuple[bool, list[tuple[str, int, int]]]:
    """Whether it is of MariaDB, and what it has: source or domain, first and last number."""
    known: GtidSet = gtids.parse(gtid_set)
    return isinstance(known, MariaGtids), [(name, first, last) for name, first, last in known]


def together(topics: Iterable[Topic]) -> list[Topic]:
    """One of each name: what lasts longest, with all that `_changes` told."""
    found: dict[str, Topic] = {}
    for one in topics:
        before = found.get(one.name)
        found[one.name] = one if before is None else _longer(before, one)
    return [topic for _, topic in sorted(found.items())]


def _longer(before: Topic, one: Topic) -> Topic:
    last = one if (one.last_ms or 0) >= (before.last_ms or 0) else before
    known = [ms for ms in (before.earliest_ms, one.earliest_ms) if ms is not None]
    told = {"tombstone": before.tombstone or one.tombstone, "found": before.found or one.found}
    return last.model_copy(update={**told, "earliest_ms": max(known, default=None)})
