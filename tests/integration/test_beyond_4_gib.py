"""A transaction that ends beyond 4 GiB of its binlog file, where headers of 32 bits begin anew. Its short form is
tests/streamer/protocol/test_position.py, with headers that are made up."""

from __future__ import annotations

from pathlib import Path

import pytest

from stack.database import Database
from streamer import source
from tests.integration.conftest import Another
from tests.integration.decoding import run
from tests.integration.decoding import source as read_from
from tests.integration.streaming import insert
from tests.integration.test_sinks import FILES, POSITION
from tests.integration.test_without_gtids import OFF
from tests.integration.without_kafka import NoKafka, in_folder

pytestmark = pytest.mark.soak
WRAP = 1 << 32
ROW_BYTES, ROWS, STATEMENTS = 4_000_000, 100, 12  # 4.8 GB, and less than a tenth of any server's redo log in a row
ROTATE_BYTES = 19 + 8 + 4  # a ROTATE event without the file's name: header, position, checksum
NUMBERS = " UNION ALL ".join(f"SELECT {n} AS n" for n in range(10))
FILL = f"""
INSERT INTO hidden_blobs SELECT {{first}} + a.n * 10 + b.n, REPEAT('x', {ROW_BYTES}) FROM ({NUMBERS}) a, ({NUMBERS}) b
"""


def large(own: Database, name: str) -> tuple[str, int]:
    """One transaction with a row of `t` before and behind rows of a table that is not followed. Where it ends."""
    fills = [FILL.format(first=ROWS * n) for n in range(STATEMENTS)]
    run(own, f"INSERT INTO {name}.t VALUES (1, 1, 'before')", *fills, f"INSERT INTO {name}.t VALUES (2, 2, 'behind')",
        "COMMIT", database=name, autocommit=False)  # fmt: skip
    *_, (file, size), _ = source.files(read_from(own)).items()
    return file, size - ROTATE_BYTES - len(file)  # which follows, for it is larger than a file may be


def test_positions_beyond_4_gib(no_kafka: NoKafka, another: Another, server: Database, tmp_path: Path) -> None:
    """Pitfall "Binlog files over 4 GiB"."""
    own = another()
    name = f"beyond{own.name}"
    streamer = no_kafka(name, FILES + POSITION, mysql=own)
    run(own, "CREATE TABLE hidden_blobs (id INT PRIMARY KEY, v LONGBLOB)", database=name)
    streamer.started()
    file, end = large(own, name)
    assert end > WRAP
    streamer.kill()  # while it reads it
    status = streamer.started().wait_until_released(240)
    assert (status["checkpoint"]["file"], status["checkpoint"]["pos"]) == (file, end)
    assert streamer.stop() == 0
    found = {record.key["id"]: record for record in in_folder(tmp_path / "out", f"{name}.{name}.t")}
    before, behind = found[1], found[2]
    assert before.seq[:3] == behind.seq[:3]
    if own.flavor == "mysql":
        assert before.value["source"]["pos"] < WRAP < behind.value["source"]["pos"] < end

    seeking = streamer.command("seek", "--to", f"{file}:{end}")
    assert "It stands there already" in seeking.stdout, seeking.stdout + seeking.stderr
    wrong = streamer.command("seek", "--to", f"{file}:{end - WRAP}")
    assert wrong.returncode == 1
    assert "error (seek)" in wrong.stderr
    assert streamer.started().wait_until_released()["checkpoint"]["pos"] == end
    insert(own, name, 3, 2)
    streamer.wait_until_released()
    assert streamer.stop() == 0

    first = no_kafka(name, FILES.replace("out", "first") + POSITION.replace("position", "firstly"), mysql=own,
                     start=f'"{file}:{end}"').started()  # fmt: skip
    first.wait_until_released()
    assert first.stop() == 0
    assert [record.key["id"] for record in in_folder(tmp_path / "first", f"{name}.{name}.t")] == [3, 4]


@pytest.mark.lacks("mariadb", "its transactions always have GTIDs")
def test_a_stream_by_file_and_position_goes_on_beyond_4_gib(
    no_kafka: NoKafka, another: Another, server: Database, tmp_path: Path
) -> None:
    """The dump's command has 32 bits for the position: the file is read from its beginning."""
    own = another(OFF)
    name = f"far{own.name}"
    streamer = no_kafka(name, FILES + POSITION, mysql=own)
    run(own, "CREATE TABLE hidden_blobs (id INT PRIMARY KEY, v LONGBLOB)", database=name)
    streamer.started()
    place = large(own, name)
    assert place[1] > WRAP
    streamer.kill()
    for _ in range(2):  # the second time behind it
        streamer.started()
        streamer.wait_for(lambda status: (status["checkpoint"]["file"], status["checkpoint"]["pos"]) == place, 240)
        assert streamer.stop() == 0
    insert(own, name, 3, 2)
    streamer.started().wait_until_released(240)
    assert streamer.stop() == 0
    assert [record.key["id"] for record in in_folder(tmp_path / "out", f"{name}.{name}.t")] == [1, 2, 3, 4]
