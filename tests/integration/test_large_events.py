"""One event far larger than what a socket gives at once: through, in memory that follows its size."""

from __future__ import annotations

import base64
import hashlib

from stack.kafka import Kafka
from stack.mysql import MySQL
from tests.integration.streaming import Make, execute
from tests.integration.test_large_transactions import MEMORY_MB, peak_mb
from tests.integration.topic_records import records

MEGABYTES = 8  # of one value; an update has it twice, before and after, and in base64 it is a third longer
LIMIT = 40 << 20  # bytes of a record


def test_memory_is_bounded_by_the_largest_event(make: Make, mysql: MySQL, kafka: Kafka) -> None:
    streamer = make("blobs", kafka_more=f", max_message_bytes: {LIMIT}").started()
    execute(
        mysql,
        "CREATE TABLE blobs.b (id INT PRIMARY KEY, data LONGBLOB)",
        "INSERT INTO blobs.b VALUES (1, RANDOM_BYTES(1024))",
        f"UPDATE blobs.b SET data = REPEAT(RANDOM_BYTES(1024), {MEGABYTES * 1024})",
        "UPDATE blobs.b SET data = REVERSE(data)",
    )
    streamer.wait_until_released()
    event, peak = 2 * MEGABYTES, peak_mb(streamer)
    assert streamer.stop() == 0
    print(f"an event of {event} MB: at most {peak:.0f} MB resident")
    assert peak < MEMORY_MB + 10 * event

    last = records(kafka, "blobs.blobs.b")[-1].value["after"]["data"]
    with mysql.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT SHA2(data, 256) FROM blobs.b")
        assert hashlib.sha256(base64.b64decode(last)).hexdigest() == cursor.fetchone()[0]
