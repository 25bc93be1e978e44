"""A user's own expectations: a file `<pipeline>/<db>.<table>.json` or `.py` in the suites' folder.

`.json`: `{"expectations": [{"type": "expect_column_values_to_be_between", "kwargs": {...}}, ...]}`, the form in
which Great Expectations itself writes a suite. `.py`: a function `expectations(schema)` that gets the table's
schema (contract.schema.TableSchema) and gives a list of GX expectations; it runs with the job's rights.
"""

from __future__ import annotations

import json
import runpy
import traceback
from collections.abc import Iterable
from pathlib import Path

from great_expectations.expectations import Expectation
from great_expectations.expectations.expectation_configuration import ExpectationConfiguration

from contract import table_names
from contract.pipeline import Pipeline
from contract.pipeline_keys import told_of
from contract.schema import TableSchema
from quality.suite_files import files, folder

COLUMN = ("column", "column_A", "column_B")  # what an expectation calls its columns, beside a list of them
ASKS_FOR_IT = "expect_column_to_exist"
NEAR = 0.6  # of a column that may be meant: its name is short
FORM = '{"expectations": [{"type": ..., "kwargs": {...}}]}'
Own = tuple[Path, Expectation]  # and the file that it stands in


class SuiteFileError(ValueError):
    """A suite file that cannot be used: which one, what is wrong, what to do."""


def of_table(pipeline: str, schema: TableSchema, wrong: list[str]) -> list[Own]:
    """What the user's files say of the table, `.json` before `.py`; what is wrong with a file goes to `wrong`."""
    path, found = folder(pipeline) / f"{schema.db}.{schema.table}.json", list[Own]()
    for file, reads in ((path, _from_json), (path.with_suffix(".py"), _from_python)):
        try:
            listed = reads(file, schema) if file.exists() else []
        except SuiteFileError as error:
            wrong.append(str(error))
            continue
        for one in listed:
            if told := _no_column(one, schema):
                wrong.append(f"{file}: {told}")
            else:
                found.append((file, one))
    return found


def _no_column(one: Expectation, schema: TableSchema) -> str | None:
    """Of an expectation of columns that the table does not have: which, and which ones it has."""
    kind, kwargs = one.configuration.type, one.configuration.kwargs
    known = [column.name for column in schema.columns]
    named = [*filter(None, (kwargs.get(key) for key in COLUMN)), *(kwargs.get("column_list") or ())]
    missing = [name for name in named if isinstance(name, str) and name.lower() not in {*map(str.lower, known)}]
    if not missing or kind == ASKS_FOR_IT:
        return None
    close = table_names.close(missing[0], known, like=NEAR)
    hint = f", did you mean {close[0]}?" if close else "."
    table = f"{schema.db}.{schema.table}"
    return f"{kind}: {table} has no column {', '.join(missing)}{hint} Its columns are {', '.join(known)}"


def strays(pipeline: Pipeline, tables: Iterable[str], lake: Iterable[str]) -> list[str]:
    """Files whose name fits no table, which would be passed over in silence. `tables`: those that are checked; `lake`:
    all that the lake has, by which a check of some knows the others."""
    known = {*tables, *lake}
    return [
        f"{path}: {path.stem} is no table of pipeline {pipeline.name}; name the file after one of "
        + ", ".join(sorted(known))
        for path in files(pipeline)
        if path.stem not in known and not _without_rows(pipeline, path.stem)
    ]


def unused(pipeline: Pipeline, tables: Iterable[str], lake: Iterable[str]) -> list[str]:
    """Files of tables that are not checked: the lake has no rows of them; or it has, and the source has none of that
    name by now, such as behind a RENAME. `tables`: all that are checked."""
    gone, told = {*lake} - {*tables}, list[str]()
    for path in files(pipeline):
        if _without_rows(pipeline, path.stem):
            told.append(f"{path} was not run: {told_of(path.stem)}, so there are no rows to check. Remove the file")
        elif path.stem in gone:
            told.append(
                f"{path} was not run: {path.stem} is in the lake, and no table of the source any more. Name the file "
                "after the table that it is to check now, or remove it"
            )
    return told


def unread(pipeline: Pipeline, others: Iterable[str]) -> list[str]:
    """The files of these tables, of which this check could not say what is wrong with them."""
    names = {*others}
    return [str(path) for path in files(pipeline) if path.stem in names]


def _without_rows(pipeline: Pipeline, name: str) -> bool:
    db, dot, table = name.partition(".")
    return bool(dot) and pipeline.changes_only(db, table)


def _from_json(path: Path, _: TableSchema) -> list[Expectation]:
    try:
        listed = json.loads(path.read_text())["expectations"]
        if strange := [entry for entry in listed if not isinstance(entry, dict)]:
            raise TypeError(f"{json.dumps(strange[0])} is no object")
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise SuiteFileError(f"{path}: cannot be read as a suite ({error}); the form is {FORM}") from None
    return [_expectation(path, entry) for entry in listed]


def _expectation(path: Path, entry: dict[str, object]) -> Expectation:
    kind = str(entry.get("type"))
    try:
        return ExpectationConfiguration(type=kind, kwargs=dict(entry.get("kwargs", {}))).to_domain_obj()  # type: ignore[call-overload]
    except Exception as error:  # GX raises its own, pydantic's and plain ones for a wrong entry
        raise SuiteFileError(f"{path}: the expectation {kind!r} is refused: {first_line(error)}") from None


def first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def _from_python(path: Path, schema: TableSchema) -> list[Expectation]:
    try:
        expectations = runpy.run_path(str(path)).get("expectations")
        if not callable(expectations):
            raise SuiteFileError(f"{path}: has no function expectations(schema)")
        found = list(expectations(schema))
    except SuiteFileError:
        raise
    except (Exception, SystemExit) as error:  # whatever the user's code raises is the user's to mend
        raise SuiteFileError(_raised(path, error)) from None
    if strange := [one for one in found if not isinstance(one, Expectation)]:
        raise SuiteFileError(f"{path}: expectations(schema) gave {strange[0]!r}, which is no GX expectation")
    return found


def _raised(path: Path, error: BaseException) -> str:
    """With the last line of the file itself, where the error has one: a KeyError's own text may be a mere name."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    told = f": {error}" if str(error) else ""
    return f"{path}{f':{lines[-1]}' if lines else ''}: {type(error).__name__}{told}"
