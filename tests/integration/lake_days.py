"""A lake's days at random: its jobs in any order, each now and then ended on its way, and what others do to it.

What is to hold behind them is in lake_claims.py, the source's side in lake_source.py.
"""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
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
from tests.integration.decoding import executed
from tests.integration.lake_ends import EndedError, Ending, ended
from tests.integration.lake_source import Source, form, key_of
from tests.integration.streaming import Streamer
from tests.integration.test_begun_anew import reset

KINDS = ("stopped", "unequal", "stale", "outdated", "unread", "ahead", "foreign")
FEW = 15  # actions of a job of which nothing is known yet
OWNER = "spark.databricks.delta.commitInfo.userMetadata"
HARM = (
    "DELETE FROM {at} WHERE crc32(cast(`{key}` AS string)) % 3 = 1", "UPDATE {at} SET `{other}` = NULL",
    "UPDATE {at} SET _ts = NULL WHERE crc32(cast(`{key}` AS string)) % 2 = 1", "OPTIMIZE {at}",
    "INSERT INTO {at} SELECT * FROM {at} LIMIT 2", "ALTER TABLE {at} ADD COLUMNS (by_hand{n} int)",
    "RESTORE TABLE {at} TO VERSION AS OF {before}", "ALTER TABLE {at} SET TBLPROPERTIES ('a.b' = '{n}')",
)  # fmt: skip
BACK = "RESTORE TABLE {at} TO VERSION AS OF {before}"
Work = Callable[[], Any]


class Days:
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

    def foreign(self) -> None:
        """Somebody else writes a table, behind a compaction or in the midst of the days."""
        if self.chance.random() < 0.5:
            self.compact()
        self._harm()

    def meanwhile(self) -> None:
        """Somebody else writes a table while a compaction runs, or the source is written to."""
        self.source.write()
        self.streamer.wait_until_released()
        ending = Ending(1 + int(self.chance.random() * self.actions.get("compact", FEW)),
                        self.chance.choice([self._harm, self._harm, self.write]))  # fmt: skip
        with ended(ending), self._telling():
            compact(self.spark, self.pipeline)
        self.note(f"that was at {ending.place or 'no place'}, the {ending.at}th of {ending.seen}")
        self.compact()

    def _harm(self) -> None:
        lake = self.lake
        names = [name for name in self.told if ".past" not in name and lake.is_table(self.path(name))]
        if not names:
            return
        name = self.chance.choice(names)
        path, version = self.path(name), lake.version(self.path(name)) or 0
        if self.chance.random() < 0.2:
            self._lost(path)
            return
        columns = [column for column in lake.frame(path).columns if not column.startswith("_")]
        how = self.chance.choice(HARM).format(
            at=f"delta.`{path}`", key=key_of(name.split(".")[1])[0], other=columns[-1], n=self.source.number(),
            before=max(0, version - self.chance.randint(0, 3)),
        )  # fmt: skip
        self._by_others(how)
        if self.chance.random() < 0.3:
            self._by_others(BACK.format(at=f"delta.`{path}`", before=version))

    def _lost(self, path: str) -> None:
        """A file of the table is gone, and somebody takes it out of the log; or the folder is gone."""
        files = sorted(DeltaTable(path).file_uris())
        self.note(f"somebody else: one of {len(files)} files of {path} is lost")
        if files and self.chance.random() < 0.7:
            Path(self.chance.choice(files)).unlink()
            DeltaTable(path).repair()
        else:
            shutil.rmtree(path)
        self.lake.forget_logs()

    def changes_harmed(self) -> None:
        """Somebody else writes into `_changes`: nothing more is merged until that is taken back."""
        self.compact()
        at, before = f"delta.`{self.lake.changes}`", self.lake.version(self.lake.changes)
        if before is None:
            return
        how = self.chance.choice(["DELETE FROM {at} WHERE _seq.pos % 3 = 1", "INSERT INTO {at} SELECT * FROM {at}"])
        self._by_others(how.format(at=at))
        if self.lake.version(self.lake.changes) != before:
            self.source.write()
            self.streamer.wait_until_released()
            with pytest.raises(LakeError, match="somebody else than Headrace's jobs changed"):
                compact(self.spark, self.pipeline)
            self._by_others(BACK.format(at=at, before=before))
        self.compact()

    def _by_others(self, statement: str) -> None:
        self.note(f"somebody else: {statement}")
        other = self.spark.newSession()
        other.conf.set(OWNER, "somebody")
        try:
            other.sql(statement)
        except Exception as error:  # what Delta does not let anybody do
            self.note(f"refused: {str(error)[:200]}")

    def restart(self) -> None:
        """The streamer ends, and goes on: from where it was, from a place before that, or from a binlog begun anew."""
        how = self.chance.choice(["stopped", "killed", "sought back", *["reset"] * self.own])
        self.note(f"the streamer is {how}")
        if how in ("sought back", "reset"):
            self.streamer.wait_until_released()
        if how == "killed":
            self.write()
            self.streamer.kill()
        else:
            assert self.streamer.stop() == 0, self.streamer.log()
        if how == "reset":
            reset(self.source.server)
            self.places.clear()
        elif how == "sought back" and self.places:
            done = self.streamer.command("seek", "--to", self.chance.choice(self.places))
            self.note(f"seek: {done.stdout} {done.stderr}")
        self.write()
        if self.chance.random() < 0.3:
            self.source.alter()
        self.streamer.started()
        self.places.append(str(executed(self.source.server)))

    def shown(self) -> str:
        return "\n".join(["", *self.log])
