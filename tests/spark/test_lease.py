"""The lease of a lake that is in no folder: one at a time, none waits for one that has died, who lost it ends."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spark.lake import lease
from spark.lake.lease import Lease
from spark.lake.swaps import Known

WHO = {"job": "compact", "host": "here", "pid": 7, "since": "2026-01-01"}
OTHER = {**WHO, "pid": 8}


class Stored:
    """A file of a store, which may be away."""

    def __init__(self) -> None:
        self.lock, self.file, self.number, self.away = threading.Lock(), None, 0, False  # type: ignore[var-annotated]

    def known(self) -> Known | None:
        self._ask()
        return self.file

    def put(self, value: dict[str, Any], over: str | None) -> str | None:
        self._ask()
        with self.lock:
            if (self.file.tag if self.file else None) != over:
                return None
            self.number += 1
            self.file = Known(value, str(self.number))
            return self.file.tag

    def remove(self, tag: str) -> None:
        if self.file and self.file.tag == tag:
            self.file = None

    def prove(self, tag: str) -> None:
        assert self.put({}, None) is None

    def _ask(self) -> None:
        if self.away:
            raise OSError("no answer")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in {"BEAT": 0.05, "LEASE": 0.6, "FENCE": 0.4, "WATCH": 0.05}.items():
        monkeypatch.setattr(lease, name, seconds)


def never(text: str) -> None:
    raise AssertionError(text)


def within(seconds: float, holds: Callable[[], bool]) -> None:
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_one_has_it_for_as_long_as_it_lives_and_says_who_it_is() -> None:
    file = Stored()
    one, other = Lease("lake", file, never), Lease("lake", file, never)
    assert one.taken(WHO)
    until = time.monotonic() + 1.0  # longer than a lease that nobody renews
    while time.monotonic() < until:
        assert not other.taken(OTHER)
        time.sleep(0.05)
    assert other.holder()["pid"] == 7
    one.release()
    assert other.taken(OTHER)
    other.release()
    assert file.file is None


def test_of_several_at_once_one_gets_it() -> None:
    file = Stored()
    leases = [Lease("lake", file, never) for _ in range(8)]
    found: list[Lease] = []
    threads = [threading.Thread(target=lambda one=one: one.taken(WHO) and found.append(one)) for one in leases]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 1
    found[0].release()


def test_one_that_nobody_renews_is_taken_over_and_its_holder_ends_when_it_wakes() -> None:
    file, told = Stored(), []
    asleep = Lease("s3a://lakes/shop", file, told.append)
    hold, go_on = file.put, threading.Event()
    assert asleep.taken(WHO)
    file.put = lambda value, over: go_on.wait() and hold(value, over)  # type: ignore[assignment, return-value, method-assign]
    within(5, lambda: len(told) == 1)
    assert "lost the right to change the lake s3a://lakes/shop: its store has not answered" in told[0]
    assert "`headrace compact --loop` is to be started again" in told[0], "of a loop there is no next run by itself"
    file.put = hold  # type: ignore[method-assign]
    other = Lease("lake", file, never)
    within(5, lambda: other.taken(OTHER))
    go_on.set()
    time.sleep(0.2)
    assert file.file is not None
    assert file.file.value["pid"] == 8
    asleep.release()  # takes nothing from the other
    assert other.holder()["pid"] == 8
    other.release()


def test_a_holder_that_finds_another_there_ends() -> None:
    file, told = Stored(), []
    one = Lease("lake", file, told.append)
    assert one.taken(WHO)
    with file.lock:
        file.file = Known(OTHER, "other")
    within(5, lambda: bool(told))
    assert "another job has taken it over" in told[0]
    one.release()
    assert file.file == Known(OTHER, "other")


def test_a_holder_whose_machine_was_suspended_ends_before_it_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "FENCE", 60.0)
    file, lost = Stored(), list[str]()
    one = Lease("lake", file, lost.append)
    assert one.taken(WHO)
    file.away = True  # as the network is behind a sleep
    monkeypatch.setattr(lease, "passed", lambda: time.monotonic() + 3600)
    within(5.0, lambda: bool(lost))
    assert "has not answered" in lost[0]


def test_a_store_that_is_away_for_a_moment_costs_nothing() -> None:
    file = Stored()
    one = Lease("lake", file, never)
    assert one.taken(WHO)
    file.away = True
    time.sleep(0.2)
    file.away = False
    time.sleep(0.4)
    assert file.file is not None
    assert file.file.value["beat"] > 1
    one.release()


def test_a_beat_that_was_written_without_an_answer_is_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    file = Stored()
    one, put = Lease("lake", file, never), file.put
    assert one.taken(WHO)

    def cut_off(value: dict[str, Any], over: str | None) -> str | None:
        put(value, over)
        file.put = put  # type: ignore[method-assign]
        raise OSError("no answer")

    file.put = cut_off  # type: ignore[method-assign]
    within(5, lambda: file.file is not None and file.file.value["beat"] > 3)
    file.put = cut_off  # type: ignore[method-assign]
    monkeypatch.setattr(lease, "BEAT", 60.0)  # so that it ends behind the one without an answer
    within(5, lambda: file.put is put)
    one.release()
    assert file.file is None, "nobody waits for it"


def test_a_process_whose_words_nobody_takes_ends_too() -> None:
    lost = "from spark.lake.lease import end; import sys, threading, time; sys.stderr = open('/dev/full', 'w')"
    code = f"{lost}\nthreading.Thread(target=end, args=('lost',)).start(); time.sleep(60); print('it goes on')"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=50
    )
    assert (done.returncode, done.stdout) == (1, "")
