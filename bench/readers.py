"""Libraries that only decode rows, without envelope or Kafka, each as a process of its own:
`python -m bench.readers NAME PORT GTIDS FILE POS COUNT`, the password in BENCH_PASSWORD. Prints its figures as JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench.figures import Run, peak_mb
from bench.load import Begin
from stack.database import USER, Database

ROOT = Path(__file__).parents[1]
LOGIN = {"host": "127.0.0.1", "user": USER}


def run(name: str, database: Database, start: Begin, count: int) -> Run:
    command = [sys.executable, "-m", "bench.readers", name, str(database.port), start.gtids, start.file]
    environment = {**os.environ, "BENCH_PASSWORD": database.password}
    done = subprocess.run(
        [*command, str(start.pos), str(count)], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    if done.returncode:
        raise SystemExit(f"{name} failed:\n{done.stderr[-3000:]}")
    return Run(**json.loads(done.stdout))


def mysql_replication(port: int, start: Begin) -> Iterator[int]:
    """Rows of each event."""
    from pymysqlreplication import BinLogStreamReader
    from pymysqlreplication.row_event import UpdateRowsEvent, WriteRowsEvent

    settings: dict[str, Any] = {**LOGIN, "port": port, "passwd": os.environ["BENCH_PASSWORD"]}
    stream = BinLogStreamReader(
        connection_settings=settings, server_id=987654, auto_position=start.gtids, blocking=True,
        only_events=[WriteRowsEvent, UpdateRowsEvent],
    )  # fmt: skip
    for event in stream:
        yield len(event.rows)


def mysql_event_stream(port: int, start: Begin) -> Iterator[int]:
    """One a row: its client reads and its engine decodes in C++, and gives each row to Python."""
    from mysql_event_stream import BinlogClient, CdcEngine, SslMode

    client = BinlogClient(
        **LOGIN, port=port, password=os.environ["BENCH_PASSWORD"], server_id=987655,  # type: ignore[arg-type]
        start_gtid=start.gtids, ssl_mode=SslMode.DISABLED, allow_public_key_retrieval=True,
    )  # fmt: skip
    engine = CdcEngine()
    client.connect()
    client.start()
    while True:
        for polled in client.poll_batch():
            if polled.data is None:
                continue
            engine.set_checksum_enabled(polled.checksum_enabled)
            fed = 0
            while fed < len(polled.data) or engine.has_events():
                while engine.next_event() is not None:
                    yield 1
                if fed < len(polled.data):
                    fed += engine.feed(polled.data[fed:])


READERS: dict[str, Callable[[int, Begin], Iterator[int]]] = {
    "python-mysql-replication": mysql_replication,
    "mysql-event-stream": mysql_event_stream,
}


def main(name: str, port: str, gtids: str, file: str, pos: str, count: str) -> None:
    """From the first row to the last."""
    wanted = int(count)
    rows = READERS[name](int(port), Begin(file, int(pos), gtids, 0))
    seen = next(rows)
    began, cpu = time.perf_counter(), time.process_time()
    while seen < wanted:
        seen += next(rows)
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    run = {"events": wanted, "seconds": seconds, "cpu_seconds": cpu, "resident_mb": peak_mb(os.getpid())}
    print(json.dumps(run), flush=True)
    os._exit(0)  # its threads wait for events that never come


if __name__ == "__main__":
    main(*sys.argv[1:])
