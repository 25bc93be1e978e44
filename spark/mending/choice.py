"""What a repair or a backfill may be of, and how it is begun: the jobs' common beginning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import SparkSession

from contract import steps, table_names
from contract.checkpoint import Checkpoint
from contract.chosen_rows import ChosenRowsError
from contract.pipeline import Pipeline
from contract.pipeline_columns import Shown
from contract.pipeline_keys import told_of
from contract.schema import TableSchema
from contract.status import LakeStatus, parse
from spark.errors import LakeError
from spark.kafka.broker import Broker
from spark.lake.applied import AppliedSnapshots
from spark.lake.lake import Lake
from spark.lake.manifests import manifests
from spark.lake.owner import refuse_others
from spark.mending import wanted
from spark.merging.parts import Chosen
from spark.proof.finding import incomparable, why
from spark.snapshot.places import Places
from spark.snapshot.snapshot import Staging
from spark.snapshot.transformed import refuse_other_rules
from spark.source.choice import refuse_unfollowed
from spark.source.source import Source
from spark.source.streamed import reading, streamed
from spark.tables.schema import Schemas

Name = tuple[str, str]


@dataclass(frozen=True)
class Form:
    """What a person wrote: `keys`, or `low` and `high` of a range; all empty: none of them."""

    keys: str = ""
    low: str = ""
    high: str = ""

    @classmethod
    def of(cls, given: Mapping[str, str]) -> Form:
        return cls(given["keys"], given["from"], given["to"])

    def __bool__(self) -> bool:
        return bool(self.keys or self.low or self.high)

    def choose(self, shown: Shown) -> Chosen:
        """Raises LakeError."""
        if self.keys:
            return wanted.keys(shown.schema, self.keys)
        return wanted.span(shown, self.low, self.high) if self else Chosen("the whole table")


@contextmanager
def refusing() -> Iterator[None]:
    """What the command line tells before it becomes a job, for whoever starts one otherwise. Raises LakeError."""
    try:
        yield
    except ChosenRowsError as error:
        raise LakeError(str(error)) from None


def names_of(pipeline: Pipeline, tables: Sequence[str]) -> list[Name]:
    """Raises LakeError for what is no table of the pipeline."""
    for name in tables:
        if why := table_names.refused(pipeline, name):
            raise LakeError(why)
    return [(name.partition(".")[0], name.partition(".")[2]) for name in tables]


def shown_in(schema: TableSchema) -> Shown:
    """A table of which the lake alone is asked, by the schema topic's word: a masked column is a column like others."""
    return Shown(schema, schema, {})


def standing(lake: Lake, names: Sequence[Name] = ()) -> LakeStatus:
    """Raises LakeError where no compaction has run yet, which also says of whom of the names nothing was sent."""
    if text := lake.text(lake.status):
        return parse(text)
    pipeline = lake.pipeline
    raise LakeError(
        f"{_unsent(pipeline, names)}the lake {lake.root} has no table yet: run a snapshot and a compaction first (the "
        f"DAGs {pipeline.name}.snapshot and .compaction, or `headrace snapshot {pipeline.path} --compact`)"
    )


def _unsent(pipeline: Pipeline, names: Sequence[Name]) -> str:
    """A misspelled name is not to be taken for a table that has yet to come."""
    known = Schemas(Broker(pipeline).schemas()).tables() if names else ()
    if unknown := [".".join(name) for name in names if name not in known]:
        sent = sorted(".".join(name) for name in known)
        there, named = ", ".join(sent) or "none", ", ".join(table_names.told(name, sent) for name in unknown)
        told = f"{named} is no table that the pipeline has sent changes of; those are: {there}"
        return f"{told}. And "
    return ""


def blocked(lake: Lake, status: LakeStatus, name: Name, from_source: bool = True) -> str | None:
    """Why a part of the table cannot be made anew, and what mends it; None where it can."""
    told, table, pipeline = ".".join(name), status.tables.get(".".join(name)), lake.pipeline
    if pipeline.changes_only(*name):
        return f"{told_of(told)}, so there are no rows to be made anew: name another table, or remove that rule first"
    if table is None or table.version is None:
        there, named = ", ".join(sorted(status.tables)) or "none", table_names.told(told, status.tables)
        return f"the lake has no table {named}: check its name, or {steps.SNAPSHOT_TABLE}. It has: {there}"
    if reason := table.unequal or why(table):
        if _staged(lake, name):
            return (
                f"{told} is to be read as a whole, and a snapshot of it is staged: {steps.compaction(pipeline)}, which "
                "puts it in place; then run this again, if anything is left to mend"
            )
        once = reason.replace(steps.SNAPSHOT_TABLE, f"{steps.snapshot(pipeline)}, for it")
        return f"{told} is to be read as a whole: {once}"
    if from_source and (facts := incomparable(pipeline, *name)):
        return f"{told} is not made of the source's rows alone ({facts['reason']}): {steps.SNAPSHOT_TABLE}"
    return None


def _staged(lake: Lake, name: Name) -> bool:
    """Whether a snapshot of the table is staged and not applied yet; its other tables may keep it there."""
    applied = AppliedSnapshots(lake)
    staged = [one.id for one in manifests(lake) if name in ((shape.db, shape.table) for shape in one.tables)]
    return any(not applied.has(name, id) for id in staged)


@contextmanager
def source_of(spark: SparkSession, pipeline: Pipeline, lake: Lake, tables: list[Name], job: str) -> Iterator[Staging]:
    """To read rows of these tables by a snapshot's rules. `job`: which one does, in messages. Raises LakeError."""
    broker = Broker(pipeline)
    p0 = broker.checkpoint()
    if p0 is None:
        raise LakeError(f"the commit log of {pipeline.name} is empty: start the streamer, then run this again")
    refuse_others(lake, lambda: p0)
    with streamed(pipeline, p0) as source:

        def refuse(checkpoint: Checkpoint) -> None:
            refuse_unfollowed(checkpoint, tables, job)
            refuse_other_rules(source.pipeline, checkpoint)

        refuse(p0)
        with reading(source) as reader:
            yield _staging(spark, lake, source, reader, Places(source, p0, broker.checkpoint, refuse, tell, job))


def _staging(spark: SparkSession, lake: Lake, source: Source, reader: Source, places: Places) -> Staging:
    staging = Staging(spark, source.pipeline, lake, source, places, reader, tell)
    staging.load.prove()
    return staging


def tell(line: str) -> None:
    print(line, flush=True)
