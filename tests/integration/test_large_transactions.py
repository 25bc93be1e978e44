"""One transaction far larger than the waiting queue: through in bounded memory, with a cut connection and a kill in its
middle, and then equal row by row. `make test-large` runs it with a million rows."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from stack.database import Database
from stack.kafka import Kafka
from tests.integration.decoding import run
from tests.integration.streaming import Make, Streamer, execute, kill_dumps
from tests.integration.topic_records import once, records

ROWS = int(os.environ.get("HEADRACE_LARGE_ROWS", "200000"))
QUEUE = 10_000  # events
# What the issue of memory allows: 120 MB, and ten times the largest event, which is of 8 kB here.
MEMORY_MB = 120
FILL = f"""INSERT INTO t WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
SELECT a.i * 1000 + b.i, b.i, CONCAT('row ', a.i) FROM n a JOIN n b WHERE a.i <= {ROWS // 1000}
"""


def sent(streamer: Streamer, rows: int) -> None:
    """Waits until so many rows of the transaction were sent since this start."""
    streamer.wait_for(lambda status: status["events"]["tables"].get(f"{streamer.name}.t", {"c": 0})["c"] >= rows)


def peak_mb(streamer: Streamer) -> float:
    """The most memory that the process has had resident."""
    assert streamer.process is not None
    text = Path(f"/proc/{streamer.process.pid}/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", text)
    assert found is not None
    return int(found[1]) / 1024


@pytest.mark.parametrize(("server", "delivery"), [("mysql", "at_least_once"), ("mariadb", "exactly_once")])
def test_a_huge_transaction_is_cut_and_killed_in_its_middle(
    make: Make, request: pytest.FixtureRequest, kafka: Kafka, server: str, delivery: str
) -> None:
    """Pitfall "Resuming inside a transaction"."""
    database: Database = request.getfixturevalue(server)
    name = f"huge{server}"
    streamer = make(name, database, max_events=QUEUE, delivery=delivery).started()
    run(database, FILL, database=name)
    sent(streamer, ROWS // 5)
    with database.connect() as root, root.cursor() as cursor:
        kill_dumps(cursor, "headrace")
    sent(streamer, ROWS // 2)
    assert streamer.status()["checkpoint"]["events"] == 0, "the transaction is not through"
    peaks = [peak_mb(streamer)]
    streamer.kill()
    streamer.started().wait_until_released(240)
    peaks.append(peak_mb(streamer))
    assert streamer.status()["checkpoint"]["events"] == ROWS
    assert streamer.stop() == 0
    print(f"{ROWS:,} rows in a transaction of {server}: at most {max(peaks):.0f} MB resident")
    assert max(peaks) < MEMORY_MB

    found = records(kafka, f"{name}.{name}.t")
    if delivery == "at_least_once":
        assert len(found) > ROWS, "the kill made some come again"
    else:
        assert len(found) == ROWS, "each once"
    rows = {record.key["id"]: tuple(record.value["after"].values()) for record in once(found)}
    with database.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {name}.t")
        assert rows == {row[0]: row for row in cursor.fetchall()}
    execute(database, f"DROP TABLE {name}.t")
