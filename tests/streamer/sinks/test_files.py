"""Files of JSON lines: readers see whole ones alone, and a crash loses nothing that was acknowledged."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from contract.pipeline_sinks import FilesOutput
from streamer.contract_suites.sink import Fates, flushed, send
from streamer.delivery_errors import SinkError
from streamer.sinks import background, files
from streamer.sinks.background import BackgroundSink
from streamer.sinks.files import FilesWriter
from tests.streamer.sinks.reading_lines import of_folder, values

TOPIC = "sales.shop.t"


def output(path: Path, **more: Any) -> FilesOutput:
    return FilesOutput.model_validate({"type": "files", "path": path, "sync_seconds": 0.01, **more})


def opened(path: Path, **more: Any) -> BackgroundSink:
    return BackgroundSink("files", FilesWriter(output(path, **more)))


def crash(writer: FilesWriter) -> None:
    """What the end of a process does to it, and nothing else."""
    assert writer._lock is not None
    os.close(writer._lock)
    for file in writer._open.values():
        file.close()


def until(holds: Callable[[], Any]) -> None:
    end = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_an_open_file_is_not_seen_and_a_closed_one_is_whole(tmp_path: Path) -> None:
    sink = opened(tmp_path)
    send(sink, TOPIC, range(3))
    assert flushed(sink)
    assert of_folder(tmp_path) == [], "acknowledged, and not closed yet"
    assert len(list(tmp_path.glob("*/.*.part"))) == 1
    sink.close()
    assert values(of_folder(tmp_path)) == [0, 1, 2]
    assert not list(tmp_path.glob("*/.*"))


def test_a_file_is_closed_by_its_size(tmp_path: Path) -> None:
    sink = opened(tmp_path, max_bytes=1024)
    for n in range(100):
        send(sink, TOPIC, [n])
        assert flushed(sink)
    closed = sorted((tmp_path / TOPIC).glob("*.jsonl"))
    assert len(closed) >= 4
    assert all(1024 <= path.stat().st_size < 1100 for path in closed)
    sink.close()
    assert values(of_folder(tmp_path)) == list(range(100))


def test_a_file_is_closed_by_its_age_though_nothing_comes(tmp_path: Path) -> None:
    sink = opened(tmp_path, max_seconds=0.2)
    send(sink, TOPIC, [1])
    assert flushed(sink)
    until(lambda: values(of_folder(tmp_path)) == [1])
    sink.close()


@pytest.mark.parametrize("compression", ["none", "gzip", "zstd"])
@pytest.mark.parametrize("torn", [b"", b'{"topic":"sales.shop.t","key":{"id', b"{" * 200_000])
def test_what_a_crash_left_open_is_mended_by_the_next_start(tmp_path: Path, torn: bytes, compression: str) -> None:
    writer = FilesWriter(output(tmp_path, compression=compression))
    writer.write(TOPIC, b'{"topic":"sales.shop.t","key":1,"value":1}\n' * 3)
    writer.write("other", b"")
    writer.sync()
    crash(writer)
    [part] = (tmp_path / TOPIC).glob(".*.part")
    with part.open("ab") as file:
        file.write(torn)
    sink = opened(tmp_path, compression=compression)
    assert values(of_folder(tmp_path)) == [1, 1, 1]
    send(sink, TOPIC, [2])
    assert flushed(sink)
    sink.close()
    assert values(of_folder(tmp_path)) == [1, 1, 1, 2], "in the order of their names"
    assert not list(tmp_path.glob("*/.*"))


@pytest.mark.parametrize("step", ["rename", "unlink"])
def test_a_crash_while_a_file_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    writer = FilesWriter(output(tmp_path, compression="gzip"))
    writer.write(TOPIC, b'{"topic":"sales.shop.t","key":1,"value":1}\n')
    real = getattr(Path, step)

    def dies(*given: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, step, dies)
    with pytest.raises(KeyboardInterrupt):
        writer.close()
    monkeypatch.setattr(Path, step, real)
    crash(writer)
    opened(tmp_path, compression="gzip").close()
    assert values(of_folder(tmp_path)) == [1]
    assert not list(tmp_path.glob("*/.*"))


def test_a_full_disk_is_waited_for_and_nothing_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "RETRY_SECONDS", 0.01)
    real, full = os.write, True

    def write(number: int, data: Any) -> int:
        if full and len(data) > 10:
            if len(data) > 60:
                return real(number, data[:7])  # a part of it still had room
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(number, data)

    sink = opened(tmp_path)
    monkeypatch.setattr(files.os, "write", write)
    fate = send(sink, TOPIC, range(5))
    until(lambda: sink.last_error)
    assert not sink.probe(1)
    assert "No space left" in sink.last_error
    assert sink.flush(0.1) == 5
    full = False
    assert flushed(sink)
    assert fate.errors == [None] * 5
    assert sink.probe(1)
    sink.close()
    assert values(of_folder(tmp_path)) == list(range(5))


def test_what_did_not_reach_the_disk_is_not_asked_for_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Linux tells of a lost page once: a second fsync would say that all is well."""
    sink = opened(tmp_path)
    send(sink, TOPIC, [0])
    assert flushed(sink)
    real, asked = os.fsync, []

    def fails_once(number: int) -> None:
        asked.append(number)
        if len(asked) == 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(number)

    monkeypatch.setattr(os, "fsync", fails_once)
    fate = send(sink, TOPIC, [1, 2])
    until(lambda: sink.flush(0.05) == 0)
    assert [type(error) for error in fate.errors] == [SinkError] * 2
    assert "did not reach the disk (No space left on device)" in sink.last_error
    sink.close()
    assert values(of_folder(tmp_path)) == [0]


def test_a_disk_that_fails_is_the_end_of_all_that_is_not_durable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = opened(tmp_path)
    assert flushed(sink)

    def fails(number: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(files.os, "fsync", fails)
    fates = Fates()
    sink.send(TOPIC, [b"1"], [b"1"], fates)
    until(lambda: sink.flush(0.05) == 0)
    monkeypatch.undo()
    sink.send(TOPIC, [b"2"], [b"2"], fates)
    until(lambda: sink.flush(0.05) == 0)
    assert [type(error) for error in fates.errors] == [SinkError] * 2, "nothing passes what may be lost"
    assert "Input/output error" in str(fates.errors[0])
    sink.close()


def test_one_process_at_a_time_has_the_folder(tmp_path: Path) -> None:
    sink = opened(tmp_path)
    with pytest.raises(SinkError, match="another process"):
        opened(tmp_path)
    sink.close()
    opened(tmp_path).close()


def test_a_topic_whose_name_is_no_folder(tmp_path: Path) -> None:
    sink = opened(tmp_path / "events")
    for topic in ("..", "../out", "a/b", ".hidden"):
        send(sink, topic, [1])
    assert flushed(sink)
    sink.close()
    assert [path.name for path in tmp_path.iterdir()] == ["events"]
    assert len(of_folder(tmp_path / "events")) == 4


def test_where_records_are_already_is_known(tmp_path: Path) -> None:
    place = output(tmp_path / "events")
    assert files.used(place) == []
    sink = opened(place.path)
    send(sink, TOPIC, [1])
    assert flushed(sink)
    assert files.used(place) == [str(place.path / TOPIC)], "also while it is open"
    sink.close()
    assert files.used(place) == [str(place.path / TOPIC)]
