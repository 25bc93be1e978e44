"""How fast the decoder alone is: from the bytes of a dump, held in memory, to every row's finished JSON, on one core.
`python -m bench.decoder`. Prints rows a second of bulk inserts and transactions a second of single-row updates, by
the process's own CPU time; the best of several runs, since other work on the machine only ever adds to it.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from bench import load
from contract.gtid import GtidSet
from contract.pipeline import Source
from stack.mysql import USER, MySQL
from stack.ports import free_port
from streamer.connection import BinlogConnection
from streamer.protocol.model import Commit, RowsBatch
from streamer.transaction import BinlogDecoder


def dump(mysql: MySQL, begin: GtidSet, end: GtidSet) -> list[bytes]:
    """The chunks as received, from behind `begin` up to and with `end`."""
    source = Source(host="127.0.0.1", port=mysql.port, user=USER, password=mysql.password, server_id=free_port())  # type: ignore[arg-type]
    connection, decoder, seen = BinlogConnection(source, begin), BinlogDecoder(wanted), begin.copy()
    chunks: list[bytes] = []
    for chunk in connection.chunks():
        chunks.append(chunk)
        for item in decoder.feed(chunk):
            if isinstance(item, Commit):
                seen.add(item.gtid)
        if seen.issuperset(end):
            connection.close()
    return chunks


def wanted(_db: str, _table: str) -> bool:
    return True


def decoded(chunks: list[bytes]) -> tuple[int, int, float]:
    """Rows, transactions, CPU seconds."""
    decoder = BinlogDecoder(wanted)
    rows = transactions = 0
    began = time.process_time()
    for chunk in chunks:
        for item in decoder.feed(chunk):
            if type(item) is RowsBatch:
                rows += len(item.rows)
            else:
                transactions += 1
    return rows, transactions, time.process_time() - began


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", type=int, default=300_000)
    options.add_argument("--transactions", type=int, default=50_000)
    options.add_argument("--runs", type=int, default=7)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as folder:
        mysql = MySQL(Path(folder), free_port())
        mysql.start()
        try:
            loads = loaded(mysql, chosen.rows, chosen.transactions)
        finally:
            mysql.stop()
    for name, chunks in loads.items():
        rows, transactions, seconds = min((decoded(chunks) for _ in range(chosen.runs)), key=lambda run: run[2])
        count = rows if name == "bulk" else transactions
        unit = "rows" if name == "bulk" else "single-row transactions"
        print(
            f"{name}: {count:,} {unit}, {count / seconds:,.0f} a second, {seconds / count * 1e6:.2f} microseconds each"
        )


def loaded(mysql: MySQL, rows: int, transactions: int) -> dict[str, list[bytes]]:
    load.table(mysql)
    bulk = GtidSet.parse(load.bulk(mysql, rows).gtids)
    updates = GtidSet.parse(load.updates(mysql, transactions).gtids)
    end = GtidSet.parse(load.begin(mysql).gtids)
    return {"bulk": dump(mysql, bulk, updates), "updates": dump(mysql, updates, end)}


if __name__ == "__main__":
    main()
