"""The rules of `columns`, `keys` and `events` in the pipeline file, at the tables that the stream meets."""

from __future__ import annotations

from functools import partial

from contract.pipeline import Pipeline
from contract.pipeline_columns import ColumnRuleError, Shown
from contract.pipeline_events import dropped
from contract.pipeline_file import place_of
from contract.schema import TableSchema
from streamer.errors import RuleError
from streamer.protocol.filters import Filters


def filters(pipeline: Pipeline) -> Filters:
    return Filters(partial(show, pipeline), partial(dropped, pipeline.events))


def show(pipeline: Pipeline, source: TableSchema) -> Shown:
    """The table as the pipeline shows it. Raises RuleError where a rule cannot hold for it."""
    try:
        return pipeline.show(source)
    except ColumnRuleError as error:
        cause = f"{place_of(pipeline.path, *error.place)}: {error.cause}"
        raise RuleError("read", f"rows of {source.db}.{source.table}", cause, error.fix) from None
