"""MariaDB killed while it writes a transaction: what stands of it in the binlog is rolled back by who reads it."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamer.protocol import events as ev
from tests.integration.decoding import run
from tests.integration.streaming import insert
from tests.integration.test_begun_anew import Another, place
from tests.integration.test_sinks import FILES, POSITION
from tests.integration.without_kafka import NoKafka, in_folder


def last_end(binlog: bytes) -> int:
    """Where the last XID event begins."""
    at, found = 4, 0
    while at < len(binlog):
        if binlog[at + 4] == ev.XID:
            found = at
        at += int.from_bytes(binlog[at + 9 : at + 13], "little")
    return found


@pytest.mark.parametrize("server", ["mariadb"], indirect=True)
def test_a_transaction_that_a_crash_cut_off_is_passed_by(no_kafka: NoKafka, another: Another, tmp_path: Path) -> None:
    own = another()
    streamer = no_kafka("crashed", FILES + POSITION, mysql=own).started()
    insert(own, "crashed", 0, 3)
    place(streamer)
    assert streamer.stop() == 0

    insert(own, "crashed", 3, 2)  # whole
    insert(own, "crashed", 5, 2)  # and cut off
    own.kill()
    file = max(own.data.glob("*.[0-9][0-9][0-9][0-9][0-9][0-9]"))
    file.write_bytes(file.read_bytes()[: last_end(file.read_bytes())])
    own.start()
    run(own, "DELETE FROM t WHERE id IN (5, 6)", database="crashed")  # which the storage engine may have kept
    insert(own, "crashed", 7, 2)
    streamer.started()
    place(streamer)
    assert streamer.stop() == 0
    made = {
        record.key["id"] for record in in_folder(tmp_path / "out", "crashed.crashed.t") if record.value["op"] == "c"
    }
    assert made == {0, 1, 2, 3, 4, 7, 8}
