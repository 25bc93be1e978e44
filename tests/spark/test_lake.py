"""The lake's small files: a reader sees the old text or the new, on file systems whose rename does not replace too."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from spark.errors import LakeError
from spark.lake.lake import Lake


@pytest.fixture
def elsewhere(lake: Lake) -> Lake:
    """In no folder: where a rename may not replace, and a file beside a name may be all that there is."""
    lake.root = f"file://{lake.root}"
    return lake


def on_disk(path: str) -> Path:
    return Path(path.removeprefix("file://"))


class NoReplace:
    """The file system, but a rename onto a file fails; and the renames after `lost_after` are lost."""

    def __init__(self, files: Any, lost_after: int) -> None:
        self.files, self.left = files, lost_after

    def __getattr__(self, name: str) -> Any:
        return getattr(self.files, name)

    def rename(self, one: Any, other: Any) -> bool:
        self.left -= 1
        return self.left >= 0 and not self.files.exists(other) and bool(self.files.rename(one, other))


def test_a_rename_that_does_not_replace(lake: Lake) -> None:
    lake._files = NoReplace(lake._files, lost_after=9)
    path = lake.at("note.json")
    for value in ({"n": 1}, {"n": 2}):
        lake.write(path, value)
        assert lake.read(path) == value
    assert lake.list(lake.root) == ["note.json"]


class Hides:
    """The file system, but it says of the file, for so many times, that it is not there."""

    def __init__(self, files: Any, file: str, times: int) -> None:
        self.files, self.file, self.times = files, file, times

    def __getattr__(self, name: str) -> Any:
        return getattr(self.files, name)

    def exists(self, path: Any) -> bool:
        if str(path.toString()) != self.file or self.times <= 0:
            return bool(self.files.exists(path))
        self.times -= 1
        return False


def test_a_file_that_is_written_while_it_is_looked_for_is_found(lake: Lake) -> None:
    path, files = lake.at("note.json"), lake._files
    lake.write(path, {"n": 1})
    for found in (lake.exists, lake.read):
        lake._files = Hides(files, path, times=1)
        assert found(path) in (True, {"n": 1})
    lake._files = Hides(files, path, times=2)
    assert lake.read(path) is None


class Renames:
    """The file system, in which another process gives a file its own name just when it is opened by the other one."""

    def __init__(self, files: Any, new: Path, to: Path) -> None:
        self.files, self.new, self.to = files, new, to

    def __getattr__(self, name: str) -> Any:
        return getattr(self.files, name)

    def open(self, path: Any) -> Any:
        if path.getName() == self.new.name and self.new.exists():
            self.new.rename(self.to)
        return self.files.open(path)


def test_a_file_that_gets_its_name_while_it_is_read_by_the_other_one_is_found(elsewhere: Lake) -> None:
    lake = elsewhere
    path = on_disk(lake.at("note.json"))
    new = path.with_name("note.json.new-77")
    new.parent.mkdir(parents=True, exist_ok=True)
    new.write_text('{"n":1}')
    lake._files = Renames(lake._files, new, path)
    assert lake.read(lake.at("note.json")) == {"n": 1}


def test_a_write_whose_last_rename_is_lost_is_read_all_the_same(elsewhere: Lake) -> None:
    lake = elsewhere
    path = lake.at("note.json")
    lake.write(path, {"n": 1})
    files = lake._files
    lake._files = NoReplace(files, lost_after=1)
    with pytest.raises(LakeError, match=r"note\.json\.new-.* could not be renamed"):
        lake.write(path, {"n": 2})
    lake._files = files
    assert not on_disk(path).exists()
    assert lake.exists(path)
    assert lake.read(path) == {"n": 2}
    lake.write(path, {"n": 3})  # the next write mends it
    assert lake.read(path) == {"n": 3}


def test_what_is_beside_a_file_does_not_count(lake: Lake) -> None:
    path = lake.at("note.json")
    lake.write(path, {"n": 1})
    Path(f"{path}.new-7").write_text('{"n": 0}')
    assert lake.read(path) == {"n": 1}
    lake.delete(path)  # a deleted file does not come back
    assert not lake.exists(path)
    assert lake.read(path) is None


@pytest.mark.parametrize("half", ["", '{"n": '])
def test_a_file_that_was_not_written_whole_does_not_count(lake: Lake, half: str) -> None:
    path = lake.at("note.json")
    Path(lake.root).mkdir(parents=True)
    Path(f"{path}.new-7").write_text(half)
    Path(f"{lake.at('note.json.more')}").write_text('{"n": 5}')
    assert not lake.exists(path)
    assert lake.text(path) is None


MENDS = {
    "_status.json": "Remove it: the next compaction",
    "_topics.json": "Remove it: the next compaction",
    "_merge.json": "Remove it: the next compaction",
    "_checkpoints/changes/topic-ids.json": "Remove it: the next compaction",
    "_marks/000001-000000000007-q.json": r"Put it back from a copy.*move the folder \S+/shop away.*DAG shop\.snapshot",
    "_staging/20260101/manifest.json": r"Remove the folder \S+/shop/_staging/20260101, and run the DAG shop\.snapshot",
    "_parts/p1/part.json": r"Remove the folder \S+/shop/_parts/p1, and run the repair or backfill again",
}


@pytest.mark.parametrize("name", [*MENDS])
def test_a_file_that_a_power_cut_left_empty_or_broken_is_told_with_what_mends_it(lake: Lake, name: str) -> None:
    path = lake.at(name)
    for text, word in (("", "empty"), ('{"n": ', "broken")):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(text)
        with pytest.raises(LakeError, match=rf"{name} is {word}, as a power cut may leave it\. {MENDS[name]}"):
            lake.read(path)


def test_of_one_that_is_broken_a_write_behind_it_counts_and_none_before(elsewhere: Lake) -> None:
    lake = elsewhere
    path = on_disk(lake.at("note.json"))
    path.parent.mkdir(parents=True)
    path.write_text("")
    os.utime(path, (2000, 2000))
    for process, at in (("7", 1000), ("8", 3000)):
        Path(f"{path}.new-{process}").write_text(f'{{"n": {process}}}')
        os.utime(f"{path}.new-{process}", (at, at))
    assert lake.read(lake.at("note.json")) == {"n": 8}
    Path(f"{path}.new-8").unlink()
    with pytest.raises(LakeError, match="is empty"):
        lake.read(lake.at("note.json"))


def test_a_write_is_on_the_disk_before_it_has_its_name_and_the_name_is_then(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    folder = lake.at("_marks")
    monkeypatch.setattr(os, "fsync", lambda number: synced.append(os.readlink(f"/proc/self/fd/{number}")))
    files, stream_of = lake._files, lake._files.create

    class Files(NoReplace):
        def create(self, path: Any, over: bool) -> Any:
            return Stream(stream_of(path, over), synced)

        def rename(self, one: Any, other: Any) -> bool:
            synced.append("rename")
            return bool(files.rename(one, other))

    lake._files = Files(files, lost_after=9)
    lake.write(f"{folder}/1.json", {"n": 1})
    assert synced == ["file", "rename", os.path.realpath(folder)]


class Stream:
    """Notes when it was told to be on the disk."""

    def __init__(self, stream: Any, synced: list[str]) -> None:
        self.stream, self.synced = stream, synced

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def hsync(self) -> None:
        self.stream.hsync()
        self.synced.append("file")


def test_the_last_of_several_counts(elsewhere: Lake) -> None:
    lake = elsewhere
    path = on_disk(lake.at("note.json"))
    path.parent.mkdir(parents=True)
    for process, at in (("7", 1000), ("8", 3000), ("9", 2000)):
        Path(f"{path}.new-{process}").write_text(f'{{"n": {process}}}')
        os.utime(f"{path}.new-{process}", (at, at))
    assert lake.read(lake.at("note.json")) == {"n": 8}


def test_in_a_folder_a_write_that_got_no_further_is_none(lake: Lake) -> None:
    """A rename replaces there: what is beside a missing name may be what a power cut left of one that was deleted."""
    path = lake.at("note.json")
    Path(lake.root).mkdir(parents=True)
    Path(f"{path}.new-7").write_text('{"n": 7}')
    assert lake.read(path) is None
    assert not lake.exists(path)


def test_a_file_that_goes_before_it_is_opened_is_looked_for_again(lake: Lake) -> None:
    """As one that is being replaced, where a rename does not replace."""
    path = lake.at("_status.json")
    lake.write(path, {"run": 1})
    files = lake._files

    class Going:
        def __getattr__(self, name: str) -> Any:
            return getattr(files, name)

        def open(self, there: Any) -> Any:
            lake._files = files
            lake.delete(path)
            try:
                return files.open(there)
            finally:
                lake.write(path, {"run": 2})

    lake._files = Going()
    assert lake.read(path) == {"run": 2}
