"""Positions beyond 4 GiB from headers with 32 bits."""

from __future__ import annotations

import pytest

from streamer.errors import BegunAnewError
from streamer.protocol.position import FIRST, WRAP, Position


def header(pos: int, size: int) -> tuple[int, ...]:
    return (0, 0, 0, 30, 1, size, pos % WRAP, 0)


def test_a_file_grows_beyond_4_gib() -> None:
    position = Position()
    position.rotated((4).to_bytes(8, "little") + b"binlog.000012", 0, 21)
    assert (position.file, position.number, position.pos) == ("binlog.000012", 12, 4)
    size = 900_000_000
    for n in range(1, 12):
        position.move(header(4 + n * size, size))
        assert (position.start, position.pos) == (4 + (n - 1) * size, 4 + n * size)


def test_events_without_a_position_are_no_wrap() -> None:
    """Pitfall "Binlog files over 4 GiB": log_pos 0 is no wrap."""
    position = Position()
    position.move(header(1000, 100))
    position.move((0, 0, 0, 30, 1, 50, 0, 0))
    assert position.pos == 1000


def test_a_heartbeat_tells_all_64_bits() -> None:
    position = Position()
    far = 5 * WRAP + 77
    body = b"\x01\x0dbinlog.000012\x02\x09\xfe" + far.to_bytes(8, "little")
    position.heartbeat(body, 0, len(body))
    assert position.pos == far
    position.move(header(far + 10, 10))
    assert position.pos == far + 10


def test_the_next_file_begins_anew() -> None:
    position = Position()
    position.move(header(3 * WRAP - 5, 10))
    position.rotated((4).to_bytes(8, "little") + b"binlog.000013", 0, 21)
    position.move(header(200, 100))
    assert (position.start, position.pos) == (100, 200)


def test_a_file_without_a_number_is_refused() -> None:
    with pytest.raises(ValueError, match="number"):
        Position().rotated(bytes(8) + b"oddname", 0, 15)


def rotation(file: str) -> bytes:
    """As a server makes one up at the beginning of a dump."""
    return FIRST.to_bytes(8, "little") + file.encode()


def test_a_reconnect_in_a_file_beyond_4_gib_goes_on_behind_what_is_known() -> None:
    """Pitfall: a binlog file over 4 GiB."""
    position = Position()
    known = 2 * WRAP - 300
    position.behind = ("binlog.000012", known)
    position.rotated(rotation("binlog.000011"), 0, 21)
    position.move(header(900, 100))
    assert position.pos == 900, "a file before it"
    position.rotated(rotation("binlog.000012"), 0, 21)
    position.short_heartbeat(header(WRAP + 5000, 0))  # the server is on its way
    far = b"\x02\x09\xfe" + (WRAP + 9000).to_bytes(8, "little")
    position.heartbeat(far, 0, len(far))
    position.move((0, 0, 0, 30, 1, 50, 0, 0))
    assert position.pos == known
    position.move(header(known + 100, 100))
    assert (position.start, position.pos) == (known, known + 100)
    position.move(header(known + 500, 400))
    assert position.pos == 2 * WRAP + 200
    position.rotated(rotation("binlog.000013"), 0, 21)
    position.move(header(700, 100))
    assert position.pos == 700


def test_a_file_that_was_read_is_another_one_when_it_comes_again() -> None:
    """MariaDB's dumps go on where its binlog is reset. Servers tell each file's beginning twice."""
    position = Position()
    position.rotated(rotation("binlog.000012"), 0, 21)
    position.rotated(rotation("binlog.000012"), 0, 21)
    position.move(header(900, 100))
    for file in ("binlog.000012", "binlog.000001"):
        with pytest.raises(BegunAnewError, match=f"it gives {file}:4, though binlog.000012:900 was read"):
            position.rotated(rotation(file), 0, 21)
    position.rotated(rotation("binlog.000013"), 0, 21)


@pytest.mark.parametrize("gib", [3, 5, 9, 13])
def test_a_transaction_whose_events_have_no_position_passes_4_gib(gib: int) -> None:
    """Pitfall "Binlog files over 4 GiB": MariaDB's events inside a transaction have log_pos 0."""
    position = Position()
    position.sums = True
    position.rotated(rotation("binlog.000012"), 0, 21)
    position.move(header(1000, 100))
    for _ in range(gib):
        position.move((0, 0, 0, 30, 1, 1 << 30, 0, 0))
        position.move((0, 0, 0, 19, 1, 0, 0, 0))  # held rows that are given again count once
    end = 1000 + (gib << 30) + 40 * gib + 31  # each with a table map of 40 bytes, which is not told of
    position.move(header(end, 31))
    assert (position.start, position.pos) == (end - 31, end)
    position.move((0, 0, 0, 163, 1, 90, 0, 0))  # the server made it up, and it is larger than what follows
    position.move(header(end + 47, 47))
    assert position.pos == end + 47
    position.rotated(rotation("binlog.000013"), 0, 21)
    position.move(header(200, 100))
    assert position.pos == 200
