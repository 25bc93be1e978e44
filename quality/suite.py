"""Runs a pipeline's expectations with Great Expectations, in the Spark application that called.

In: the tables as they were verified (`frames`), and what MySQL says of each (`results`). Out: per table whether
all held and which did not; data docs are written beside. A wrong suite file is a failure of its own, and keeps
no table from being checked.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import great_expectations as gx
from great_expectations.core import ExpectationSuite
from great_expectations.core.result_format import ResultFormat
from great_expectations.core.validation_definition import ValidationDefinition
from great_expectations.data_context.types.base import ProgressBarsConfig
from great_expectations.expectations import Expectation
from pyspark.sql import DataFrame, SparkSession

from contract.names import lake_table
from contract.pipeline import Pipeline
from contract.schema import TableSchema
from quality import custom, expectations, folder

INTERNAL = ("_seq", "_ts")


def run(
    spark: SparkSession,
    pipeline: Pipeline,
    results: Mapping[str, Mapping[str, Any]],
    *,
    schemas: Mapping[str, TableSchema],
    frames: Mapping[str, DataFrame] | None = None,
) -> dict[str, Any]:
    """`results`, `schemas` and `frames` are keyed by `db.table`. Of a table's result `frame_rows` (the rows that
    MySQL has for the frame's state), else `source_count`, is what its row count must be. Without a frame the
    table is read as it is now, which is right only while nothing is written.

    Gives `{"ok", "docs", "tables": {name: {"ok", "evaluated", "failed": [...]}}, "files": [...]}`; `files` says
    what is wrong with suite files.
    """
    files = custom.strays(pipeline, {*results, *schemas})
    context = _context(pipeline)
    source = context.data_sources.add_spark("lake")
    tables = {}
    for name in sorted(set(results) & set(schemas)):
        frame = (frames or {}).get(name)
        own = custom.of_table(pipeline.name, schemas[name], files)
        checked = _definition(context, source, schemas[name], own)
        data = (frame if frame is not None else _current(spark, pipeline, schemas[name])).drop(*INTERNAL)
        rows = results[name].get("frame_rows", results[name].get("source_count"))
        tables[name] = _validate(context, checked, data, rows)
    shutil.rmtree(folder.docs(pipeline), ignore_errors=True)  # else every check ever made would keep its pages
    context.build_data_docs()
    good = not files and all(table["ok"] for table in tables.values())
    result = {"ok": good, "docs": str(folder.docs(pipeline)), "tables": tables, "files": files}
    _keep(pipeline, results, result)
    return result


def _context(pipeline: Pipeline) -> Any:
    """Nothing of GX's own is stored but the pages: the suites follow from the schemas and the user's files."""
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False)  # a log is no screen
    for name in list(context.get_site_names()):
        context.delete_data_docs_site(name)
    store = {"class_name": "TupleFilesystemStoreBackend", "base_directory": str(folder.docs(pipeline))}
    site: Any = {
        "class_name": "SiteBuilder",
        "site_index_builder": {"class_name": "DefaultSiteIndexBuilder"},
        "store_backend": store,
    }
    context.add_data_docs_site(site_name="lake", site_config=site)
    return context


def _definition(context: Any, source: Any, schema: TableSchema, own: list[Expectation]) -> ValidationDefinition:
    name = f"{schema.db}.{schema.table}"
    batch = source.add_dataframe_asset(name=name).add_batch_definition_whole_dataframe("now")
    suite = context.suites.add(ExpectationSuite(name=name))
    for expectation in [*expectations.from_schema(schema), *own]:
        suite.add_expectation(expectation)
    return context.validation_definitions.add(ValidationDefinition(name=name, data=batch, suite=suite))


def _current(spark: SparkSession, pipeline: Pipeline, schema: TableSchema) -> DataFrame:
    return spark.read.format("delta").load(lake_table(pipeline, schema.db, schema.table))


def _validate(context: Any, checked: ValidationDefinition, frame: DataFrame, rows: Any) -> dict[str, Any]:
    """First only whether all holds, which Spark answers in one pass; the details, a pass an expectation, where not."""
    given: dict[str, Any] = {
        "batch_parameters": {"dataframe": frame},
        "expectation_parameters": {expectations.SOURCE_ROWS: rows},
    }
    outcome = checked.run(**given, result_format=ResultFormat.BOOLEAN_ONLY)
    if not outcome.success:
        _forget(context, checked.name)
        outcome = checked.run(**given, result_format=ResultFormat.SUMMARY)
    frame.unpersist()  # GX keeps what it has read
    failed = [_failed(one) for one in outcome.results if not one.success]
    return {"ok": bool(outcome.success), "evaluated": len(outcome.results), "failed": failed}


def _forget(context: Any, suite: str) -> None:
    """Takes the table's first result out of what the pages are made from: the second says more."""
    store = context.validation_results_store
    for key in store.list_keys():
        if key.expectation_suite_identifier.name == suite:
            store.remove_key(key)


def _failed(one: Any) -> dict[str, Any]:
    """One expectation that did not hold, without values of rows: an alert may go anywhere."""
    kwargs, seen = one.expectation_config.kwargs, one.result or {}
    columns = kwargs.get("column") or ", ".join(kwargs.get("column_list") or ())
    raised = _raised(one.exception_info or {})
    count = seen.get("unexpected_count")
    observed = raised or (f"{count} rows that break it" if count is not None else seen.get("observed_value"))
    return {
        "expectation": one.expectation_config.type,
        "column": columns or None,
        "observed": observed,
        "expected": kwargs.get("value") if raised is None else None,
    }


def _raised(info: dict[str, Any]) -> str | None:
    """The message of an expectation that could not be evaluated; GX nests it by metric."""
    infos = [info, *(value for value in info.values() if isinstance(value, dict))]
    raised = next((one for one in infos if one.get("raised_exception")), None)
    return str(raised.get("exception_message")).splitlines()[0] if raised else None


def _keep(pipeline: Pipeline, results: Mapping[str, Any], result: dict[str, Any]) -> None:
    at = datetime.now(UTC).isoformat(timespec="seconds")
    tables = {name: dict(facts) for name, facts in results.items()}
    folder.write_last(pipeline, {"at": at, "pipeline": pipeline.name, "tables": tables, "expectations": result})
