"""`headrace tail`: changes as readers of committed records see them, from now on or from the beginning."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import Any
from unittest import mock

from contract.pipeline import load
from stack.kafka import Kafka
from stack.mysql import MySQL
from streamer.tail import silent
from tests.integration.streaming import ROOT, Make, Streamer, execute, insert


def follow(streamer: Streamer, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "streamer.cli", "tail", str(streamer.file), *arguments],
        env=streamer._environment(), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def ended(process: subprocess.Popen[str]) -> list[str]:
    out, err = process.communicate(timeout=40)
    assert process.returncode == 0, err
    return out.splitlines()


def test_changes_are_shown_as_they_happen(make: Make, mysql: MySQL, kafka: Kafka) -> None:
    streamer = make("tailed").started()
    insert(mysql, "tailed", 1, 3)
    streamer.wait_until_released()
    live = follow(streamer, "--json", "--limit", "3", "--table", "tailed.t*")
    time.sleep(3)  # it reads from where the topic ends now
    execute(mysql, "CREATE TABLE tailed.other (id INT PRIMARY KEY)", "INSERT INTO tailed.other VALUES (1)")
    execute(mysql, "UPDATE tailed.t SET v = 99 WHERE id = 2", "DELETE FROM tailed.t WHERE id = 3")
    insert(mysql, "tailed", 4, 1)
    found: list[dict[str, Any]] = [json.loads(line) for line in ended(live)]
    assert sorted((one["value"]["op"], one["key"]["id"]) for one in found) == [("c", 4), ("d", 3), ("u", 2)]
    assert {one["value"]["source"]["table"] for one in found} == {"t"}
    everything = ended(follow(streamer, "--json", "--limit", "7", "--from-beginning"))
    assert len(everything) == 7
    assert len({(one["topic"], one["partition"], one["offset"]) for one in map(json.loads, everything)}) == 7
    people = ended(follow(streamer, "--limit", "6", "--from-beginning", "--table", "tailed.t"))
    [update] = [line for line in people if " update " in line]
    assert "tailed.t  id=2  v: 2 → 99" in update


def test_a_topic_that_is_made_meanwhile_joins_with_its_first_record(make: Make, mysql: MySQL, kafka: Kafka) -> None:
    streamer = make("tailnew").started()
    with mock.patch.dict(os.environ, TEST_PASSWORD=streamer.password):
        pipeline = load(streamer.file)
    for asked in ([], ["tailnew.made"], ["tailnew.*"]):
        [told] = silent(pipeline, asked)
        assert "nothing was sent of tailnew yet; does headrace run run?" in told
    live = follow(streamer, "--json", "--limit", "2")
    time.sleep(3)
    execute(mysql, "CREATE TABLE tailnew.made (id INT PRIMARY KEY)", "INSERT INTO tailnew.made VALUES (1), (2)")
    assert sorted(json.loads(line)["key"]["id"] for line in ended(live)) == [1, 2]
    [told] = silent(pipeline, ["tailnew.mode", "tailnew.made", "tailnew.m*de"])
    assert "nothing was sent of tailnew.mode yet: there is no topic tailnew.tailnew.mode" in told
    [told] = silent(pipeline, ["tailknew.made"])
    assert "tailknew.made is not one of the pipeline's tables" in told


def test_a_broker_that_does_not_answer_is_an_error(make: Make, mysql: MySQL) -> None:
    streamer = make("tailaway")
    streamer.file.write_text(streamer.file.read_text().replace(streamer.kafka.address, "127.0.0.1:1"))
    found = streamer.command("tail")
    assert found.returncode == 1
    assert "broker_unreachable" in found.stderr
    assert "Traceback" not in found.stderr
