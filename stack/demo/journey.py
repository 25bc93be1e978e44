"""What the demo does, stage by stage. Each method is one stage; `run()` is the order."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

from contract import status as lake_status
from contract.pipeline import Pipeline
from stack.demo import dataset
from stack.demo.airflow_api import Airflow, Run
from stack.demo.replay import Replay
from stack.demo.screen import Screen, Stage
from stack.errors import StackError
from stack.platform import Platform
from stack.process import cancelled

DAG_SECONDS = 1800.0
CALM_SECONDS = 6.0
COMPACTIONS_WANTED = 2


@dataclass
class Facts:
    """What the final report tells. `snapshot`, `checks`: what the jobs reported; `merges`: changes and seconds of
    each compaction that had something to merge."""

    resumed: dict[str, Any] = field(default_factory=dict)
    snapshot: dict[str, Any] = field(default_factory=dict)
    merges: list[tuple[int, float]] = field(default_factory=list)
    checks: dict[str, Any] = field(default_factory=dict)


class Journey:
    """`pipeline` is read when the servers' settings are in the environment."""

    def __init__(self, platform: Platform, screen: Screen, pipeline: Pipeline, rate: float) -> None:
        self.platform, self.screen, self.pipeline = platform, screen, pipeline
        self.airflow = Airflow(platform.airflow.url)
        self.replay = Replay(lambda: platform.mysql.connect(), rate)
        self.facts = Facts()
        self.began = time.time()

    def run(self) -> Facts:
        self._servers_and_data()
        self._topics()
        self._streamer()
        with self._replaying():
            self._merge_and_check(self._snapshot_and_crash())
        return self.facts

    def _dag(self, purpose: str) -> str:
        return f"{self.pipeline.name}.{purpose}"

    def _servers_and_data(self) -> None:
        with self.screen.stage("Servers", servers=True) as servers, ThreadPoolExecutor(1) as pool:
            up = pool.submit(self.platform.up, ["mysql", "kafka", "airflow"])
            try:
                self._data(up)
                up.result()
            except BaseException:
                cancelled.set()
                raise
            servers.say("MySQL, Kafka and Airflow answer")

    def _data(self, up: Future[Any]) -> None:
        """Beside the start of Airflow, which takes longer."""
        while not self.platform.mysql.healthy():
            if up.done():
                up.result()
            time.sleep(0.2)
        with self.screen.stage("Data set nycflights13") as stage, self.platform.mysql.connect() as connection:
            dataset.create(connection)
            added = 0
            for table in dataset.TABLES:
                stage.say(f"loading {table}")
                added += dataset.load(connection, table)
            stage.say(f"{added:,} rows loaded into {len(dataset.TABLES)} tables" if added else "there already")

    def _topics(self) -> None:
        with self.screen.stage("Topics by Airflow") as stage:
            self.airflow.wait_for([self._dag(name) for name in ("topics", "snapshot", "compaction", "quality")])
            self.airflow.pause(self._dag("compaction"), True)
            self.airflow.pause(self._dag("topics"), False)
            run = self._follow(self.airflow.trigger(self._dag("topics")), stage)
            result = self.airflow.result(run, "provision") or {}
            stage.say(f"{len(result.get('created', ()))} made, {len(result.get('as_wanted', ()))} there already")

    def _follow(self, run: Run, stage: Stage, also: Callable[[], None] = lambda: None) -> Run:
        def tick(run: Run) -> None:
            self.replay.check()
            also()
            stage.say(", ".join(self.airflow.under_way(run)) or run.state)

        return self.airflow.wait(run, DAG_SECONDS, tick)

    def _streamer(self) -> None:
        with self.screen.stage("Streamer", servers=True) as stage:
            self.platform.up(["streamer"])
            checkpoint = self._checkpoint()
            stage.say(f"streams from {position(checkpoint)}")

    def _checkpoint(self, seconds: float = 60.0) -> dict[str, Any]:
        """The streamer's durable checkpoint, waited for. Raises StackError with the streamer's own error."""
        deadline = time.monotonic() + seconds
        while True:
            told = self._streamer_status()
            if told.get("state") == "streaming" and told.get("checkpoint"):
                return dict(told["checkpoint"])
            if told.get("state") == "failed" or time.monotonic() > deadline:
                error = told.get("last_error") or {}
                raise StackError(
                    f"the streamer is {told.get('state') or 'not answering'}: {error.get('message', '')}",
                    str(error.get("next_step", "")),
                    log=self.platform.streamer.log_path,
                )
            time.sleep(0.3)

    def _streamer_status(self) -> dict[str, Any]:
        try:
            told = httpx.get(f"{self.platform.streamer.url}/status", timeout=5).json()
        except (httpx.HTTPError, ValueError):
            return {}
        return told if isinstance(told, dict) else {}

    @contextmanager
    def _replaying(self) -> Iterator[None]:
        with self.screen.stage(f"Replay of flights at {self.replay.rate:.0f} changes/s") as stage:
            ended = threading.Event()
            told = threading.Thread(target=self._tell, args=(stage, ended), daemon=True)
            self.replay.start()
            told.start()
            try:
                yield
            finally:
                self.replay.stop()
                ended.set()
                told.join()

    def _tell(self, stage: Stage, ended: threading.Event) -> None:
        while not ended.wait(0.5):
            day = f", {self.replay.days[-1]}" if self.replay.days else ""
            stage.say(f"{self.replay.total:,} changes{day}")
        stage.say(f"{self.replay.total:,} changes in {self.replay.transactions:,} transactions")

    def _snapshot_and_crash(self) -> Run:
        """Gives the run of the quality DAG that it started."""
        with self.screen.stage("Snapshot by Spark, while changes go on") as stage:
            self.airflow.pause(self._dag("snapshot"), False)
            run = self.airflow.trigger(self._dag("snapshot"))
            self._crash()
            self._staged(run, stage)
            self.airflow.pause(self._dag("compaction"), False)
            check = self._start_check()
            run = self._follow(run, stage)
            self.facts.snapshot = self.airflow.result(run, "stage") or {}
            rows = sum(table["rows"] for table in self.facts.snapshot.get("tables", {}).values())
            stage.say(f"{rows:,} rows, applied to the lake")
        return check

    def _staged(self, run: Run, stage: Stage) -> None:
        """Returns when the rows are read. Compaction begins then: side by side, two Spark drivers of a small
        machine would both be late."""
        while run.state in ("queued", "running") and not self.airflow.done(run, "stage"):
            self.replay.check()
            stage.say("stage running")
            time.sleep(1.0)
            run = self.airflow.run(run)

    def _crash(self) -> None:
        with self.screen.stage("SIGKILL to the streamer", servers=True) as stage:
            for _ in range(int(CALM_SECONDS / 0.5)):
                stage.say("in a moment")
                time.sleep(0.5)
            self.platform.streamer.kill()
            killed_at = self.replay.total
            self.replay.add_column()
            time.sleep(CALM_SECONDS / 2)
            self.platform.up(["streamer"])
            self.facts.resumed = self._checkpoint()
            missed = self.replay.total - killed_at
            stage.say(f"resumed from {position(self.facts.resumed)}, {missed:,} changes behind")

    def _start_check(self) -> Run:
        """The check begins beside the first compaction: it reads MySQL, then waits by itself for the merge that
        it needs."""
        self.airflow.pause(self._dag("quality"), False)
        return self.airflow.trigger(self._dag("quality"))

    def _merge_and_check(self, check: Run) -> None:
        with self.screen.stage("Compaction every minute") as merging:
            self._quality(check, merging)
            deadline = time.monotonic() + DAG_SECONDS
            while len(self.facts.merges) < COMPACTIONS_WANTED:
                if time.monotonic() > deadline:
                    page = f"{self.airflow.url}/dags/{self._dag('compaction')}"
                    raise StackError(f"{len(self.facts.merges)} compactions in {DAG_SECONDS:.0f} s", f"Look at {page}")
                time.sleep(1.0)
                self._count_merges(merging)

    def _count_merges(self, stage: Stage) -> None:
        self.replay.check()
        self.facts.merges = self._merges()
        stage.say(", ".join(f"{changes:,} changes" for changes, _ in self.facts.merges) or "none yet")

    def _merges(self) -> list[tuple[int, float]]:
        """Changes and seconds of each compaction since the demo began, those that had nothing to merge left out."""
        found = []
        for run in self.airflow.runs(self._dag("compaction"), self.began):
            if run.state == "failed":
                self.airflow.wait(run, 0)
            if run.state == "success":
                result = self.airflow.result(run, "compact") or {}
                changes = sum(table["changes"] for table in result.get("tables", {}).values())
                found.append((changes, float(result.get("seconds", 0))))
        return [merge for merge in found if merge[0]]

    def _quality(self, check: Run, merging: Stage) -> None:
        with self.screen.stage("Quality, while changes go on") as stage:
            run = self._follow(check, stage, lambda: self._count_merges(merging))
            self.facts.checks = self.airflow.result(run, "verify") or {}
            equal = sum(table["equal"] for table in self.facts.checks.get("tables", {}).values())
            stage.say(f"{equal} tables equal")

    def lake(self) -> lake_status.LakeStatus:
        status = lake_status.read(self.pipeline)
        if status is None:
            raise StackError("the lake has no status, though compaction has run", f"Look at {self.airflow.url}")
        return status


def position(checkpoint: dict[str, Any]) -> str:
    return f"{checkpoint['file']}:{checkpoint['pos']}"
