"""How fast a whole check is while rows are written and a looping compaction follows them: the job as a user starts it,
from the start of its Spark to its report, with the expectations that MySQL's schema gives."""

from __future__ import annotations

import argparse
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from bench import load, spread
from bench.compacting import Site
from bench.fresh import looping, status_of, writing
from contract import jobs
from contract.pipeline import Pipeline

PATIENCE = 600.0  # seconds for the rows of before to be in the lake


def proof(site: Site, chosen: argparse.Namespace) -> None:
    start = load.begin(site.mysql).gtids
    spread.fill_all(site.mysql, chosen.rows, chosen.tables)
    pipeline = site.pipeline(start, chosen.tables)
    with site.streamer():
        site.wait_for(pipeline, chosen.rows)
        with looping(site, chosen):
            _wait(pipeline, chosen.rows)
            with _written(site, chosen):
                for _ in range(chosen.checks):
                    _check(site, chosen)


def _check(site: Site, chosen: argparse.Namespace) -> None:
    began = time.monotonic()
    process = site.job("verify", chosen.memory, chosen.java)
    said, _ = process.communicate()
    whole = time.monotonic() - began
    report = next((found for line in said.splitlines() if (found := jobs.read(line))), {})
    tables = report.get("tables", {})
    if process.returncode or not tables or not all(facts["equal"] for facts in tables.values()):
        raise SystemExit(f"the check failed: {report.get('error')}\n{site.log('verify')}")
    rows = sum(facts["lake_count"] for facts in tables.values())
    source, lake = (sum(facts[f"{side}_seconds"] for facts in tables.values()) for side in ("source", "lake"))
    told = f"{rows:,} rows proven equal under {chosen.rate:,} changes a second: {rows / (source + lake):,.0f} a second "
    told += f"by its reads, MySQL's {source:.1f} s and the lake's {lake:.1f} s. The whole check, with its wait for the "
    told += (
        f"lake, and with what the schema says of the rows: {report['seconds']:.1f} s; with Spark's start {whole:.1f} s"
    )
    print(told, flush=True)


def _wait(pipeline: Pipeline, rows: int) -> None:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        status = status_of(pipeline)
        if status and sum(table.rows for table in status.tables.values()) >= rows:
            return
        time.sleep(1)
    raise SystemExit(f"{rows:,} rows were not in the lake in {PATIENCE:.0f} s")


@contextmanager
def _written(site: Site, chosen: argparse.Namespace) -> Iterator[None]:
    ended = threading.Event()

    def write() -> None:
        for _ in writing(site, chosen):
            if ended.is_set():
                return

    with ThreadPoolExecutor(1) as pool:
        writer = pool.submit(write)
        try:
            yield
        finally:
            ended.set()
        writer.result()  # raises what ended the writes
