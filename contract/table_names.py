"""What a person is told of a table's name that a pipeline, its source or its lake does not have: why, and which one may
be meant.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator

from contract.patterns import is_glob, is_plain, is_regex, matches
from contract.pipeline import SYSTEM_SCHEMAS, Pipeline
from contract.pipeline_file import place_of

LIKE = 0.85  # of a whole db.table, so that two short names in one database are not taken for each other


def refused(pipeline: Pipeline, name: str) -> str | None:
    """Why a name that a person gave is none of the pipeline's tables; None where it is one, or may be."""
    db, _, table = name.partition(".")
    if not (db and table):
        return f"{name!r} is no table's name: write it as db.table"
    if pipeline.tables.match(db, table):
        return None
    if db in SYSTEM_SCHEMAS:
        return f"{name} is one of the server's own tables, of which no pipeline takes any"
    return left_out(pipeline, name) or _not_included(pipeline, name)


def left_out(pipeline: Pipeline, name: str) -> str | None:
    """By what of the pipeline file the table is excluded; None where it is not, but may not be included either."""
    for at, pattern in enumerate(pipeline.tables.exclude):
        if matches(pattern, *name.split(".", 1)):
            place = place_of(pipeline.path, "tables", "exclude", at)
            return f"{name} is left out of the pipeline by {place}, which is {pattern}: take that out to follow it"
    return None


def _not_included(pipeline: Pipeline, name: str) -> str:
    include = pipeline.tables.include
    told = f"{name} is not one of the pipeline's tables ({', '.join(include)})"
    meant = close(name, _names_of(include, name))
    return f"{told}{f': did you mean {meant[0]}? See' if meant else ': see'} tables in {pipeline.path}"


def _names_of(include: Iterable[str], name: str) -> Iterator[str]:
    """The names that a pattern has, or may have, beside the one that it does not match."""
    for pattern in include:
        if is_plain(pattern):
            yield pattern
        elif not is_regex(pattern) and not is_glob(db := pattern.partition(".")[0]):
            may = f"{db}.{name.partition('.')[2]}"
            if matches(pattern, *may.split(".", 1)):
                yield may


def told(name: str, known: Iterable[str]) -> str:
    """The name with the one that may be meant, as part of a sentence."""
    meant = close(name, known)
    return f"{name} (did you mean {meant[0]}?)" if meant else name


def close(name: str, known: Iterable[str], most: int = 1, like: float = LIKE) -> list[str]:
    """Those of the known names that may be meant, the likeliest first; capitals count for nothing."""
    lower = {one.lower(): one for one in known}
    return [lower[one] for one in difflib.get_close_matches(name.lower(), lower, most, like)]
