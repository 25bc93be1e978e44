"""Peers on the same binlog. They only decode rows: no envelope, no Kafka."""

from __future__ import annotations

import time
from typing import Any

from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.row_event import UpdateRowsEvent, WriteRowsEvent

from stack.mysql import MySQL


def mysql_replication(mysql: MySQL, bulk: str, updates: str, rows: int, transactions: int) -> dict[str, float]:
    """Rows and transactions a second of python-mysql-replication, from the two GTID sets on."""
    single = _read(mysql, updates, transactions)
    both = _read(mysql, bulk, rows + transactions)
    return {
        "bulk_rows_per_second": rows / max(0.001, both[0] - single[0]),
        "single_row_transactions_per_second": transactions / single[0],
        "cpu_seconds_per_million_bulk_rows": (both[1] - single[1]) / rows * 1e6,
        "cpu_seconds_per_million_transactions": single[1] / transactions * 1e6,
    }


def _read(mysql: MySQL, start: str, count: int) -> tuple[float, float]:
    """Seconds and CPU seconds until `count` rows were read."""
    settings: dict[str, Any] = {"host": "127.0.0.1", "port": mysql.port, "user": "headrace", "passwd": mysql.password}
    stream = BinLogStreamReader(
        connection_settings=settings, server_id=987654, auto_position=start, blocking=True,
        only_events=[WriteRowsEvent, UpdateRowsEvent],
    )  # fmt: skip
    began, cpu = time.perf_counter(), time.process_time()
    for event in stream:
        count -= len(event.rows)
        if count <= 0:
            break
    result = time.perf_counter() - began, time.process_time() - cpu
    stream.close()
    return result
