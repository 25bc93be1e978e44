"""How old the lake is while changes come at an even rate: its age, how long before now everything was committed that it
has. Compacted by `headrace compact --loop`, by jobs one after the other, or by Airflow's schedule with all that Airflow
takes of the machine."""

from __future__ import annotations

import argparse
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from statistics import median, quantiles

from bench import load, spread
from bench.compacting import Site, rounds_of
from contract.pipeline import Pipeline
from contract.status import LakeStatus, parse
from stack.airflow import PIPELINES, Airflow
from stack.demo.airflow_api import Airflow as Api
from stack.ports import free_port

EACH_MINUTE = "* * * * *"


def fresh(site: Site, chosen: argparse.Namespace) -> None:
    start = load.begin(site.mysql).gtids
    spread.fill_all(site.mysql, chosen.rows, chosen.tables)
    pipeline = site.pipeline(start, chosen.tables, schedule=EACH_MINUTE if chosen.airflow else "")
    with site.streamer():
        site.wait_for(pipeline, chosen.rows)
        with compacting(site, chosen):
            ages = watched(site, pipeline, chosen)
    print(
        f"{chosen.rate:,} changes a second for {chosen.seconds} s: the lake's age {median(ages):.1f} s in the middle, "
        f"{quantiles(ages, n=100, method='inclusive')[98]:.1f} s p99, {max(ages):.1f} s at most; "
        f"{over(ages, chosen.goal)}",
        flush=True,
    )


def over(ages: list[float], goal: float) -> str:
    """`ages`: one a second. A job that has just started has not found its pace yet: so it is told when it was slow."""
    late = [second for second, age in enumerate(ages, 1) if age > goal]
    return f"above {goal:g} s in {len(late)} of {len(ages)} seconds" + (f", the last the {late[-1]}th" if late else "")


def compacting(site: Site, chosen: argparse.Namespace) -> AbstractContextManager[None]:
    if chosen.airflow:
        return by_airflow(site, chosen)
    return scheduled(site, chosen) if chosen.every else looping(site, chosen)


@contextmanager
def looping(site: Site, chosen: argparse.Namespace) -> Iterator[None]:
    with rounds_of(site, chosen, "compact_loop") as rounds:
        # Read, or the job would stand still once the pipe is full.
        reader = threading.Thread(target=deque, args=(rounds, 0), daemon=True)
        reader.start()
        yield


@contextmanager
def scheduled(site: Site, chosen: argparse.Namespace) -> Iterator[None]:
    """Runs one after the other, each a Spark of its own."""
    ended, failed = threading.Event(), list[str]()

    def run() -> None:
        while not ended.is_set() and not failed:
            began = time.monotonic()
            process = site.job("compact", chosen.memory, chosen.java)
            said, _ = process.communicate()
            if process.returncode:
                failed.append(f"compaction failed: {said}\n{site.log('compact')}")
            ended.wait(max(0.0, began + chosen.every - time.monotonic()))

    runs = threading.Thread(target=run)
    runs.start()
    try:
        yield
    finally:
        ended.set()
        runs.join()
    if failed:
        raise SystemExit(failed[0])


@contextmanager
def by_airflow(site: Site, chosen: argparse.Namespace) -> Iterator[None]:
    """Airflow's own schedule, and its four parts beside all else."""
    site.spark(chosen.memory, chosen.java)
    airflow = Airflow(site.home / "airflow", free_port(), {PIPELINES: str(site.file.parent)})
    dag, began = f"{site.file.stem}.compaction", time.time()
    airflow.start()
    try:
        api = Api(airflow.url)
        api.wait_for([dag])
        api.wait(api.trigger(f"{site.file.stem}.topics"), 300.0)  # which makes the lake's slot
        api.pause(dag, False)
        yield
        runs = api.runs(dag, began)
        if failed := [run.id for run in runs if run.state == "failed"]:
            raise SystemExit(f"{dag} failed: {', '.join(failed)}; Airflow's log: {airflow.log_path}")
        if not (took := sorted(run.seconds for run in runs if run.state == "success")):
            raise SystemExit(f"no run of {dag} ended; Airflow's log: {airflow.log_path}")
        print(f"{len(took)} runs of {dag}, {took[0]:.0f} to {took[-1]:.0f} s each", flush=True)
    finally:
        airflow.kill()


def watched(site: Site, pipeline: Pipeline, chosen: argparse.Namespace) -> list[float]:
    """The lake's age each second while rows are written, from its first run with all rows of before on."""
    ages: list[float] = []
    until = None
    for _ in writing(site, chosen):
        if (age := age_of(pipeline)) is not None:
            until = until or time.monotonic() + chosen.seconds
            ages.append(age)
        if until and time.monotonic() > until:
            return ages
    raise AssertionError("it writes without end")


def writing(site: Site, chosen: argparse.Namespace) -> Iterator[None]:
    """Updates rows at an even rate, without end, and comes back each second."""
    step, written = chosen.rate // 10, 0
    next_piece = spread.pieces(spread.tables(chosen.tables), chosen.rows // chosen.tables, step)
    with site.mysql.connect(autocommit=True) as connection, connection.cursor() as cursor:
        began = time.monotonic()
        for table, at in next_piece:
            cursor.execute(f"UPDATE {table} SET amount = amount + 1 WHERE id >= {at} AND id < {at + step}")
            written += step
            if written % chosen.rate == 0:
                yield
            time.sleep(max(0.0, began + written / chosen.rate - time.monotonic()))


def age_of(pipeline: Pipeline) -> float | None:
    status = status_of(pipeline)
    return time.time() - status.checkpoint.ts_ms / 1000 if status and status.checkpoint else None


def status_of(pipeline: Pipeline) -> LakeStatus | None:
    file = Path(pipeline.lake.place) / pipeline.name / "_status.json"
    return parse(file.read_text()) if file.exists() else None
