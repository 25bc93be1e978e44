"""The topic `<pipeline>.heartbeat`: a record every so often, so that who reads knows that no news is none."""

from __future__ import annotations

import json
import time

from contract import names
from contract.pipeline import Pipeline
from streamer.outgoing.record import Outgoing


class Heart:
    """`seconds`: from one record to the next, at least; between transactions alone."""

    def __init__(self, pipeline: Pipeline, seconds: float) -> None:
        self._topic = names.heartbeat_topic(pipeline)
        self._key = json.dumps({"serverName": pipeline.name}, separators=(",", ":")).encode()
        self._seconds = seconds
        self._last = 0.0

    def due(self, now: float) -> bool:
        """`now`: monotonic seconds."""
        return now - self._last >= self._seconds

    def record(self, file: str, pos: int) -> Outgoing:
        """`file`, `pos`: up to where the binlog was read."""
        self._last = time.monotonic()
        value = {"ts_ms": time.time_ns() // 1_000_000, "file": file, "pos": pos}
        return Outgoing(self._topic, self._key, json.dumps(value, separators=(",", ":")).encode(), event=False)
