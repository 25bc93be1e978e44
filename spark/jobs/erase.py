"""The erasure job: a table's rows of some keys, out of the lake and, as far as that goes, out of the topics."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import SparkSession

from contract import names, table_names
from contract.asker import asker
from contract.erased_key import ErasedKey, ErasedKeyError, keys_of
from contract.pipeline import Pipeline
from contract.pipeline_keys import told_of
from contract.schema import Column, TableSchema
from contract.steps import SNAPSHOT_TABLE
from spark.erasing import record, source
from spark.erasing.staging import refuse_reading, staged
from spark.erasing.work import Erasing, facts_of
from spark.errors import LakeError
from spark.evolution.renames import in_lake
from spark.evolution.shapes import shape_of
from spark.job import run as run_job
from spark.kafka.broker import Broker
from spark.lake.applied import AppliedSnapshots
from spark.lake.lake import Lake
from spark.lake.owner import refuse_others
from spark.lake.slot import writing
from spark.lake.stopped import Name
from spark.tables.schema import Schemas

OPTIONS = {
    "keys": "the keys, a JSON list: values, or objects of the key's columns",
    "present": "erase also where the source still has the row: any text, such as yes",
    "now": "remove files of before at once, which ends time travel and readers that have begun: any text, such as yes",
    "run": "of whom the record is to tell: the run",
    "by": "and who asked for it",
}


def erase(
    spark: SparkSession, pipeline: Pipeline, tables: list[str], keys: str = "", present: str = "", now: str = "",
    run: str = "", by: str = "",
) -> dict[str, Any]:  # fmt: skip
    """Erases the keys of the one table that is named. Raises LakeError."""
    began, lake, broker = time.time(), Lake(spark, pipeline), Broker(pipeline)
    by = by or asker()  # what cannot be recorded is not to be begun
    try:
        refuse_others(lake, broker.checkpoint)
        schemas = in_lake(lake, broker.schemas())
        schema = _schema(lake, schemas, tables)
        _refuse_unfit(lake, schema)
        plain = source.columns_of(pipeline, broker, schema, schemas.all(schema.db, schema.table), bool(present))
        wanted = _wanted(keys, schema, pipeline, plain)
        if present:
            until = source.newest(pipeline, broker)
        else:
            until = source.place_without(pipeline, broker, schema.db, schema.table, wanted)
        schemas, schema = _again(lake, broker, schema)
        refuse_reading(lake, schema)
        lake.prove_writable()
        with writing(lake, "erase"):
            hours = 0 if now else pipeline.maintenance.vacuum_hours
            erasing = Erasing(spark, lake, broker, schemas, schema, wanted, until, hours)
            begun = erasing.run()
            remains = _remains(erasing, begun.topics, run)
            record.note(spark, lake, begun, until, remains, run, by)
            erasing.erasures.end(begun)
    finally:
        lake.close()
    return _told(began, erasing, facts_of(begun), remains)


def _schema(lake: Lake, schemas: Schemas, tables: list[str]) -> TableSchema:
    """The newest of the one table. Raises LakeError."""
    applied = AppliedSnapshots(lake).tables
    known = {f"{db}.{table}": (db, table) for db, table in {*schemas.tables(), *applied}}
    if len(tables) != 1:
        raise LakeError("an erasure is of the keys of one table: name it, as db.table. Nothing was erased")
    if tables[0] not in known:
        there, named = ", ".join(sorted(known)) or "none", table_names.told(tables[0], known)
        raise LakeError(f"{named} is no table that the pipeline has sent changes of; those are: {there}")
    return _newest(lake, schemas, known[tables[0]])


def _newest(lake: Lake, schemas: Schemas, name: Name) -> TableSchema:
    if (found := shape_of(lake, schemas, name)) is None:
        raise LakeError(
            f"{'.'.join(name)}: the pipeline has sent no change of it, and an older version of Headrace applied its "
            f"snapshot, which did not keep the columns of its key: {SNAPSHOT_TABLE}, and run the erasure again when a "
            "compaction has taken that in. Nothing was erased"
        )
    return found


def _refuse_unfit(lake: Lake, schema: TableSchema) -> None:
    """Raises LakeError where no key tells whose a change is, or rows are where no erasure looks."""
    name, pipeline = f"{schema.db}.{schema.table}", lake.pipeline
    if not schema.key:
        raise LakeError(
            f"{name} has no key, by which the changes of a row are found. By their age a maintenance removes them "
            "(maintenance.history_days). Nothing was erased"
        )
    left = names.lake_table(pipeline, schema.db, schema.table)
    if pipeline.changes_only(schema.db, schema.table) and lake.exists(left):
        raise LakeError(
            f"{told_of(name)}, and {left} has the rows of before, which nothing follows since: remove that folder, "
            "then run this again. Nothing was erased"
        )


def _again(lake: Lake, broker: Broker, schema: TableSchema) -> tuple[Schemas, TableSchema]:
    """Every version up to the place where the erasure ends, and the newest. Raises LakeError."""
    schemas = in_lake(lake, broker.schemas())
    newest = _newest(lake, schemas, (schema.db, schema.table))
    if _key(newest) != _key(schema):
        raise LakeError(
            f"the key of {schema.db}.{schema.table} was altered meanwhile: run it again. Nothing was erased"
        )
    return schemas, newest


def _key(schema: TableSchema) -> list[Column]:
    return [schema.column(name) for name in schema.key]


def _wanted(keys: str, schema: TableSchema, pipeline: Pipeline, source: TableSchema | None) -> list[ErasedKey]:
    try:
        return keys_of(keys, schema, pipeline.columns.key(), source)
    except ErasedKeyError as error:
        raise LakeError(f"{error}. Nothing was erased") from None


def _remains(erasing: Erasing, topics: list[Any], run: str) -> list[record.Remains]:
    at = datetime.now(UTC)
    pipeline = erasing.lake.pipeline
    others = erasing.topics.others({*erasing.until.topics} - {one.name for one in topics}, int(at.timestamp() * 1000))
    found = record.of_files(erasing.spark, erasing.paths(), erasing.hours, at)
    found += record.of_unkeyed(erasing.schema, erasing.traces.unkeyed())
    found += record.of_changes(erasing.lake.changes, erasing.traces.unsearched())
    found += record.of_doubtful(erasing.lake.changes, erasing.traces.doubtful())
    found += record.of_oversized(pipeline) + record.of_archive(pipeline) + record.of_sinks(pipeline)
    found += record.of_renamed(erasing.spark, erasing.lake, erasing.traces.name)
    found += record.of_staged(staged(erasing.lake, erasing.schema))
    found.append(record.DATA_DOCS)
    found += record.of_topics(topics) + record.of_topics(others, record.MAYBE)
    if run:
        found.append(record.Remains("Airflow", "this run's form and log have the keys: delete the run there"))
    return found


def _told(began: float, erasing: Erasing, facts: dict[str, Any], remains: list[record.Remains]) -> dict[str, Any]:
    if not any(count for place, count in facts.items() if place != "keys"):
        name = erasing.traces.name
        print(f"{name}: nothing of these keys was found; the record says so, and where it may be still", flush=True)
    return {
        "seconds": round(time.time() - began, 1),
        "until": erasing.until.sent,
        "remains": [one.told() for one in remains],
        "tables": {erasing.traces.name: facts},
    }


if __name__ == "__main__":
    run_job("erase", erase, OPTIONS)
