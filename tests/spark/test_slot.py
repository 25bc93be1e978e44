"""The lake-commit slot: one job at a time, the others wait and say for whom, and none waits for one that has died."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from spark.errors import LakeError
from spark.lake import lease, swaps
from spark.lake.lake import Lake
from spark.lake.lease import Lease
from spark.lake.slot import Lock, Slot, writing
from spark.lake.swaps import swap

WHO = {"job": "compact", "host": "here", "pid": 7, "since": "2026-01-01"}
DIES_WITH_IT = "import fcntl, os, sys\nfcntl.flock(os.open(sys.argv[1], os.O_RDWR), 2)\nprint(1, flush=True)\ninput()"


@pytest.fixture(params=["lock", "lease"])
def a_slot(request: pytest.FixtureRequest, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Slot]:
    monkeypatch.setattr(swaps, "SETTLED", 0.05)
    monkeypatch.setattr(lease, "BEAT", 0.1)
    monkeypatch.setattr(lease, "LEASE", 1.0)
    lake.prove_writable()
    if request.param == "lock":
        return lambda: Lock(lake, "_writer")
    return lambda: Lease(lake.root, swap(lake, lake.at("_writer.json")))


def test_one_has_it_at_a_time_and_says_who_it_is(a_slot: Callable[[], Slot]) -> None:
    one, other = a_slot(), a_slot()
    assert one.taken(WHO)
    time.sleep(1.2)  # longer than a lease that nobody renews
    assert not other.taken({**WHO, "pid": 8})
    assert other.holder()["pid"] == 7
    one.release()
    assert other.taken({**WHO, "pid": 8})
    other.release()


def test_where_no_store_decides_the_last_of_two_that_write_at_once_counts(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.prove_writable()
    path = lake.at("_other.json")
    one, other = swap(lake, path), swap(lake, path)
    waits, sleep = threading.get_ident(), time.sleep

    def meanwhile(seconds: float) -> None:
        """Of this thread alone; others of the process sleep too."""
        if threading.get_ident() == waits:
            lake.write(path, {"by": "other"})
        else:
            sleep(seconds)

    monkeypatch.setattr(swaps.time, "sleep", meanwhile)
    assert one.put({"by": "one"}, None) is None
    known = other.known()
    assert known is not None
    assert known.value == {"by": "other"}
    assert one.put({"by": "late"}, None) is None
    one.remove("of an older text")
    assert other.known() == known
    other.remove(known.tag)
    assert one.known() is None


def test_a_second_job_waits_says_for_whom_and_gets_its_turn(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    order = []

    def second() -> None:
        with writing(lake, "repair"):
            order.append("repair")

    with writing(lake, "compact"):
        thread = threading.Thread(target=second)
        thread.start()
        time.sleep(0.5)
        order.append("compact")
    thread.join()
    assert order == ["compact", "repair"]
    said = f"waiting: the lake {lake.root} is being changed by the job compact (process {os.getpid()} on "
    assert capsys.readouterr().out.count(said) == 1


def test_who_waits_too_long_is_told_what_to_do_and_the_slot_stays(lake: Lake) -> None:
    said = r"being changed by the job compact .*run this again when that job has ended"
    with writing(lake, "compact"):
        with pytest.raises(LakeError, match=said), writing(lake, "repair", patience=0.3):
            pass
        with pytest.raises(LakeError), writing(lake, "repair", patience=0):
            pass


def test_a_job_that_is_killed_leaves_the_slot(lake: Lake) -> None:
    with writing(lake, "compact"):
        pass
    file = Path(lake.at("_writer.lock"))
    command = [sys.executable, "-c", DIES_WITH_IT, str(file)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        with pytest.raises(LakeError), writing(lake, "repair", patience=0):
            pass
        process.kill()
        process.wait()
        with writing(lake, "repair", patience=0):
            pass
