"""Pipelines without Kafka on a real server: files, objects in a real S3 server, standard output."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest

from stack.mysql import MySQL
from stack.s3 import S3
from streamer.contract_suites.sink import SinkSuite, Stored
from streamer.sinks.port import Sink
from tests.integration.streaming import ROOT, fails, insert, rows
from tests.integration.topic_records import once, replayed
from tests.integration.without_kafka import NoKafka, in_folder, recorded
from tests.s3_server import s3_server
from tests.streamer.sinks import reading_lines
from tests.streamer.sinks.test_suite import objects

FILES = "sinks: [{type: files, path: {folder}/out, max_bytes: 20000, max_seconds: 2, compression: zstd}]\n"
POSITION = "checkpoints: {type: file, path: {folder}/position}\n"
BUCKET = "changes"
KILLS = 2
# Like many stores it does not know the checksums that Amazon's library adds of late.
OLDER: dict[str, Any] = {
    "config_kwargs": {
        "request_checksum_calculation": "when_required",
        "response_checksum_validation": "when_required",
        "retries": {"max_attempts": 0},  # the streamer's own are quicker
    }
}


class Load(threading.Thread):
    """Transactions on rows that come again and again, until it is stopped."""

    def __init__(self, mysql: MySQL, database: str) -> None:
        super().__init__(daemon=True)
        self._mysql, self._database = mysql, database
        self.stopping = threading.Event()

    def run(self) -> None:
        rng = random.Random(5)
        with self._mysql.connect(database=self._database) as connection, connection.cursor() as cursor:
            while not self.stopping.is_set():
                first = rng.randint(1, 300)
                values = ",".join(f"({first + n}, {rng.randint(1, 10**6)}, 'é')" for n in range(rng.randint(1, 30)))
                cursor.execute(f"REPLACE INTO t VALUES {values}")
                if rng.random() < 0.2:
                    cursor.execute(f"DELETE FROM t WHERE id = {first}")
                time.sleep(0.005)


def test_killed_again_and_again_without_kafka_nothing_is_lost(no_kafka: NoKafka, mysql: MySQL, tmp_path: Path) -> None:
    streamer = no_kafka("nokafka", FILES + POSITION)
    topic = "nokafka.nokafka.t"
    load = Load(mysql, "nokafka")
    streamer.started()
    load.start()
    moment = random.Random(3)
    for _ in range(KILLS):
        time.sleep(moment.uniform(0.1, 1.2))
        streamer.kill()
        in_folder(tmp_path / "out", topic)  # no reader ever meets half a record
        streamer.started()
    load.stopping.set()
    load.join()
    status = streamer.wait_until_released()
    assert [sink["title"] for sink in status["sinks"]] == [f"the folder {tmp_path}/out"]
    assert streamer.stop() == 0
    found = in_folder(tmp_path / "out", topic)
    assert replayed(once(found)) == rows(mysql, "nokafka.t")
    schema = in_folder(tmp_path / "out", "nokafka.schemas")[0]
    assert schema.key == {"db": "nokafka", "table": "t", "version": 1}
    assert len(list((tmp_path / "out" / topic).glob("*.jsonl.zst"))) > KILLS
    assert "Traceback" not in streamer.log()


def test_what_is_lost_of_a_pipeline_without_kafka_is_told(no_kafka: NoKafka, mysql: MySQL, tmp_path: Path) -> None:
    streamer = no_kafka("lostparts", FILES + POSITION)
    streamer.started()
    insert(mysql, "lostparts", 0, 5)
    streamer.wait_until_released()
    checked = streamer.command("check")
    assert checked.returncode == 0, checked.stdout
    assert "5 events released" in " ".join(checked.stdout.split())
    assert "CREATE" not in streamer.command("decoder", "lostparts.t").stderr
    assert streamer.command("topics").returncode == 1
    assert streamer.stop() == 0
    [schema] = (tmp_path / "position").glob("schema*.json")
    kept = schema.read_bytes()
    schema.unlink()
    fails(streamer, "schemas_lost", f"the folder {tmp_path}/position")
    schema.write_bytes(kept)
    checkpoint = tmp_path / "position" / "checkpoint.json"
    text = checkpoint.read_bytes()
    checkpoint.write_bytes(text.replace(b'"events":5', b'"events":6'))
    fails(streamer, "is damaged", str(checkpoint), "backup")
    checkpoint.unlink()
    fails(streamer, "first_start", f"{tmp_path}/out/lostparts.lostparts.t", "delete these folders")
    checkpoint.write_bytes(text)
    streamer.started()
    other = no_kafka("lostparts", FILES + POSITION)
    fails(other, "another process")


def test_a_class_that_is_none_is_a_mistake_of_the_file(no_kafka: NoKafka, mysql: MySQL) -> None:
    streamer = no_kafka("noclass", "sinks:\n  - type: stdout\n  - type: no_such.Sink\n" + POSITION)
    line = streamer.file.read_text().splitlines().index("  - type: no_such.Sink") + 1
    fails(streamer, f"{streamer.file}:{line}: sinks[1].type: no_such cannot be imported", "fix: ", status=2)


def test_standard_output_has_the_records_and_nothing_else(no_kafka: NoKafka, mysql: MySQL, tmp_path: Path) -> None:
    streamer = no_kafka("piped", "sinks: [{type: stdout}]\n" + POSITION)
    command = [sys.executable, "-m", "streamer.cli", "run", "--log", "json", str(streamer.file)]
    output = tmp_path / "output.jsonl"
    for first in (0, 100):
        with output.open("ab") as out, streamer.log_path.open("ab") as log:
            streamer.process = subprocess.Popen(
                command, env=streamer._environment(), cwd=ROOT, stdout=out, stderr=log, stdin=subprocess.DEVNULL
            )
        streamer.wait_for(lambda status: status["state"] == "streaming" and status["source"]["connected"])
        insert(mysql, "piped", first, 100)
        streamer.wait_until_released()
        assert streamer.stop() == 0
    found = recorded(reading_lines.parsed(output.read_bytes()), "piped.piped.t")
    assert [record.key["id"] for record in found] == list(range(200))
    assert '"streaming"' in streamer.log()


def test_a_reader_that_goes_ends_the_stream(no_kafka: NoKafka, mysql: MySQL) -> None:
    streamer = no_kafka("readergone", "sinks: [{type: stdout}]\n" + POSITION)
    command = [sys.executable, "-m", "streamer.cli", "run", "--log", "json", str(streamer.file)]
    with streamer.log_path.open("ab") as log:
        streamer.process = subprocess.Popen(
            command, env=streamer._environment(), cwd=ROOT, stdout=subprocess.PIPE, stderr=log
        )
    streamer.wait_for(lambda status: status["state"] == "streaming" and status["source"]["connected"])
    assert streamer.process.stdout is not None
    streamer.process.stdout.close()
    insert(mysql, "readergone", 0, 5)
    assert streamer.end() == 1
    assert '"sink"' in streamer.log()
    assert "Traceback" not in streamer.log()


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3]:
    with s3_server(tmp_path_factory.mktemp("s3"), BUCKET) as server:
        yield server


def options(s3: S3) -> dict[str, Any]:
    return {**OLDER, "endpoint_url": s3.endpoint, "key": s3.key, "secret": s3.secret}


def in_store(s3: S3, folder: str) -> list[Stored]:
    fs = fsspec.filesystem("s3", **options(s3), use_listings_cache=False, skip_instance_cache=True)
    found = [name for name in fs.find(f"{BUCKET}/{folder}") if ".jsonl" in name]  # it lists folders too
    return reading_lines.of_files({name: fs.cat_file(name) for name in found})


class TestS3(SinkSuite):
    """The contract suite on the real server."""

    @pytest.fixture(autouse=True)
    def place(self, s3: S3, request: pytest.FixtureRequest) -> None:
        self.server, self.folder = s3, f"suite-{request.node.name}"

    def sink(self) -> Sink:
        return objects(f"s3://{BUCKET}/{self.folder}", options=options(self.server))

    def stored(self) -> list[Stored]:
        return in_store(self.server, self.folder)


def test_objects_of_a_store_that_goes_and_comes_back(
    no_kafka: NoKafka, mysql: MySQL, s3: S3, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_S3_SECRET", s3.secret)
    given = json.dumps({**options(s3), "secret": "${TEST_S3_SECRET}"})
    sinks = f'sinks: [{{type: objects, url: "s3://{BUCKET}/stored", max_seconds: 0.3, options: {given}}}]\n'
    streamer = no_kafka("storegone", sinks + POSITION, max_events=2000).started()
    insert(mysql, "storegone", 0, 100)
    streamer.wait_until_released()
    s3.kill()
    for n in range(1, 40):
        insert(mysql, "storegone", 100 * n, 100)
    status = streamer.wait_for(lambda status: status["queue"]["events"] >= 2000 and not status["sinks"][0]["healthy"])
    assert status["queue"]["events"] <= 2100, "bounded"
    assert status["waiting_for"] == f"s3://{BUCKET}/stored"
    assert status["sinks"][0]["lag_seconds"] > 0
    assert s3.secret not in json.dumps(status)
    s3.start()
    streamer.wait_until_released(90)
    streamer.wait_for(lambda status: status["state"] == "streaming" and status["sinks"][0]["healthy"])
    streamer.kill()
    streamer.started()
    insert(mysql, "storegone", 4000, 100)
    streamer.wait_until_released()
    assert streamer.stop() == 0
    found = recorded(in_store(s3, "stored"), "storegone.storegone.t")
    assert [record.key["id"] for record in once(found)] == list(range(4100))
    assert s3.secret not in streamer.log()
    assert "Traceback" not in streamer.log()
