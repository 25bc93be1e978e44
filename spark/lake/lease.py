"""The slot of a lake that is in no folder: a file that its holder writes again every BEAT seconds, and that another
job takes over once it has not changed for LEASE seconds by that one's own clock.

A holder that finds its lease taken over, or could not renew it for FENCE seconds, ends its process at once: what it
goes on to write could meet what the next one writes, since Delta's commits to S3 are plain writes. The next run mends
what that leaves, as after any kill; behind a looping job there is one only where something starts it again.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from spark.lake.swaps import Swap

BEAT, LEASE, FENCE = 10.0, 60.0, 40.0  # seconds
WATCH = 1.0  # seconds between two looks at the clock


def end(text: str) -> None:
    """Nothing of this process is done any more."""
    try:
        print(text, file=sys.stderr, flush=True)
    finally:  # whether somebody reads it or not
        os._exit(1)


def passed() -> float:
    """Seconds, of those too in which the machine was suspended, where the system counts them: to the others a holder
    that sleeps is one that does not beat. Who waits for it goes by the seconds that it was awake itself."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Lease:
    """`lost` is called once, with the reason, where the lease is."""

    poll = 1.0

    def __init__(self, place: str, file: Swap, lost: Callable[[str], None] = end) -> None:
        self.place, self.file, self.lost = place, file, lost
        self.seen: tuple[str, float] | None = None
        self.own: dict[str, Any] = {}
        self.tag, self.beaten, self.unsure = "", 0.0, False
        self.ended = threading.Event()
        self.threads = [threading.Thread(target=work, daemon=True) for work in (self._beat, self._watch)]

    def taken(self, who: dict[str, Any]) -> bool:
        known = self.file.known()
        if known is not None and self._fresh(known.tag):
            return False
        own = {**who, "token": uuid.uuid4().hex, "beat": 0}
        since, tag = passed(), self.file.put(own, known.tag if known else None)
        if tag is None:
            return False
        self.file.prove(tag)
        self.own, self.tag, self.beaten = own, tag, since
        for thread in self.threads:
            thread.start()
        return True

    def holder(self) -> dict[str, Any]:
        known = self.file.known()
        return known.value if known and "job" in known.value else {}

    def release(self) -> None:
        if not self.own:
            return
        self.ended.set()
        for thread in self.threads:
            thread.join()
        with suppress(Exception):  # it runs out by itself
            self._find()
            self.file.remove(self.tag)

    def _fresh(self, tag: str) -> bool:
        if self.seen is None or self.seen[0] != tag:
            self.seen = (tag, time.monotonic())
        return time.monotonic() - self.seen[1] < LEASE

    def _beat(self) -> None:
        while not self.ended.wait(BEAT):
            try:
                self._find()
                value, since = {**self.own, "beat": self.own["beat"] + 1}, passed()
                tag = self.file.put(value, self.tag)
            except Exception:  # the next beat tries again, and `_watch` counts the seconds
                self.unsure = True
                continue
            if tag is None:
                self._lose("another job has taken it over")
                return
            self.own, self.tag, self.beaten = value, tag, since

    def _find(self) -> None:
        """A beat that got no answer may have been written all the same, so that the file is still this job's. The next
        one has another text: with the same one FENCE would begin anew, and the LEASE of who looks on would not."""
        known = self.file.known() if self.unsure else None
        if known is not None and known.value.get("token") == self.own["token"]:
            self.own, self.tag = known.value, known.tag
        self.unsure = False

    def _watch(self) -> None:
        while not self.ended.wait(WATCH):
            if passed() - self.beaten > FENCE:
                self._lose(f"its store has not answered for {FENCE:.0f} s")
                return

    def _lose(self, why: str) -> None:
        if self.ended.is_set():
            return
        self.ended.set()
        self.lost(
            f"this job has lost the right to change the lake {self.place}: {why}. It ends at once, so that no two "
            "write there; the next run mends what it leaves. `headrace compact --loop` is to be started again, as a "
            "service manager does (Restart=always under systemd)"
        )
