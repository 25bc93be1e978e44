"""The lake-commit slot: the right to change a pipeline's lake, which one job at a time has.

In a folder it is a lock of the operating system, which ends with its process, however that ends. Elsewhere, where no
such lock is, it is a lease (lease.py).
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Protocol

from spark.errors import LakeTakenError
from spark.lake import lease
from spark.lake.cut_off import take_back
from spark.lake.lake import Lake
from spark.lake.lease import Lease
from spark.lake.swaps import swap

FILE = "_writer"
PATIENCE = 3600.0  # seconds that a job waits for the one before it: of a large table maintenance has it for long


class Slot(Protocol):
    """`poll`: seconds from one try to the next. `taken` tries once to take the slot for `who`; `holder` is what the
    one says that has it; `release` is called at the end, also of one that was never taken."""

    @property
    def poll(self) -> float: ...

    def taken(self, who: dict[str, Any]) -> bool: ...

    def holder(self) -> dict[str, Any]: ...

    def release(self) -> None: ...


def away(lake: Lake) -> bool:
    return "://" in lake.root


def death_shows(lake: Lake) -> float:
    """Seconds for which who does not wait for a holder that lives must wait all the same: only behind them one that was
    killed is told from it. None in a folder."""
    return lease.LEASE + lease.BEAT if away(lake) else 0.0


@contextmanager
def writing(lake: Lake, job: str, patience: float = PATIENCE, name: str = FILE) -> Iterator[None]:
    """Has the slot meanwhile, for `job`. Raises LakeTakenError where another job keeps it for `patience` seconds."""
    slot: Slot = Lease(lake.root, swap(lake, lake.at(f"{name}.json"))) if away(lake) else Lock(lake, name)
    since = datetime.now(UTC).isoformat(timespec="seconds")
    who = {"job": job, "host": socket.gethostname(), "pid": os.getpid(), "since": since}
    try:
        _wait(slot, who, lake, patience)
        for line in take_back(lake) if name == FILE else ():
            print(line, flush=True)
        yield
    finally:
        slot.release()


def _wait(slot: Slot, who: dict[str, Any], lake: Lake, patience: float) -> None:
    until, told = time.monotonic() + patience, ""
    while not slot.taken(who):
        said = _said(slot.holder())
        if time.monotonic() >= until:
            raise LakeTakenError(
                f"the lake {lake.root} is being changed by {said}, and one job at a time may do that. It was waited "
                f"for {patience:.0f} s, and nothing was done: run this again when that job has ended, or stop it first"
            )
        if said != told:
            print(f"waiting: the lake {lake.root} is being changed by {said}", flush=True)
        told = said
        time.sleep(slot.poll)


def _said(holder: dict[str, Any]) -> str:
    if not holder:
        return "another job"
    return f"the job {holder['job']} (process {holder['pid']} on {holder['host']}, since {holder['since']})"


class Lock:
    """Of a folder that this machine sees."""

    poll = 0.2

    def __init__(self, lake: Lake, name: str) -> None:
        os.makedirs(lake.root, exist_ok=True)
        self.path = lake.at(f"{name}.lock")
        self.number = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def taken(self, who: dict[str, Any]) -> bool:
        try:
            fcntl.flock(self.number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        os.ftruncate(self.number, 0)
        os.pwrite(self.number, json.dumps(who).encode(), 0)
        return True

    def holder(self) -> dict[str, Any]:
        try:
            found = json.loads(os.pread(self.number, 4096, 0))
        except ValueError:  # it is being written
            return {}
        return found if isinstance(found, dict) else {}

    def release(self) -> None:
        os.close(self.number)
