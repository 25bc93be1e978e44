"""Peers on the same binlog. They only decode rows: no envelope, no Kafka."""

from __future__ import annotations

import time
from typing import Any

from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.row_event import UpdateRowsEvent, WriteRowsEvent

from stack.mysql import MySQL


def mysql_replication(mysql: MySQL, start: str, count: int) -> dict[str, float]:
    """Rows a second of python-mysql-replication, and its CPU seconds a million of them, from a GTID set on."""
    settings: dict[str, Any] = {"host": "127.0.0.1", "port": mysql.port, "user": "headrace", "passwd": mysql.password}
    stream = BinLogStreamReader(
        connection_settings=settings, server_id=987654, auto_position=start, blocking=True,
        only_events=[WriteRowsEvent, UpdateRowsEvent],
    )  # fmt: skip
    began, cpu = time.perf_counter(), time.process_time()
    left = count
    for event in stream:
        left -= len(event.rows)
        if left <= 0:
            break
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    stream.close()
    return {"per_second": count / seconds, "cpu_seconds_per_million": cpu / count * 1e6}
