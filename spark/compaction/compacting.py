"""A compaction by the job that waits for one: for who has no DAG and no `headrace compact --loop` that does it.

What was staged is taken by a compaction that has landed all that the source had when it was read, so the streamer must
run meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from pyspark.sql import SparkSession

from contract.pipeline import Pipeline
from contract.status import LakeStatus, PartStatus, parse
from spark.compaction.compaction import compact
from spark.errors import PassingError
from spark.job import Facts, JobFailedError
from spark.lake.lake import Lake

KEPT = "What was staged stays, and the next compaction that can takes it in"
PATIENCE, POLL = 600.0, 1.0  # seconds
OPTION = "take in what was staged by compactions of this job: any text, such as yes"


def compaction(spark: SparkSession, pipeline: Pipeline) -> Callable[[], None]:
    """One run, when it is called. Of stopped tables it tells; the others are complete."""
    told = set[str]()

    def run() -> None:
        try:
            compact(spark, pipeline)
        except JobFailedError as error:
            if str(error) not in told:
                print(str(error), flush=True)
            told.add(str(error))

    return run


def take_in(spark: SparkSession, pipeline: Pipeline, staged: Facts, patience: float = PATIENCE) -> Facts:
    """Compacts until the lake has what the facts of a snapshot, repair or backfill say was staged, which get how long
    that took. Raises PassingError where the lake has it not in time, or waits for stopped tables alone; JobFailedError
    where it refused a part."""
    began, lake, run = time.monotonic(), Lake(spark, pipeline), compaction(spark, pipeline)
    before = ""
    while True:
        print("compacting", flush=True)
        run()
        status = parse(lake.text(lake.status) or "")
        if not (why := lacking(staged, status)):
            break
        stopped = _stopped(staged, status)
        # What a run has landed the last of may be for the next to take in, and that one would have by now.
        if before == stopped and _in_vain(staged, status):
            raise PassingError(f"{why}{stopped}. {KEPT}")
        if time.monotonic() - began > patience:
            raise PassingError(
                f"after {patience:.0f} s of compactions {why}{stopped}. `headrace status {pipeline.path}` says whether "
                f"the streamer runs. {KEPT}"
            )
        before = stopped
        time.sleep(POLL)
    done = [status.parts[id] for id in staged.get("parts", {})]
    facts = {**staged, **_mended(done), "compacted_seconds": round(time.monotonic() - began, 1)}
    if refused := [part.refused for part in done if part.refused]:
        raise JobFailedError("; ".join(refused), facts)
    return facts


def _mended(done: Sequence[PartStatus]) -> Facts:
    """How many rows of each table were not as they are to be, by the kind of difference; of parts alone. It is told."""
    rows = {f"{part.db}.{part.table}": part.rows for part in done if not part.refused}
    for name, kinds in rows.items():
        told = ", ".join(f"{kind}: {count:,}" for kind, count in kinds.items())
        print(f"{name}: mended ({told})" if told else f"{name}: nothing was to be mended", flush=True)
    return {"mended": rows} if done else {}


def lacking(staged: Facts, status: LakeStatus) -> str:
    """What the lake does not have yet; empty where it has all."""
    if missing := _missing(staged, status):
        return f"the lake has not taken in {', '.join(missing)}"
    if "parts" not in staged and not status.covers(staged["p1"]):
        return f"the lake is not complete up to {staged['p1']}, where the snapshot ended"
    return ""


def _missing(staged: Facts, status: LakeStatus) -> list[str]:
    """The tables that have not taken in theirs."""
    if "parts" in staged:
        return sorted({table for id, table in staged["parts"].items() if id not in status.parts})
    return sorted(name for name in staged["tables"] if _snapshot(status, name) < staged["snapshot"])


def _in_vain(staged: Facts, status: LakeStatus) -> bool:
    """Whether all of these are stopped, though the lake has come to where they were read."""
    tables = [status.tables.get(name) for name in _missing(staged, status)]
    return bool(tables) and status.covers(staged["p1"]) and all(one and one.stopped for one in tables)


def _stopped(staged: Facts, status: LakeStatus) -> str:
    """Why some of these wait: of a table that is stopped it may be in vain, whether the streamer runs or not."""
    known = {name: table.stopped for name in _missing(staged, status) if (table := status.tables.get(name))}
    told = [f"{name} is stopped: {why.removeprefix(f'{name}: ')}" for name, why in known.items() if why]
    return f": {'; '.join(told)}" if told else ""


def _snapshot(status: LakeStatus, name: str) -> str:
    """The id of the table's. Ids grow: where somebody has taken a newer one meanwhile, an older one is not applied any
    more."""
    table = status.tables.get(name)
    return table.snapshot.id if table and table.snapshot else ""
