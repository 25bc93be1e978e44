"""JSON lines in an object store that fsspec knows: an object a topic each time something is due.

What waits for its upload is in memory, and not acknowledged: the waiting queue bounds it. An object is there as a
whole or not at all, and never changes.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import fsspec

from contract.pipeline_sinks import ObjectsOutput
from streamer.compression import SUFFIX, compressed
from streamer.delivery_errors import AwayError, SinkError
from streamer.errors import HeadraceError
from streamer.object_stores import final, words
from streamer.sinks import names

HINT = "See that url and options name a store that is there, and rights to write it, then start again."


class ObjectsWriter:
    """The writer of `BackgroundSink`. Raises AwayError, SinkError."""

    def __init__(self, output: ObjectsOutput) -> None:
        self.where = output.url.rstrip("/")
        self._output = output
        self._waiting: dict[str, list[bytes]] = {}
        self._bytes = 0
        self._since = 0.0  # monotonic seconds: when the oldest of it came
        self._last: dict[str, str] = {}  # topic -> the time in its newest object's name
        self._named: dict[str, str] = {}  # topic -> of the object that is being uploaded
        with said(self.where):
            self._fs, self._root = fsspec.core.url_to_fs(self.where, **output.options)

    def write(self, topic: str, data: bytes) -> None:
        if not self._waiting:
            self._since = time.monotonic()
        self._waiting.setdefault(topic, []).append(data)
        self._bytes += len(data)

    def due(self, now: float) -> bool:
        full = self._bytes >= self._output.max_bytes
        return bool(self._waiting) and (full or now - self._since >= self._output.max_seconds)

    def sync(self) -> None:
        for topic in list(self._waiting):
            self._upload(topic)
            self._bytes -= sum(map(len, self._waiting.pop(topic)))

    def close(self) -> None:
        """What waits is not acknowledged, and comes again."""

    def _upload(self, topic: str) -> None:
        """Under one name until it has worked, whatever the store told."""
        data = compressed(b"".join(self._waiting[topic]), self._output.compression)
        with said(self.where):
            if topic not in self._named:
                self._named[topic] = names.after(self._newest(topic))
            path = f"{self._folder(topic)}/{self._named[topic]}.jsonl{SUFFIX[self._output.compression]}"
            self._fs.makedirs(self._folder(topic), exist_ok=True)
            self._fs.pipe_file(path, data)
            self._fs.invalidate_cache()
            if (listed := self._fs.info(path)["size"]) != len(data):
                cause = f"an object was sent with {len(data)} bytes, and is listed with {listed}"
                raise AwayError("writing into", self.where, cause, "It is sent again.")
        self._last[topic] = self._named.pop(topic)

    def _folder(self, topic: str) -> str:
        return f"{self._root}/{names.folder_of(topic)}"

    def _newest(self, topic: str) -> str:
        if topic not in self._last:
            self._fs.invalidate_cache()
            try:
                found = self._fs.ls(self._folder(topic), detail=False)
            except FileNotFoundError:  # a folder is there when something is in it
                found = []
            self._last[topic] = max((names.stem_of(name.rpartition("/")[2]) for name in found), default="")
        return self._last[topic]


def used(output: ObjectsOutput) -> list[str]:
    """The topics' folders that hold objects. Raises AwayError, SinkError."""
    with said(output.url):
        fs, root = fsspec.core.url_to_fs(output.url.rstrip("/"), **output.options)
        fs.invalidate_cache()
        try:
            return sorted(f"{output.url.rstrip('/')}/{name.rpartition('/')[2]}" for name in fs.ls(root, detail=False))
        except FileNotFoundError:
            return []


@contextmanager
def said(where: str) -> Iterator[None]:
    try:
        yield
    except HeadraceError:
        raise
    except Exception as error:  # of whichever library
        if final(error):
            raise SinkError("writing into", where, words(error), HINT) from None
        raise AwayError("writing into", where, words(error), "It is tried again; nothing is lost.") from None
