"""Records that are too large for Kafka: put into a folder or an object store, with a dead letter that says where.

A record's file is named by its place in the order, so that a replay writes the same file again. It is there, whole,
before its letter is sent. Raises AwayError where the store does not answer or has no room, to be asked again, and
OversizedStoreError where it says no, with nothing lost: the stream goes on with the record.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import fsspec
import structlog

from contract import names
from contract.dead_letter import letter
from contract.pipeline import Pipeline
from contract.pipeline_records import Oversized
from contract.pipeline_sinks import LOCAL
from streamer import disk
from streamer.delivery_errors import AwayError, OversizedStoreError
from streamer.errors import HeadraceError
from streamer.object_stores import final, words
from streamer.outgoing import letters
from streamer.outgoing.record import Outgoing

log = structlog.get_logger("streamer")
DOING = "putting a record aside into"
HINT = (
    "Mend the store and start again: the stream goes on with this record. Or raise kafka.max_message_bytes, and "
    "max.message.bytes of its topic."
)


class Aside:
    """`counts`: since the start, by `db.table`."""

    title = "the place of records.oversized"

    def __init__(self, pipeline: Pipeline, oversized: Oversized) -> None:
        self._pipeline, self._name = pipeline, pipeline.name
        self._limit = letters.limit(pipeline)
        self._topic = names.dead_letter_topic(pipeline)
        folder = local(oversized)
        target = oversized.target if folder is None else str(folder)
        self._target = f"{target.rstrip('/')}/{pipeline.name}"
        self._options = oversized.options
        self.counts: Counter[str] = Counter()

    def put(self, record: Outgoing) -> Outgoing:
        """The letter in the record's place."""
        assert record.value is not None
        envelope = json.loads(record.value)
        source = envelope["source"]
        name = f"{source['db']}.{source['table']}"
        path = self._path(source, self._target, self._moved(source, record.topic))
        self._write(path, record.value)
        self.counts[name] += 1
        facts = {key: source[key] for key in ("gtid", "file", "pos", "row")}
        log.warning("a record too large for Kafka was put aside", table=name, path=path, bytes=record.size, **facts)
        cause = f"the record has {record.size:,} bytes, a record of this pipeline at most {self._limit:,}"
        more = {"value_at": path, "value_bytes": record.size}
        told = letter(self._name, "record_too_large", cause, "records.oversized", record.topic, envelope, **more)
        return Outgoing(self._topic, record.key, told, event=False)

    def put_letter(self, record: Outgoing) -> Outgoing:
        """A dead letter, without the change that it is of."""
        assert record.value is not None
        told = json.loads(record.value)
        path = self._path(told["source"], f"{self._target}/dead-letter")
        self._write(path, json.dumps(told["value"], separators=(",", ":"), ensure_ascii=False).encode())
        return letters.without_value(record, value_at=path)

    def _moved(self, source: dict[str, Any], topic: str) -> str:
        """What tells a record that a transform moved to another topic from the delete of its row, which has the same
        place in the order."""
        own = names.events_topic(self._pipeline, source["db"], source["table"])
        return "" if topic == own else f"/{names.escape(topic)}"

    def _path(self, source: dict[str, Any], folder: str, more: str = "") -> str:
        place = "-".join(f"{number:012}" for number in source["seq"])
        return f"{folder}/{names.escape(source['db'])}.{names.escape(source['table'])}{more}/{place}.json"

    def _write(self, path: str, data: bytes) -> None:
        try:
            if "://" in path:
                _upload(path, data, self._options)
            else:
                disk.make_folder(Path(path).parent)
                disk.replace(Path(path), data)
        except HeadraceError:
            raise
        except Exception as error:  # of whichever library
            raise _typed(path, error) from None

    def as_dict(self) -> dict[str, Any]:
        """As `/status` shows it."""
        return dict(sorted(self.counts.copy().items()))


def local(oversized: Oversized) -> Path | None:
    """The folder, however it is written; None of an object store."""
    target = oversized.target
    for scheme in LOCAL:
        target = target.removeprefix(scheme)
    return None if "://" in target else Path(target)


def _upload(path: str, data: bytes, options: dict[str, Any]) -> None:
    store, at = fsspec.core.url_to_fs(path, **options)
    store.pipe_file(at, data)
    store.invalidate_cache()
    if (listed := store.info(at)["size"]) != len(data):
        cause = f"it was sent with {len(data)} bytes, and is listed with {listed}"
        raise AwayError(DOING, path, cause, "It is sent again.")


def _typed(path: str, error: Exception) -> HeadraceError:
    if "://" not in path:
        number, cause = getattr(error, "errno", None), getattr(error, "strerror", None) or words(error)
        if number in disk.NO_ROOM:
            return AwayError(DOING, path, cause, "Make room; the stream goes on by itself. Nothing is lost.")
        return OversizedStoreError(DOING, path, cause, HINT)
    if final(error):
        return OversizedStoreError(DOING, path, words(error), HINT)
    return AwayError(DOING, path, words(error), "It is tried again; nothing is lost.")
