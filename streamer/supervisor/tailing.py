"""A table's changes as they happen, as server-sent events: a bounded read of Kafka, which leaves no trace there.

Each event has the change's place in the order as its id: epoch, binlog file, position, ordinal, row. A read ends at its
limit or its time, or when the reader goes away; only so many go on at once.
"""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import AsyncIterator
from contextlib import closing
from itertools import islice
from typing import Any

from starlette.concurrency import run_in_threadpool

from contract.patterns import any_matches
from contract.pipeline import Pipeline
from streamer.errors import HeadraceError
from streamer.supervisor.errors import ConflictError

AT_ONCE = 8
HALF = "backslashreplace"  # of a character, in what somebody else wrote: as JSON spells it
AHEAD = 200  # changes that wait for a slow reader; then Kafka is read no further
TURN_SECONDS = 1.0
ALIVE_SECONDS = 10.0
GRACE_SECONDS = 5.0  # behind the read's time, for a slow reader to take what waits; then its place is another's
_free = threading.BoundedSemaphore(AT_ONCE)


class Tail:
    """`table`: `db.table`, with `*` and `?`. Raises ConflictError where too many read already, or the pipeline feeds no
    Kafka."""

    def __init__(self, pipeline: Pipeline, table: str, beginning: bool, limit: int, seconds: float) -> None:
        if not pipeline.has_kafka:
            hint = "Read what its sinks have written."
            raise ConflictError("reading the changes of", f"pipeline {pipeline.name}", "it feeds no Kafka", hint)
        if not _free.acquire(blocking=False):
            cause = f"{AT_ONCE} others read already"
            raise ConflictError("reading the changes of", f"pipeline {pipeline.name}", cause, "Ask again later.")
        self._pipeline = pipeline
        self._table = table
        self._beginning = beginning
        self._limit = limit
        self._until = time.monotonic() + seconds
        self._over = threading.Event()
        self._ended = threading.Event()
        self._found: queue.Queue[bytes | None] = queue.Queue(AHEAD)
        try:
            threading.Thread(target=self._read, name=f"tail of {pipeline.name}", daemon=True).start()
        except RuntimeError:  # there are too many
            _free.release()
            raise

    async def events(self) -> AsyncIterator[bytes]:
        """Text of the form text/event-stream."""
        told = time.monotonic()
        try:
            while True:
                try:
                    event = await run_in_threadpool(self._found.get, True, TURN_SECONDS)
                except queue.Empty:
                    if self._ended.is_set():  # its last word found no room
                        return
                    if time.monotonic() - told >= ALIVE_SECONDS:
                        told = time.monotonic()
                        yield b": alive\n\n"
                    continue
                if event is None:
                    return
                told = time.monotonic()
                yield event
        finally:
            self.close()

    def close(self) -> None:
        """The reader is gone, perhaps before it asked for the first event."""
        self._over.set()

    def _wanted(self, db: str, table: str) -> bool:
        return any_matches((self._table,), db, table)

    def _stopping(self) -> bool:
        return self._over.is_set() or time.monotonic() >= self._until

    def _read(self) -> None:
        try:
            from streamer.tail import changes, silent  # Kafka's client is loaded by the first reader, not before

            for told in silent(self._pipeline, (self._table,)):
                self._say(told)
            found = changes(self._pipeline, self._wanted, self._beginning, self._stopping, self._say)
            with closing(found):
                for change in islice(found, self._limit):
                    self._put(_event(change))
            self._put(b"event: end\ndata: {}\n\n")
        except HeadraceError as error:
            self._put(_text("problem", {"kind": error.kind, "cause": error.cause, "next_step": error.hint}))
        finally:
            self._put(None)
            self._ended.set()
            _free.release()

    def _say(self, text: str) -> None:
        self._put(_text("waiting", {"message": text}))

    def _put(self, event: bytes | None) -> None:
        while not self._over.is_set() and time.monotonic() < self._until + GRACE_SECONDS:
            try:
                self._found.put(event, timeout=TURN_SECONDS)
                return
            except queue.Full:
                continue


def _event(change: Any) -> bytes:
    value = change.value
    source = value["source"]
    place = ".".join(map(str, change.seq))
    facts = {
        "table": change.table, "op": value["op"], "key": change.key, "before": value["before"], "after": value["after"],
        "ts_ms": source["ts_ms"], "gtid": source["gtid"], "file": source["file"], "pos": source["pos"],
        "partition": change.partition, "offset": change.offset,
    }  # fmt: skip
    return f"id: {place}\n".encode() + _text("change", facts)


def _text(kind: str, facts: dict[str, Any]) -> bytes:
    data = json.dumps(facts, ensure_ascii=False, separators=(",", ":"))
    return f"event: {kind}\ndata: {data}\n\n".encode(errors=HALF)
