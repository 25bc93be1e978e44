"""A lake's days at random: beside its jobs (lake_jobs.py) what others do to the lake, and restarts of the streamer."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from deltalake import DeltaTable

from spark.compaction.compaction import compact
from spark.errors import LakeError
from tests.integration.decoding import executed
from tests.integration.lake_ends import Ending, ended
from tests.integration.lake_jobs import FEW, Jobs
from tests.integration.lake_source import key_of
from tests.integration.test_begun_anew import reset

OWNER = "spark.databricks.delta.commitInfo.userMetadata"
HARM = (
    "DELETE FROM {at} WHERE crc32(cast(`{key}` AS string)) % 3 = 1", "UPDATE {at} SET `{other}` = NULL",
    "UPDATE {at} SET _ts = NULL WHERE crc32(cast(`{key}` AS string)) % 2 = 1", "OPTIMIZE {at}",
    "INSERT INTO {at} SELECT * FROM {at} LIMIT 2", "ALTER TABLE {at} ADD COLUMNS (by_hand{n} int)",
    "RESTORE TABLE {at} TO VERSION AS OF {before}", "ALTER TABLE {at} SET TBLPROPERTIES ('a.b' = '{n}')",
)  # fmt: skip
BACK = "RESTORE TABLE {at} TO VERSION AS OF {before}"


class Days(Jobs):
    """Steps beside the jobs."""

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
