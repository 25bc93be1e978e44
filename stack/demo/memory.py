"""The peak of memory that the demo's servers and jobs take together."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable

import psutil

SECONDS = 5.0


class MemoryWatch:
    """Samples every 5 s, in a thread of its own, the processes that `leaders` gives, their descendants and this one.

    `peak` is in bytes; a page that several processes share is counted once among them (proportional set size).
    """

    def __init__(self, leaders: Callable[[], Iterable[int]]) -> None:
        self.leaders = leaders
        self.peak = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="memory", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(10)

    def _run(self) -> None:
        while not self._stop.wait(SECONDS):
            self.peak = max(self.peak, sum(map(_bytes, self._processes())))

    def _processes(self) -> Iterable[psutil.Process]:
        found: dict[int, psutil.Process] = {}
        for pid in {os.getpid(), *self.leaders()}:
            try:
                leader = psutil.Process(pid)
                found[pid] = leader
                found |= {child.pid: child for child in leader.children(recursive=True)}
            except psutil.NoSuchProcess:
                continue
        return found.values()


def _bytes(process: psutil.Process) -> int:
    try:
        info = process.memory_full_info()
        return int(getattr(info, "pss", info.uss))
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return 0
