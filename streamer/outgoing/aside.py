"""Records that are too large for Kafka: put into a folder or an object store, with a dead letter that says where.

A record's file is named by its place in the order, so that a replay writes the same file again. It is there, whole,
before its letter is sent. Raises OversizedStoreError, with nothing lost: the stream goes on with the record.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import fsspec
import structlog

from contract import names
from contract.dead_letter import letter
from contract.pipeline import Pipeline
from contract.pipeline_records import Oversized
from streamer.delivery_errors import OversizedStoreError
from streamer.outgoing.record import Outgoing

log = structlog.get_logger("streamer")
ENVELOPE_BYTES = 1_024  # of a Kafka record and its batch, beside key, value and headers


class Aside:
    """`counts`: since the start, by `db.table`."""

    def __init__(self, pipeline: Pipeline, oversized: Oversized) -> None:
        self._name = pipeline.name
        self._limit = pipeline.kafka.max_message_bytes - ENVELOPE_BYTES
        self._topic = names.dead_letter_topic(pipeline)
        target = oversized.target.removeprefix("file://")  # a folder, however it is written
        self._target = f"{target.rstrip('/')}/{pipeline.name}"
        self._options = oversized.options
        self.counts: Counter[str] = Counter()

    def takes(self, record: Outgoing, headers: int) -> bool:
        """`headers`: about how many bytes of them the record will have."""
        return record.size + len(record.key or b"") + headers > self._limit

    def put(self, record: Outgoing) -> Outgoing:
        """The letter in the record's place."""
        assert record.value is not None
        envelope = json.loads(record.value)
        source = envelope["source"]
        name = f"{source['db']}.{source['table']}"
        place = "-".join(f"{number:012}" for number in source["seq"])
        path = f"{self._target}/{names.escape(source['db'])}.{names.escape(source['table'])}/{place}.json"
        self._write(path, record.value)
        self.counts[name] += 1
        facts = {key: source[key] for key in ("gtid", "file", "pos", "row")}
        log.warning("a record too large for Kafka was put aside", table=name, path=path, bytes=record.size, **facts)
        cause = f"the record has {record.size:,} bytes, a record of this pipeline at most {self._limit:,}"
        more = {"value_at": path, "value_bytes": record.size}
        told = letter(self._name, "record_too_large", cause, "records.oversized", record.topic, envelope, **more)
        return Outgoing(self._topic, record.key, told, event=False)

    def _write(self, path: str, data: bytes) -> None:
        try:
            if "://" in path:
                store, at = fsspec.core.url_to_fs(path, **self._options)
                store.pipe_file(at, data)
            else:
                _write_whole(Path(path), data)
        except Exception as error:  # of whichever library
            cause = getattr(error, "strerror", None) or f"{type(error).__name__}: {error}"
            hint = (
                "Mend the store, or make room, and start again: the stream goes on with this record. Or raise "
                "kafka.max_message_bytes, and max.message.bytes of its topic."
            )
            raise OversizedStoreError("putting a record aside into", path, cause, hint) from None

    def as_dict(self) -> dict[str, Any]:
        """As `/status` shows it."""
        return dict(sorted(self.counts.copy().items()))


def _write_whole(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    with part.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
    number = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
