"""The tables of a repair or a backfill, one after the other: what one cannot have keeps no other from its rows."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TypeVar

from contract import steps
from contract.pipeline import Pipeline
from spark.errors import LakeError, TableError
from spark.job import Facts, JobFailedError
from spark.mending.choice import Name, tell

Staged = TypeVar("Staged")


def each(names: Collection[Name], stage: Callable[[Name], Staged]) -> tuple[dict[Name, Staged], dict[str, str]]:
    """What `stage` gave for each table, and for those that were passed by, by `db.table`, why. Raises what `stage`
    raised where it was no table's alone, and then tells which are staged already; LakeError where no table was."""
    staged, refused = dict[Name, Staged](), dict[str, str]()
    for name in names:
        try:
            staged[name] = stage(name)
        except TableError as error:
            if len(names) == 1:
                raise
            tell(f"passed by: {error}")
            refused[".".join(name)] = str(error)
        except Exception:
            if staged:  # no report names them
                tell(f"staged already, for the next compaction: {', '.join(map('.'.join, staged))}")
            raise
    if not staged:
        raise LakeError("; ".join(refused.values()))
    return staged, refused


def refuse_passed_by(pipeline: Pipeline, facts: Facts) -> None:
    """Raises JobFailedError where a table of the report was passed by, at the job's end: the others have theirs."""
    if not facts["passed_by"]:
        return
    told = "; ".join(facts["passed_by"].values())
    if facts["tables"]:
        ready = "in the lake" if "compacted_seconds" in facts else steps.staged(pipeline)
        told = f"{told}. What was asked of {', '.join(facts['tables'])} is {ready}"
    raise JobFailedError(told, facts)
