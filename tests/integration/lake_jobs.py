"""A lake's days at random: its jobs in any order, each now and then ended on its way.

What is to hold behind them is in lake_claims.py, the source's side in lake_source.py.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from pyspark.sql import SparkSession

from contract.pipeline import Pipeline, load
from contract.status import LakeStatus, parse
from spark.compaction.compaction import compact
from spark.errors import LakeError
from spark.job import JobFailedError
from spark.jobs.backfill import backfill
from spark.jobs.erase import erase
from spark.jobs.repair import repair
from spark.jobs.snapshot import snapshot
from spark.jobs.verify import verify
from spark.lake.lake import Lake
from spark.maintenance.maintenance import maintain
from tests.integration.lake_ends import EndedError, Ending, ended
from tests.integration.lake_source import Source, form, key_of
from tests.integration.streaming import Streamer

KINDS = ("stopped", "unequal", "stale", "outdated", "unread", "ahead", "foreign")
FEW = 15  # actions of a job of which nothing is known yet
Work = Callable[[], Any]


class Jobs:
    """`told`: by table, what the last compaction told of it; None where that was nothing. `erased`: by table, the keys
    that the lake is not to have, as records have them; `present`: those that the source had still. `loose`: tables of
    which the lake lacks these."""

    def __init__(
        self, spark: SparkSession, streamer: Streamer, chance: random.Random, own: bool, forms: list[str]
    ) -> None:
        self.spark, self.streamer, self.chance, self.own = spark, streamer, chance, own
        self.db, self.log = streamer.name, list[str]()
        self.source = Source(streamer.mysql, self.db, chance, self.log)
        self.told: dict[str, str | None] = {}
        self.erased: dict[str, list[dict[str, str]]] = {}
        self.present: dict[str, list[dict[str, str]]] = {}
        self.loose: set[str] = set()
        self.actions: dict[str, int] = {}
        self.places: list[str] = []
        self.source.make(*forms)

    @property
    def pipeline(self) -> Pipeline:
        return load(self.streamer.file)

    @property
    def lake(self) -> Lake:
        return Lake(self.spark, self.pipeline)

    def status(self) -> LakeStatus:
        return parse(self.lake.text(self.lake.status) or "")

    def note(self, line: str) -> None:
        self.source.note(f"-- {line}")

    def path(self, name: str) -> str:
        return self.lake.table(*name.split("."))

    def untold(self) -> list[str]:
        """Those that the source has."""
        names = [f"{self.db}.{table}" for table in self.source.tables() if form(table) != "past"]
        return [name for name in names if name in self.told and self.told[name] is None]

    def write(self) -> None:
        for _ in range(self.chance.choice([1, 1, 3])):
            self.source.write()

    def alter(self) -> None:
        self.source.alter()

    def rearrange(self) -> None:
        self.source.rearrange()

    def snapshot(self) -> None:
        tables = self.chance.choice([[], [f"{self.db}.{self.chance.choice(self.source.tables())}"]])
        self.note(f"snapshot of {tables or 'all'}")
        with self._telling():
            snapshot(self.spark, self.pipeline, tables)
            self.loose -= set(tables or self.loose)
        self.compact()

    def compact(self) -> None:
        self.note("compact")
        self.streamer.wait_until_released()
        try:
            facts = compact(self.spark, self.pipeline)
        except JobFailedError as error:
            facts = error.facts
        for name, table in facts["tables"].items():
            said = next((table[kind] for kind in KINDS if table[kind]), None)
            whole = table["snapshot"] or table.get("changes_only")
            self.told[name] = said or (None if whole else "not yet snapshotted")

    def verify(self) -> None:
        self.compact()
        self.note("verify")
        try:
            tables = verify(self.spark, self.pipeline, [])["tables"]
        except JobFailedError as error:
            tables = error.facts["tables"]
        wrong = {name for name, facts in tables.items() if facts["equal"] is False} - self.loose
        assert wrong & {*self.untold()} == set(), (tables, self.shown())
        if self.chance.random() < 0.5:  # what it found equal may be told no more
            self.compact()

    def mend(self) -> None:
        """Rows of the lake are damaged; a check finds them, and a repair makes them as they were."""
        self.compact()
        if not (well := [name for name in self.untold() if name not in self.loose]):
            return
        name = self.chance.choice(well)
        self.note(f"damage of {name}")
        lake, key = self.lake, key_of(name.partition(".")[2])[0]
        before = lake.version(self.path(name))
        self.spark.sql(f"DELETE FROM delta.`{self.path(name)}` WHERE crc32(cast(`{key}` AS string)) % 3 = 1")
        lake.write(lake.at("_running.json"), {})  # its rows are counted anew, and the status is of this version
        self.compact()
        if lake.version(self.path(name)) != before and self.source.asked(
            f"SELECT 1 FROM {name} WHERE crc32({key}) % 3 = 1 LIMIT 1"
        ):
            with pytest.raises(JobFailedError, match="missing"):
                verify(self.spark, self.pipeline, [name])
            repair(self.spark, self.pipeline, [name])
            self.compact()

    def rebuild(self) -> None:
        self.compact()
        name = self.chance.choice([*self.told, *self.erased, *self.erased])
        source = self.chance.choice(["changes", "kafka", "mysql"])
        self.note(f"backfill of {name} from {source}")
        with self._telling():
            backfill(self.spark, self.pipeline, [name], source=source)
        self.compact()

    def maintain(self) -> None:
        self.note("maintain")
        maintain(self.spark, self.pipeline, [])

    def kill(self) -> None:
        """One of the jobs, as it were by SIGKILL."""
        name = self.chance.choice([*self.told])
        jobs: dict[str, Work] = {
            "compact": lambda: compact(self.spark, self.pipeline),
            "snapshot": lambda: snapshot(self.spark, self.pipeline, []),
            "repair": lambda: repair(self.spark, self.pipeline, []),
            "backfill": lambda: backfill(self.spark, self.pipeline, [name], source="mysql"),
            "taken in": lambda: backfill(self.spark, self.pipeline, [name], source="changes", compact="yes"),
            "maintain": lambda: maintain(self.spark, self.pipeline, []),
            "erase": lambda: self._erase(present=False),
        }  # fmt: skip
        job = self.chance.choice(["compact", "compact", "compact", *jobs])
        if job == "compact":
            self.source.write()
        self.streamer.wait_until_released()
        ending = Ending(1 + int(self.chance.random() * self.actions.get(job, FEW)))
        self.note(f"{job} ({name}) ends behind {ending.at} actions")
        with ended(ending), self._telling():
            jobs[job]()
        self.note(f"{job} ended at {ending.place or 'its end'}, the {ending.seen}th")
        if not ending.place:
            self.actions[job] = ending.seen
        for query in self.spark.streams.active:
            query.stop()

    @contextmanager
    def _telling(self) -> Iterator[None]:
        """A job says what it cannot do."""
        try:
            yield
        except (LakeError, JobFailedError) as error:
            self.note(str(error))
        except Exception as error:
            if not isinstance(error, EndedError) and "EndedError" not in str(error):
                raise

    def erase(self) -> None:
        with self._telling():
            self._erase(present=self.chance.random() < 0.25)
        self.compact()

    def _erase(self, present: bool) -> None:
        chance, table = self.chance, self.chance.choice(self.source.tables())
        name, key = f"{self.db}.{table}", key_of(table)
        found = self.source.asked(f"SELECT {', '.join(key)} FROM {table} ORDER BY crc32({key[-1]}) LIMIT 3")
        keys = [dict(zip(key, map(str, row), strict=True)) for row in chance.sample(found, k=min(len(found), 2))]
        if not keys:
            return
        self.note(f"erase {keys} of {name}, {'present' if present else 'deleted'}")
        if present:
            self.loose.add(name)
            self.present.setdefault(name, []).extend(keys)
        else:
            gone = [" AND ".join(f"{column} = '{value}'" for column, value in one.items()) for one in keys]
            self.source.sql(*(f"DELETE FROM {table} WHERE {where}" for where in gone))
        self.streamer.wait_until_released()
        options = {"present": "yes"} if present else {}
        now = chance.choice(["", "yes"])
        erase(self.spark, self.pipeline, [name], json.dumps(keys), now=now, by="ada", **options)
        if not present:
            self.erased.setdefault(name, []).extend(keys)

    def shown(self) -> str:
        return "\n".join(["", *self.log])
