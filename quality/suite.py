"""Runs a pipeline's expectations with Great Expectations, in the Spark application that called.

In: the tables as they were verified (`frames`), and what MySQL says of each (`results`). Out: per table whether
all held and which did not; data docs are written beside, and where they cannot be, that is a warning. A wrong suite
file is a failure of its own, and keeps no table from being checked.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import great_expectations as gx
from great_expectations.data_context.types.base import ProgressBarsConfig
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from contract.names import lake_table
from contract.pipeline import Pipeline
from contract.schema import TableSchema
from quality import checks, custom, expectations, folder, found, pages
from quality.operands import UntranslatableError
from quality.validation import Validation

INTERNAL = ("_seq", "_ts")
NO_PAGES = (
    "the pages of this check (data docs) were not written in {folder} ({reason}), and those of before stay: make room "
    "there, or give it to the user that runs Spark (HEADRACE_QUALITY names another folder); the next check writes them"
)
NO_PAGE = "the data docs lack this check's pages of {tables}: the log above says why"
NOT_KEPT = (
    "this check's result was not kept in {folder}/last.json ({reason}), so that Headrace's page in Airflow shows the "
    "one before: make room there, or give it to the user that runs Spark (HEADRACE_QUALITY names another folder)"
)
UNNAMED = "Great Expectations takes its name for an expression (the rows are compared with the source all the same)"


def run(
    spark: SparkSession,
    pipeline: Pipeline,
    results: Mapping[str, Mapping[str, Any]],
    *,
    schemas: Mapping[str, TableSchema],
    frames: Mapping[str, DataFrame] | None = None,
    constraints: Mapping[str, Mapping[str, str]] | None = None,
    unjudged: Mapping[str, Mapping[str, str]] | None = None,
    some: bool = False,
    lake: Collection[str] = (),
    own_alone: Collection[str] = (),
    later: Callable[[str], Mapping[str, str]] = lambda name: {},
) -> dict[str, Any]:
    """`results`, `schemas` and `frames` are keyed by `db.table`. Of a table's result `frame_rows` (the rows that
    MySQL has for the frame's state), else `source_count`, is what its row count must be; none where it is None, of a
    sample. Without a frame the table is read as it is now, which is right only while nothing is written.
    `constraints`: each table's CHECK clauses by name. `unjudged`: what of a table no expectation is asked of, and why;
    without a schema that is all. `later` tells it of one that was asked, which then counts for nothing. `some`: these
    are not all of the pipeline's tables, so what was kept of the others stays. `lake`: the names of all that the lake
    has. `own_alone`: of these tables the user's files alone say what is to be.

    Gives `{"ok", "docs", "tables": {name: {"ok", "evaluated", "failed": [...], "evaluations": [...], "untranslated":
    {what: why}, "unjudged": {what: why}, "files": [...]}}, "files": [...], "unread": [...], "unused": [...],
    "warnings": [...]}`; `ok` is None where nothing was evaluated of a table, and none else failed; `docs` where its
    pages were not written; `files` says what is wrong with suite files, in a table's part with its own, where it was
    judged; `unread` names those not looked into, `unused` says of which there is no table to be checked any more,
    `warnings` what was not kept of the result.
    """
    files = custom.strays(pipeline, {*results, *schemas}, lake)
    context = _context()
    source = context.data_sources.add_spark("lake")
    tables = dict[str, dict[str, Any]]()
    for name in sorted(set(results) & set(schemas)):
        frame = (frames or {}).get(name)
        known = len(files)
        own = custom.of_table(pipeline.name, schemas[name], files)
        if name in own_alone and not own:
            continue
        data = (frame if frame is not None else _current(spark, pipeline, schemas[name])).drop(*INTERNAL)
        rows = results[name].get("frame_rows", results[name].get("source_count"))
        asked = None if name in own_alone else _shown(schemas[name], data, results[name])
        validation = Validation(context, source, name, data, rows)
        judged = _judged(validation, asked, (constraints or {}).get(name, {}), own, files) | {"files": files[known:]}
        left_out = dict((unjudged or {}).get(name, {}))
        passed = later(name)
        tables[name] = {**_nothing(), "unjudged": {**left_out, **passed}} if passed else judged | {"unjudged": left_out}
    for name, why in (unjudged or {}).items():
        tables.setdefault(name, {**_nothing(), "unjudged": dict(why)})
    docs, warnings = _pages(context, pipeline, tables, some)
    result = {"ok": _ok(tables, files), "docs": docs, "tables": tables, "files": files}
    result["unread"] = _unread_files(pipeline, tables, {*lake} - {*results} if some else set())
    result["unused"] = [] if some else custom.unused(pipeline, {*results, *schemas}, lake)
    return {**result, "warnings": warnings + _keep(pipeline, results, result, some)}


def _unread_files(pipeline: Pipeline, tables: Mapping[str, Mapping[str, Any]], others: set[str]) -> list[str]:
    """Those of tables that were not judged, and of the `others`, which were not checked."""
    return custom.unread(pipeline, {name for name, table in tables.items() if table["ok"] is None} | others)


def _judged(
    validation: Validation,
    schema: TableSchema | None,
    clauses: Mapping[str, str],
    own: Sequence[custom.Own],
    files: list[str],
) -> dict[str, Any]:
    """What the table's own expectations (`own`, of a user's file) say of its rows, and those that its schema, where it
    is to keep to one, and CHECK `clauses` give."""
    if schema is None:
        return {**validation.run([], own, files), "untranslated": {}}
    data, rows = validation.frame, validation.rows
    conditions, untranslated = _conditions(schema, clauses, data)
    schema = expectations.spelled_as(schema, data.columns)
    derived = expectations.from_schema(schema, conditions, rows is not None, _lacking(schema, data))
    unasked = dict.fromkeys(expectations.unasked(schema), UNNAMED)
    return {**validation.run(derived, own, files), "untranslated": untranslated | unasked}


def _keep(
    pipeline: Pipeline, results: Mapping[str, Mapping[str, Any]], result: Mapping[str, Any], some: bool
) -> list[str]:
    """Keeps the result for Headrace's page in Airflow. Gives what is wrong with that."""
    try:
        with folder.alone(pipeline):
            _write_last(pipeline, results, result, some)
    except OSError as error:
        return [NOT_KEPT.format(folder=folder.folder(pipeline), reason=_reason(error))]
    return []


