"""The check of the patterns of tables: each one that matches no table, among others that do, may be misspelled.

Only a warning: a pattern may be meant for tables to come. Where the server shows no table at all there is nothing to
hold them against.
"""

from __future__ import annotations

from collections.abc import Iterator

from contract import table_names
from contract.patterns import any_matches, is_plain, matches
from contract.pipeline import SYSTEM_SCHEMAS, Pipeline
from contract.pipeline_file import place_of
from streamer.preflight.findings import Finding, Server

Name = tuple[str, str]
Place = tuple[str | int, ...]

NAME = "pattern"
NAMES = "SELECT table_schema, table_name FROM information_schema.tables WHERE table_type NOT LIKE '%VIEW' ORDER BY 1, 2"
TOLD = 20  # patterns; for each one that is a plain name all names of the server are looked through


def unmatched(server: Server) -> Iterator[Finding]:
    there = [(db, table) for db, table in server.ask(NAMES) or [] if db not in SYSTEM_SCHEMAS]
    if not there:
        return
    pipeline = server.pipeline
    found = [(place, one) for place, one in _patterns(pipeline) if not any(matches(one, *name) for name in there)]
    for place, one in found[:TOLD]:
        what = f"{place_of(pipeline.path, *place)}: {one} matches no table that the server shows now"
        yield Finding("warning", NAME, what, _mending(pipeline, place, one, there))
    if found[TOLD:]:
        what = f"{len(found) - TOLD:,} more patterns of tables match no table that the server shows now"
        yield Finding("warning", NAME, what, "Mend those above first; those meant for tables to come may stay.")


def _patterns(pipeline: Pipeline) -> Iterator[tuple[Place, str]]:
    """With their places in the file."""
    for section in ("include", "exclude", "cascades"):
        for n, one in enumerate(getattr(pipeline.tables, section)):
            if section != "exclude" or is_plain(one):  # others are guards, as shop.tmp_*: well where there is nothing
                yield ("tables", section, n), one
    for section in ("keys", "events", "transforms", "topics"):
        for at, rule in enumerate(getattr(pipeline, section)):
            for n, one in enumerate(rule.tables):
                yield (section, at, "tables", n), one


def _mending(pipeline: Pipeline, place: Place, pattern: str, there: list[Name]) -> str:
    close = _close(pipeline, place, pattern, there) if is_plain(pattern) else []
    asked = f"Did you mean {close[0]}?" if close else "Is it written as the server has it, capitals and all?"
    later = "joins" if place[:2] == ("tables", "include") else "is chosen by it"
    return f"{asked} A table of that name that is made later {later}."


def _close(pipeline: Pipeline, place: Place, pattern: str, there: list[Name]) -> list[str]:
    """What `include` has by another pattern is not what is missing of it."""
    including = place[:2] == ("tables", "include")
    free = [name for name in there if not (including and any_matches(pipeline.tables.include, *name))]
    return table_names.close(pattern, (".".join(name) for name in free))
