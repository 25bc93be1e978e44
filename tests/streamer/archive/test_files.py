"""The archived file itself: cut anywhere it goes on, and it never takes what differs."""

from __future__ import annotations

from pathlib import Path
from struct import pack
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamer.archive.errors import ArchiveDiffersError
from streamer.archive.extent import FIRST, MAGIC, Extent, extent, identity, written
from streamer.archive.files import PART, Kept, Part
from streamer.errors import CorruptEventError

NAME = "binlog.000001"
BODY = pack("<H50sIB", 4, b"9.7.4", 0, 19) + bytes(39) + b"\x01"  # checksums: CRC32


def event(at: int, kind: int, body: bytes, second: int = 1000, flags: int = 0) -> bytes:
    size = 19 + len(body) + 4
    head = pack("<IBIIIH", second, kind, 1, size, at + size, flags) + body
    return head + pack("<I", crc32(head))


def binlog(*bodies: bytes) -> list[bytes]:
    events = [event(FIRST, 15, BODY)]
    for body in bodies:
        events.append(event(FIRST + sum(map(len, events)), 2, body))
    return events


EVENTS = binlog(b"a", b"b" * 300, b"c" * 5)
WHOLE = MAGIC + b"".join(EVENTS)
ENDS = [FIRST + sum(map(len, EVENTS[:n])) for n in range(len(EVENTS) + 1)]


def give(part: Part, events: list[bytes]) -> None:
    """As a server that is asked from the part's start."""
    at = FIRST
    for one in events:
        if at >= part.start:
            part.take(one)
        at += len(one)


@given(cut=st.integers(0, len(WHOLE)), rest=st.binary(max_size=40))
def test_cut_anywhere_it_becomes_whole_again(tmp_path_factory: pytest.TempPathFactory, cut: int, rest: bytes) -> None:
    folder = tmp_path_factory.mktemp("cut")
    (folder / (NAME + PART)).write_bytes(WHOLE[:cut] + rest)
    part = Part(NAME, folder)
    assert part.length <= max(cut, FIRST) or (WHOLE[:cut] + rest)[: part.length] == WHOLE[: part.length]
    give(part, EVENTS)
    part.close()
    assert [(path.name, path.read_bytes()) for path in folder.iterdir()] == [(NAME, WHOLE)]


@pytest.mark.parametrize(
    ("cut", "found"), [(0, (0, 0)), (4, (4, 4)), (ENDS[1], (ENDS[1], 4)), (ENDS[3] - 1, ENDS[2:0:-1])]
)
def test_the_extent_is_of_whole_events(tmp_path: Path, cut: int, found: tuple[int, int]) -> None:
    (tmp_path / "f").write_bytes(WHOLE[:cut])
    assert extent(tmp_path / "f") == Extent(*found)


def test_without_checksums_the_last_event_does_not_count(tmp_path: Path) -> None:
    """A power failure may have put zeros at its end."""
    plain = [event(FIRST, 15, BODY[:-1] + bytes(1))]
    plain.append(event(FIRST + len(plain[0]), 2, b"a")[:-4] + bytes(4))
    data = MAGIC + b"".join(plain)
    (tmp_path / (NAME + PART)).write_bytes(data)
    assert extent(tmp_path / (NAME + PART)) == Extent(FIRST + len(plain[0]), FIRST)
    assert written(tmp_path / (NAME + PART)) == len(data)


def test_a_flipped_bit_ends_what_is_right(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(WHOLE[: ENDS[2] - 9] + b"!" + WHOLE[ENDS[2] - 8 :])
    assert extent(tmp_path / "f").length == ENDS[1]


def test_other_bytes_in_place_of_the_archived_ones_are_refused(tmp_path: Path) -> None:
    path = tmp_path / (NAME + PART)
    path.write_bytes(WHOLE)
    part = Part(NAME, tmp_path)
    assert part.start == ENDS[-2]
    with pytest.raises(ArchiveDiffersError, match=str(ENDS[-2])):
        part.take(event(ENDS[-2], 2, b"d" * 5))
    part.let_go()
    assert path.read_bytes() == WHOLE


def test_fewer_bytes_than_the_archived_ones_are_refused(tmp_path: Path) -> None:
    (tmp_path / (NAME + PART)).write_bytes(WHOLE)
    part = Part(NAME, tmp_path)
    with pytest.raises(ArchiveDiffersError, match="the server"):
        part.close()
    part.let_go()
    assert not (tmp_path / NAME).exists()


def test_a_complete_file_is_never_replaced(tmp_path: Path) -> None:
    part = Part(NAME, tmp_path)
    give(part, EVENTS)
    (tmp_path / NAME).write_bytes(b"mine")
    with pytest.raises(ArchiveDiffersError, match="already"):
        part.close()
    part.let_go()
    assert (tmp_path / NAME).read_bytes() == b"mine"


def test_an_event_of_another_place_is_refused(tmp_path: Path) -> None:
    part = Part(NAME, tmp_path)
    give(part, EVENTS[:1])
    with pytest.raises(CorruptEventError, match=str(ENDS[3])):
        part.take(EVENTS[2])
    part.let_go()


def test_a_complete_file_takes_nothing_more(tmp_path: Path) -> None:
    kept = Kept(NAME, tmp_path, len(WHOLE), WHOLE[:200])
    with pytest.raises(ArchiveDiffersError, match="goes on on the server"):
        kept.take(EVENTS[1])


def test_a_file_begun_in_another_second_is_another_file(tmp_path: Path) -> None:
    ahead = bytearray(event(0, 15, BODY))
    ahead[13:17] = bytes(4)  # as servers send it ahead of a file's middle
    kept = Kept(NAME, tmp_path, len(WHOLE), WHOLE[:200])
    kept.describe(bytes(ahead))
    other = event(0, 15, BODY, second=1001)
    assert identity(other) != identity(EVENTS[0])
    with pytest.raises(ArchiveDiffersError, match="begins otherwise"):
        kept.describe(other)