def _pages(
    context: Any, pipeline: Pipeline, tables: Mapping[str, Mapping[str, Any]], some: bool
) -> tuple[str | None, list[str]]:
    """Where they are, and what is wrong with them: the check itself is not to be lost for its pages."""
    try:
        lacking = pages.write(context, pipeline, tables, some)
    except Exception as error:  # whatever Great Expectations raises
        return None, [NO_PAGES.format(folder=folder.folder(pipeline), reason=_reason(error))]
    return str(folder.docs(pipeline)), [NO_PAGE.format(tables=", ".join(lacking))] if lacking else []


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return f"{type(error).__name__}: {found.reason(str(error), 'an error about a value')}"


def _nothing() -> dict[str, Any]:
    """The result of a table of which nothing was judged."""
    return {"ok": None, "evaluated": 0, "failed": [], "evaluations": [], "untranslated": {}}


def _ok(tables: Mapping[str, Mapping[str, Any]], files: list[str]) -> bool | None:
    """Of all that was judged; None where all of that is well, and a table was not."""
    each = [table["ok"] for table in tables.values()]
    if files or False in each:
        return False
    return None if None in each else True


def _context() -> Any:
    """Nothing of GX's own is stored: the suites follow from the schemas and the user's files, the pages are ours."""
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False)  # a log is no screen
    for name in list(context.get_site_names()):
        context.delete_data_docs_site(name)
    return context


def _shown(schema: TableSchema, data: DataFrame, result: Mapping[str, Any]) -> TableSchema:
    """The columns that are to be there. A table that was proven equal lacks but such as are NULL in every row: added,
    and not yet written to."""
    if not result.get("equal"):
        return schema
    nullable = {column.name for column in schema.columns if column.nullable}
    return expectations.without(schema, nullable.intersection(_lacking(schema, data)))


def _lacking(schema: TableSchema, data: DataFrame) -> list[str]:
    """The columns that the lake's table has not."""
    there = {name.lower() for name in data.columns}
    return [column.name for column in schema.columns if column.name.lower() not in there]


def _conditions(
    schema: TableSchema, clauses: Mapping[str, str], data: DataFrame
) -> tuple[dict[str, str], dict[str, str]]:
    """The constraints in Spark SQL, and why others are not."""
    done, not_done = {}, {}
    for name, clause in clauses.items():
        try:
            condition = checks.translated(clause, schema)
            data.where(condition)  # by now Spark has looked at it: what it does not take says nothing of the rows
            done[name] = condition
        except UntranslatableError as error:
            not_done[f"CHECK {name}"] = str(error)
        except AnalysisException as error:
            not_done[f"CHECK {name}"] = f"Spark does not take it: {error.getCondition() or type(error).__name__}"
    return done, not_done


def _current(spark: SparkSession, pipeline: Pipeline, schema: TableSchema) -> DataFrame:
    return spark.read.format("delta").load(lake_table(pipeline, schema.db, schema.table))


def _write_last(pipeline: Pipeline, results: Mapping[str, Any], result: Mapping[str, Any], some: bool) -> None:
    at = datetime.now(UTC).isoformat(timespec="seconds")
    last = _last(pipeline) if some else {}
    expected = last.get("expectations") or {}
    now = {name: {**facts, "at": at} for name, facts in results.items()}
    tables = {**_others(last.get("tables"), results), **now}
    of_tables = {**_others(expected.get("tables"), results), **result["tables"]}
    told = {**result, "tables": of_tables, "files": [*result["files"], *_unread(expected.get("files"), result)]}
    folder.write_last(pipeline, {"at": at, "pipeline": pipeline.name, "tables": tables, "expectations": told})


def _last(pipeline: Pipeline) -> dict[str, Any]:
    try:
        return folder.read_last(pipeline) or {}
    except (OSError, ValueError):  # it is a convenience of the page's
        return {}


def _others(known: Mapping[str, Any] | None, results: Mapping[str, Any]) -> dict[str, Any]:
    """What was kept of tables that have no result now."""
    return {name: facts for name, facts in (known or {}).items() if name not in results}


def _unread(known: list[str] | None, result: Mapping[str, Any]) -> list[str]:
    """What was wrong with the files that are there, and that this check did not look into."""
    return [told for told in known or () if told.startswith(tuple(f"{path}:" for path in result["unread"]))]
