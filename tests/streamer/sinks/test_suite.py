"""The contract suite of sinks, on every one that needs no server."""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest

from contract.pipeline_sinks import FilesOutput, ObjectsOutput
from streamer.contract_suites.sink import SinkSuite, Stored
from streamer.sinks.background import BackgroundSink
from streamer.sinks.files import FilesWriter
from streamer.sinks.objects import ObjectsWriter
from streamer.sinks.port import Sink
from streamer.sinks.several import SeveralSinks
from streamer.sinks.stdout import StdoutWriter
from tests.streamer.sinks import reading_lines


def files(path: Path, **more: object) -> Sink:
    output = FilesOutput.model_validate({"type": "files", "path": path, "sync_seconds": 0.05, **more})
    return BackgroundSink(output.title, FilesWriter(output))


def objects(url: str, **more: object) -> Sink:
    output = ObjectsOutput.model_validate({"type": "objects", "url": url, **more})
    return BackgroundSink(output.title, ObjectsWriter(output))


class TestFiles(SinkSuite):
    @pytest.fixture(autouse=True, params=["none", "gzip", "zstd"])
    def place(self, tmp_path: Path, request: pytest.FixtureRequest) -> None:
        self.path, self.compression = tmp_path / "events", request.param

    def sink(self) -> Sink:
        return files(self.path, compression=self.compression, max_bytes=2000)

    def stored(self) -> list[Stored]:
        return reading_lines.of_folder(self.path)


class TestObjects(SinkSuite):
    @pytest.fixture(autouse=True, params=["none", "gzip", "zstd"])
    def place(self, request: pytest.FixtureRequest) -> None:
        self.url, self.compression = f"memory://{uuid.uuid4().hex}/events", request.param

    def sink(self) -> Sink:
        return objects(self.url, compression=self.compression, max_bytes=20_000)

    def stored(self) -> list[Stored]:
        fs, root = fsspec.core.url_to_fs(self.url)
        return reading_lines.of_files({name: fs.cat_file(name) for name in fs.find(root)})


class TestStdout(SinkSuite):
    """Over a pipe, with a reader that reads on."""

    @pytest.fixture(autouse=True)
    def place(self) -> Iterator[None]:
        self.read, self.write = os.pipe()
        self.data = b""

        def read() -> None:
            while block := os.read(self.read, 1 << 16):
                self.data += block

        self.reader = threading.Thread(target=read)
        self.reader.start()
        yield
        self.end()
        os.close(self.read)

    def sink(self) -> Sink:
        return BackgroundSink("standard output", StdoutWriter(self.write))

    def stored(self) -> list[Stored]:
        self.end()
        return reading_lines.parsed(self.data)

    def end(self) -> None:
        if self.reader.is_alive():
            os.close(self.write)
            self.reader.join()


class TestSeveral(SinkSuite):
    """Each of them has everything."""

    @pytest.fixture(autouse=True)
    def place(self, tmp_path: Path) -> None:
        self.paths = [tmp_path / "one", tmp_path / "other"]

    def sink(self) -> Sink:
        return SeveralSinks([files(path) for path in self.paths])

    def stored(self) -> list[Stored]:
        one, other = map(reading_lines.of_folder, self.paths)
        if len(one) != len(other):  # closed in the middle
            assert set(one) <= set(other) or set(other) <= set(one)
            return min(one, other, key=len)
        assert sorted(one, key=repr) == sorted(other, key=repr)
        return one
