"""The streamer killed and stopped under load: nothing is lost, out of order or, after a stop, sent twice."""

from __future__ import annotations

import os
import random
import threading
import time

import pytest

from contract.checkpoint import Checkpoint
from contract.pipeline import load
from spark.errors import LakeError
from spark.source.choice import refuse_unfollowed
from stack.kafka import Kafka
from stack.mysql import MySQL
from streamer.checkpoints.kafka import read_checkpoint
from tests.integration.streaming import Make, execute, rows
from tests.integration.topic_records import Record, once, records, replayed

KILLS = int(os.environ.get("HEADRACE_KILLS", "2"))


class Load:
    """Random transactions until stopped: inserts, updates, deletes, moved keys, several rows, two tables, and
    some rolled back. Counts the row images that were committed."""

    def __init__(self, mysql: MySQL, db: str, seed: int) -> None:
        self._mysql, self._db = mysql, db
        self._random = random.Random(seed)
        self._stop = threading.Event()
        self._next = 0
        self.transactions = 0
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Load:
        execute(self._mysql, f"CREATE TABLE IF NOT EXISTS {self._db}.u LIKE {self._db}.t")
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        with self._mysql.connect(autocommit=False) as connection, connection.cursor() as cursor:
            while not self._stop.is_set():
                for _ in range(self._random.randrange(1, 4)):
                    cursor.execute(self._statement())
                if self._random.random() < 0.05:
                    connection.rollback()
                else:
                    connection.commit()
                    self.transactions += 1

    def _statement(self) -> str:
        table = f"{self._db}.{self._random.choice('tu')}"
        kind = self._random.randrange(10)
        some = self._random.randrange(max(1, self._next))
        if kind < 5 or self._next == 0:
            ids = range(self._next, self._next + self._random.choice([1, 1, 1, 20, 300]))
            self._next = ids.stop
            return f"INSERT INTO {table} VALUES " + ",".join(f"({n}, {n % 7}, 'row {n}')" for n in ids)
        if kind < 8:
            return f"UPDATE {table} SET v = v + 1 WHERE id BETWEEN {some} AND {some + self._random.randrange(50)}"
        if kind < 9:
            return f"DELETE FROM {table} WHERE id BETWEEN {some} AND {some + self._random.randrange(5)}"
        self._next += 1
        return f"UPDATE {table} SET id = {self._next - 1} WHERE id = {some}"


def test_killed_at_random_moments_nothing_is_lost_or_out_of_order(make: Make, mysql: MySQL, kafka: Kafka) -> None:
    chance = random.Random(20)
    streamer = make("killed").started()
    with Load(mysql, "killed", 5) as load:
        for _ in range(KILLS):
            time.sleep(chance.uniform(0.05, 1.5))
            streamer.kill()
            streamer.start()
            if chance.random() < 0.7:
                streamer.wait_for(lambda status: status["source"]["connected"])
    streamer.wait_for(lambda status: status["source"]["connected"])
    streamer.wait_until_released()
    assert load.transactions > 25 * KILLS
    last = 0
    for table in "tu":
        found = records(kafka, f"killed.killed.{table}")
        kept = once(found)
        assert len({r.identity for r in kept}) == len(kept)
        in_order = sorted(kept, key=lambda r: r.seq)
        assert replayed(in_order) == rows(mysql, f"killed.{table}")
        assert_whole_events(in_order)
        last += len(kept)
    assert streamer.status()["events"]["released"] == last
    checkpoints = [r.value for r in records(kafka, "killed.commit-log")]
    places = [(c["file"], c["pos"], c["events"]) for c in checkpoints]
    assert places == sorted(places), "a checkpoint moved back"
    assert streamer.stop() == 0


def assert_whole_events(in_order: list[Record]) -> None:
    """Each rows event's records are all there: row 0, 1, 2 ... without a gap."""
    expected, event = 0, None
    for record in in_order:
        expected = expected + 1 if record.seq[:4] == event else 0
        event = record.seq[:4]
        assert record.seq[4] == expected


def test_sigterm_flushes_and_the_next_start_sends_nothing_twice(make: Make, mysql: MySQL, kafka: Kafka) -> None:
    streamer = make("flushed").started()
    with Load(mysql, "flushed", 6):
        time.sleep(1.5)
        assert streamer.stop() == 0
    assert '"stopped"' in streamer.log()
    streamer.started().wait_until_released()
    for table in "tu":
        found = records(kafka, f"flushed.flushed.{table}")
        assert len({r.identity for r in found}) == len(found), "sent twice"
        assert replayed(sorted(found, key=lambda r: r.seq)) == rows(mysql, f"flushed.{table}")


def test_a_table_that_the_file_takes_in_is_snapshotted_from_the_restart_on(
    make: Make, mysql: MySQL, kafka: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    streamer = make("widened").started()
    monkeypatch.setenv("TEST_PASSWORD", streamer.password)
    execute(mysql, "CREATE TABLE widened.hidden (id INT PRIMARY KEY)", "INSERT INTO widened.t VALUES (1, 1, 'x')")
    streamer.wait_until_released()

    def checkpoint() -> Checkpoint:
        found = read_checkpoint(load(streamer.file))
        assert found is not None
        return found

    assert streamer.stop() == 0
    streamer.file.write_text(streamer.file.read_text().replace(', exclude: ["*.hidden*"]', ""))
    with pytest.raises(LakeError, match=r"does not follow widened\.hidden yet.*headrace status.*then run the snapshot"):
        refuse_unfollowed(checkpoint(), [("widened", "t"), ("widened", "hidden")])
    streamer.started()
    refuse_unfollowed(checkpoint(), [("widened", "t"), ("widened", "hidden")])
    execute(mysql, "INSERT INTO widened.hidden VALUES (7)")
    streamer.wait_until_released()
    assert [record.key for record in records(kafka, "widened.widened.hidden")] == [{"id": 7}]
    assert streamer.stop() == 0
