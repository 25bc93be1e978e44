"""`headrace decode` of what is no binlog file, without servers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from streamer.binlog_file import BinlogFile, packets
from streamer.cli import app
from streamer.errors import CorruptEventError
from streamer.protocol import events as ev
from streamer.protocol.packets import FULL
from tests.streamer.protocol import recording

# The header of MariaDB's START_ENCRYPTION event, and bytes in place of its key's number and nonce.
MARIADB_ENCRYPTED = b"c\x92\x02k\xa4\x01\x00\x00\x00(\x00\x00\x00(\x01\x00\x00\x00\x00" + bytes(21)
# The first event of a file that MySQL 9.7 writes at this moment: marked as in use behind its checksum's back.
IN_USE = bytes.fromhex(
    "9b31036b0f010000007b0000007f00000001000400392e372e342d32" + "00" * 43 + "9b31036b13000d00080000000004000400000063"
    "00041a08000000000000020000000a0a0a2a2a001234000a28000001f3e72506"
)


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("missing.000001", None, "No such file"),
        ("notes.000001", b"hello, world", "no binlog file"),
        ("empty.000001", b"", "no binlog file"),
        ("binlog.000001", b"\xfdbin" + bytes(600), "encrypted"),
        ("binlog.000001", b"\xfebin" + MARIADB_ENCRYPTED, "it is encrypted"),
        ("copy", b"\xfebin", "does not end in a number"),
        ("binlog.000001", b"\xfebin" + bytes(7), "ends in the middle of an event"),
        ("binlog.000001", b"\xfebin" + bytes(19), "ends in the middle of an event"),
    ],
)
def test_what_is_no_binlog_file_is_said(tmp_path: Path, name: str, content: bytes | None, told: str) -> None:
    file = tmp_path / name
    if content is not None:
        file.write_bytes(content)
    found = CliRunner().invoke(app, ["decode", str(file)])
    assert found.exit_code == 1
    assert told in found.stderr
    assert "Traceback" not in found.output


def test_the_file_that_the_server_writes_at_this_moment_is_read(tmp_path: Path) -> None:
    file = tmp_path / "binlog.000001"
    file.write_bytes(b"\xfebin" + IN_USE)
    found = CliRunner().invoke(app, ["decode", str(file)])
    assert (found.exit_code, found.output) == (0, "")
    file.write_bytes(b"\xfebin" + IN_USE[:-1] + b"\x07")
    assert "CRC32 does not match" in CliRunner().invoke(app, ["decode", str(file)]).stderr


def test_a_file_of_which_the_header_says_more_than_there_is(tmp_path: Path) -> None:
    file = tmp_path / "binlog.000001"
    file.write_bytes(b"\xfebin" + bytes(9) + (10_000).to_bytes(4, "little") + bytes(6))
    with pytest.raises(CorruptEventError, match="whole copy"):
        list(BinlogFile(file).lines())


@pytest.mark.parametrize("pattern", ["orders", "/[/"])
def test_a_pattern_of_no_table_is_refused(tmp_path: Path, pattern: str) -> None:
    found = CliRunner().invoke(app, ["decode", str(tmp_path / "x.000001"), "--table", pattern])
    assert found.exit_code == 2


def written(folder: Path) -> Path:
    """The file of a recorded dump: without what a server makes up for who reads it."""
    events = [packet[5:] for packet in recording.packets()]
    kept = [event for event in events if event[4] not in (ev.HEARTBEAT, ev.HEARTBEAT_V2) and not event[17] & 32]
    file = folder / "binlog.000006"
    file.write_bytes(b"\xfebin" + b"".join(kept))
    return file


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ("kept.n", "CREATE TABLE n|commit|c|c|commit|c|commit|ALTER TABLE n|commit|DROP DATABASE kept|commit"),
        ("KEPT.N", "CREATE TABLE n|commit|ALTER TABLE n|commit"),  # in a statement a name may have other capitals
        ("other.*", ""),
    ],
)
def test_of_chosen_tables_are_changes_statements_and_the_ends_of_their_transactions(
    tmp_path: Path, table: str, told: str
) -> None:
    found = CliRunner().invoke(app, ["decode", str(written(tmp_path)), "--table", table])
    assert found.exit_code == 0, found.stderr
    lines = [json.loads(line) for line in found.stdout.splitlines()]
    said = [line.get("statement") or line["op"] for line in lines]
    assert [one.partition(" (")[0].partition(" ADD")[0] for one in said] == told.split("|") * bool(told)


@pytest.mark.parametrize("size", [1, FULL - 2, FULL - 1, FULL, 2 * FULL - 1])
def test_an_event_is_in_as_many_packets_as_it_takes(size: int) -> None:
    event = bytes(size)
    data, found, last = packets(event), b"", FULL
    while data:
        last = int.from_bytes(data[:3], "little")
        found += data[4 : 4 + last]
        data = data[4 + last :]
    assert found == b"\x00" + event
    assert last < FULL, "a packet of that length goes on in the next one"
