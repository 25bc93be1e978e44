"""From the spool to object stores: fsspec's own two here, S3 in the integration tests."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import fsspec
import pytest

from contract.pipeline_archive import Archive
from streamer.archive.errors import ArchiveAwayError, ArchiveDiffersError, ArchiveStoreError
from streamer.archive.objects import Objects, Uploads
from streamer.archive.store import Folder
from tests.streamer.archive.test_files import ENDS, WHOLE

UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
OPEN = "binlog.000002.part"


@pytest.fixture(params=["memory", "file"])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Archive:
    target = f"memory://{uuid4()}" if request.param == "memory" else f"file://{tmp_path}/store"
    options = {"auto_mkdir": True} if request.param == "file" else {}
    return Archive(target=target, spool=tmp_path / "spool", options=options)


@pytest.fixture
def objects(settings: Archive) -> Objects:
    return Objects(settings, UUID)


@pytest.fixture
def folder(settings: Archive) -> Folder:
    return Folder(settings.folder, UUID)


def stored(settings: Archive) -> dict[str, bytes]:
    fs, root = fsspec.core.url_to_fs(f"{settings.target}/{UUID}")
    return {path.rpartition("/")[2]: fs.cat_file(path) for path in fs.ls(root, detail=False)}


def test_a_complete_file_leaves_the_spool_and_the_open_one_stays(
    settings: Archive, objects: Objects, folder: Folder
) -> None:
    uploads = Uploads(objects, folder, 300)
    (folder.path / OPEN).write_bytes(WHOLE[: ENDS[2] + 3])
    uploads.turn(also_open=True)
    assert stored(settings) == {OPEN: WHOLE[: ENDS[2]]}, "whole events only"
    (folder.path / OPEN).write_bytes(WHOLE)
    (folder.path / "binlog.000001").write_bytes(b"one")
    uploads.turn(also_open=True)
    assert stored(settings) == {"binlog.000001": b"one", OPEN: WHOLE}
    assert [path.name for path in folder.path.iterdir()] == [OPEN]
    (folder.path / OPEN).rename(folder.path / "binlog.000002")
    uploads.turn(also_open=False)
    assert stored(settings) == {"binlog.000001": b"one", "binlog.000002": WHOLE}


def test_an_upload_that_was_cut_is_done_again(settings: Archive, objects: Objects, folder: Folder) -> None:
    path = folder.path / "binlog.000001"
    path.write_bytes(WHOLE[:50])
    objects.put(path, 50)
    path.write_bytes(WHOLE)
    Uploads(Objects(settings, UUID), folder, 300).turn(also_open=False)
    assert stored(settings) == {"binlog.000001": WHOLE}


def test_other_bytes_in_the_store_stay(settings: Archive, objects: Objects, folder: Folder) -> None:
    path = folder.path / "binlog.000001"
    path.write_bytes(b"theirs, and longer")
    objects.put(path, 18)
    path.write_bytes(b"ours")
    with pytest.raises(ArchiveDiffersError, match="other bytes"):
        Uploads(Objects(settings, UUID), folder, 300).turn(also_open=False)
    assert stored(settings) == {"binlog.000001": b"theirs, and longer"}
    assert path.read_bytes() == b"ours"


def test_a_store_that_has_more_of_the_open_file_keeps_it(settings: Archive, objects: Objects, folder: Folder) -> None:
    path = folder.path / OPEN
    path.write_bytes(WHOLE)
    objects.put(path, len(WHOLE))
    path.write_bytes(WHOLE[: ENDS[1]])
    Uploads(Objects(settings, UUID), folder, 300).turn(also_open=True)
    assert stored(settings) == {OPEN: WHOLE}


def test_what_passes_is_told_from_what_does_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ArchiveStoreError, match="nonsense"):
        Objects(Archive(target="nonsense://bucket", spool=tmp_path), UUID)
    objects = Objects(Archive(target="memory://bucket", spool=tmp_path), UUID)

    def away(*_: object, **__: object) -> None:
        raise ConnectionError("refused")

    monkeypatch.setattr(objects._fs, "ls", away)
    with pytest.raises(ArchiveAwayError, match="refused") as caught:
        objects.sizes()
    assert caught.value.retryable
