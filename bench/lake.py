"""How fast compaction is: `python -m bench.lake backlog`, changes that wait in Kafka, from their first byte to merged
tables; `python -m bench.lake fresh`, how old the lake is while changes come at an even rate; `python -m bench.lake
proof`, how fast a check is meanwhile; `python -m bench.lake bytes`, how many bytes merges write into tables of several
sizes (written.py).

MySQL, Kafka, the streamer and Spark on the same machine, as a small installation has it.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from contextlib import ExitStack
from math import gcd
from pathlib import Path

from bench import by_hand, fresh, load, proven, spread, written
from bench.compacting import Site, rounds_of, told
from bench.headrace import ROOT
from contract.names import events_topic
from contract.pipeline import Pipeline
from contract.spark_process import COLLECTOR
from stack.mysql import MySQL
from stack.spark import JAVA

PIECE = 20_000  # rows that a statement updates


def update(mysql: MySQL, chosen: argparse.Namespace, changes: int) -> None:
    """Each statement changes rows side by side, PIECE or less, of one table."""
    each = chosen.rows // chosen.tables
    piece = gcd(PIECE, each)
    next_piece = spread.pieces(spread.tables(chosen.tables), each, piece)
    with mysql.connect(autocommit=True) as connection, connection.cursor() as cursor:
        for done, (table, first) in zip(range(0, changes, piece), next_piece, strict=False):
            last = first + min(piece, changes - done)
            cursor.execute(
                f"UPDATE {table} SET amount = amount + 1, status = 'sent' WHERE id >= {first} AND id < {last}"
            )


def backlog(site: Site, chosen: argparse.Namespace) -> None:
    start = load.begin(site.mysql).gtids
    spread.fill_all(site.mysql, chosen.rows, chosen.tables)
    if chosen.warm:
        behind_another(site, chosen, start)
        return
    update(site.mysql, chosen, chosen.changes - chosen.rows)
    pipeline = site.pipeline(start, chosen.tables)
    with site.streamer():
        site.wait_for(pipeline, chosen.changes)
    began = time.monotonic()
    with rounds_of(site, chosen, "compact") as rounds:
        rate = told(next(rounds), chosen.changes)
    print(f"{time.monotonic() - began:.1f} s with the start of Spark and its end", flush=True)
    if chosen.tables == 1:
        beside(site, chosen, pipeline, rate)


def beside(site: Site, chosen: argparse.Namespace, pipeline: Pipeline, rate: float) -> None:
    """The same records by a job as people write it by hand, which makes the table alone; it is to be right, too."""
    topic = events_topic(pipeline, load.DATABASE, spread.tables(1)[0])
    facts = by_hand.run(site.kafka.address, topic, site.home / "by_hand", chosen.memory, chosen.java)
    with site.mysql.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT COUNT(*), SUM(amount) FROM {load.DATABASE}.orders")
        rows, amount = cursor.fetchone()
    if (facts["rows"], facts["amount"]) != (rows, str(amount)):
        raise SystemExit(f"the job by hand made {facts}, and MySQL has {rows} rows, {amount}")
    other = chosen.changes / facts["seconds"]
    print(
        f"by hand, into the table alone: {facts['seconds']:.1f} s: {other:,.0f} a second; compaction, which keeps the "
        f"history: {rate / other:.0%} of that",
        flush=True,
    )


def behind_another(site: Site, chosen: argparse.Namespace, start: str) -> None:
    """The backlog of a session that is warm: `chosen.warm` changes are landed and merged in its first round, and the
    others come before its second."""
    update(site.mysql, chosen, chosen.warm - chosen.rows)
    pipeline = site.pipeline(start, chosen.tables, every=chosen.every)
    with site.streamer():
        site.wait_for(pipeline, chosen.warm)
        with rounds_of(site, chosen, "compact_loop") as rounds:
            told(next(rounds), chosen.warm)
            update(site.mysql, chosen, chosen.changes)
            site.wait_for(pipeline, chosen.warm + chosen.changes)
            told(next(rounds), chosen.changes)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.lake", description=__doc__)
    parts = parser.add_subparsers(required=True)
    some = parts.add_parser("backlog", help="changes that wait in Kafka")
    some.add_argument("--changes", type=int, default=5_000_000, help="as many as rows, and updates of them")
    some.add_argument("--rows", type=int, default=1_000_000)
    some.add_argument("--warm", type=int, default=0, help="changes that the same session lands before; 0: none")
    some.add_argument("--every", type=float, default=300, help="seconds from its first round to the backlog's")
    some.set_defaults(work=backlog)
    some_age = parts.add_parser("fresh", help="how old the lake is under an even load")
    some_age.add_argument("--rate", type=int, default=5_000, help="changes a second")
    some_age.add_argument("--seconds", type=int, default=600)
    some_age.add_argument("--rows", type=int, default=1_000_000, help="of the table; a multiple of the rate")
    how = some_age.add_mutually_exclusive_group()
    how.add_argument("--every", type=float, help="seconds from run to run of compact; without it compact --loop")
    how.add_argument("--airflow", action="store_true", help="compacted by Airflow's schedule, each minute")
    some_age.add_argument("--goal", type=float, default=60.0, help="seconds that the lake may be behind")
    some_age.set_defaults(work=fresh.fresh)
    proof = parts.add_parser("proof", help="how fast a whole check is under an even load")
    proof.add_argument("--rate", type=int, default=1_000, help="changes a second")
    proof.add_argument("--rows", type=int, default=3_000_000, help="of the table; a multiple of the rate")
    proof.add_argument("--checks", type=int, default=2, help="one after the other")
    proof.set_defaults(work=proven.proof)
    merges = parts.add_parser("bytes", help="how many bytes merges write, by changes and by the table's size")
    merges.add_argument("--sizes", type=int, nargs="+", default=written.SIZES, help="rows of the tables")
    merges.add_argument("--changes", type=int, nargs="+", default=written.CHANGES, help="rows that each merge changes")
    merges.add_argument("--out", type=Path, default=ROOT / "bench" / "out", help="folder of written.json, written.svg")
    merges.set_defaults(work=written.run)
    for part in (some, some_age, proof):
        part.add_argument("--tables", type=int, default=1, help="over which rows and changes are spread evenly")
    for part in (some, some_age, proof, merges):
        part.add_argument("--memory", default="2g", help="spark.driver.memory")
        part.add_argument("--java", help="options of Spark's JVM; a job's own, --airflow: the local Airflow's")
    chosen = parser.parse_args()
    chosen.java = chosen.java or (JAVA if getattr(chosen, "airflow", False) else COLLECTOR)
    return chosen


def main() -> None:
    chosen = arguments()
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as home, ExitStack() as running:
        place = Path(home) if chosen.work is written.run else Site(Path(home), running)
        chosen.work(place, chosen)


if __name__ == "__main__":
    main()
