"""The template that names a table's topic (`kafka.topic`): filled in, read back, and what is wrong with one.

A database or table name enters a topic escaped, in letters, digits, `_` and `-`; so a dot ends it, and the name of
a topic tells which table it is of.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from string import Formatter

from contract.mistake import MistakeError
from contract.patterns import is_regex

LEGAL = re.compile(r"[A-Za-z0-9_-]")
ESCAPED = re.compile(r"(?:_x[0-9a-f]{2})+")
TEXT = re.compile(r"[A-Za-z0-9._-]*")
FIELDS = ("pipeline", "db", "table")
# Beside the event topics, `<pipeline>.<kind>`; kept free of events for every pipeline that the broker may serve.
SERVICE_KINDS = ("commit-log", "schemas", "ddl", "transactions", "dead-letter", "heartbeat", "snapshot-rows")
SERVICE = re.compile(rf"[a-z][a-z0-9-]{{0,39}}\.({'|'.join(SERVICE_KINDS)})")
WILD = re.compile(r"[*?\[]")


def escape(name: str) -> str:
    """A database or table name as part of a topic: what Kafka forbids, and the dot, becomes `_xHH` of
    its UTF-8 bytes (so that two names never meet, `_x` itself is escaped too)."""
    safe = name.replace("_x", "_x5fx")
    return "".join(c if LEGAL.match(c) else "".join(f"_x{b:02x}" for b in c.encode()) for c in safe)


def unescape(part: str) -> str | None:
    """What `escape` was given; None for what it never gives."""
    name = ESCAPED.sub(lambda m: bytes.fromhex(m[0].replace("_x", "")).decode(errors="replace"), part)
    return name if escape(name) == part else None


def is_service(topic: str) -> bool:
    """Whether it is the commit log, or its like, of a pipeline of any name."""
    return SERVICE.fullmatch(topic) is not None


def fill(template: str, pipeline: str, db: str, table: str) -> str:
    return template.format(pipeline=pipeline, db=escape(db), table=escape(table))


def parse(template: str, pipeline: str, topic: str) -> dict[str, str] | None:
    """The `db` and `table` that the topic was filled in with, those of them that the template has; None for a
    topic that it cannot give."""
    match = re.fullmatch(_pattern(template, pipeline), topic)
    if match is None:
        return None
    found = {field: unescape(value) for field, value in match.groupdict().items()}
    names = {field: name for field, name in found.items() if name is not None}
    return names if len(names) == len(found) else None


def _pattern(template: str, pipeline: str) -> str:
    seen: set[str] = set()
    parts = []
    for text, field in _pieces(template):
        parts.append(re.escape(text))
        if field == "pipeline":
            parts.append(re.escape(pipeline))
        elif field:
            parts.append(f"(?P={field})" if field in seen else f"(?P<{field}>[A-Za-z0-9_-]+)")
            seen.add(field)
    return "".join(parts)


def _pieces(template: str) -> list[tuple[str, str]]:
    """Text, and the field behind it. Raises ValueError for broken braces."""
    return [(text, field or "") for text, field, _, _ in Formatter().parse(template)]


def has_table(template: str) -> bool:
    """Whether each table has a topic of its own."""
    return any(field == "table" for _, field in _pieces(template))


def check(template: str) -> None:
    """Raises ValueError for a template that makes no topic names, or names that do not tell the table."""
    for text, field, form, conversion in Formatter().parse(template):
        if field is not None and (field not in FIELDS or form or conversion):
            what = f"unknown field {{{field}}} (allowed: {', '.join(FIELDS)})"
            raise MistakeError(what, f"write {' or '.join(f'{{{one}}}' for one in FIELDS)} in its place")
        if not TEXT.fullmatch(text):
            what = f"{text!r} is not allowed in a topic's name (letters, digits, dot, _ and - are)"
            raise MistakeError(what, "write one of those in its place")
    between = None
    for text, field in _pieces(template):
        between = between + text if between is not None else None
        if field in ("db", "table"):
            if between is not None and "." not in between:
                what = "two tables could get one topic: a name may hold any other character than a dot"
                raise MistakeError(what, "write a dot between {db} and {table}")
            between = ""


def meetings(template: str, pipeline: str, include: Sequence[str]) -> Iterator[tuple[str, str]]:
    """What is wrong with the names that the chosen tables would get, and the fix. `include`: `db.table` patterns."""
    include = ["*.*" if is_regex(pattern) else pattern for pattern in include]
    parts = [tuple(glob.split(".")) for glob in include]
    fields = {field for _, field in _pieces(template)}
    databases, tables = {db for db, _ in parts}, [table for _, table in parts]
    one = len(databases) == 1 and not WILD.search("".join(databases))
    told_apart = not WILD.search("".join(include)) and len(set(tables)) == len(tables)
    if "table" in fields and "db" not in fields and not one and not told_apart:
        yield "two databases' tables of one name would get one topic", "add {db} to it"
    chosen = [(db, table) for db, table in parts if not WILD.search(db + table)]
    names = [fill(template, pipeline, db, table) for db, table in chosen if "table" in fields]
    names += [fill(template, pipeline, "", "")] if not fields & {"db", "table"} else []
    for topic in sorted({topic for topic in names if is_service(topic)}):
        yield f"the topic {topic} is kept for what pipelines note of themselves", "use {pipeline}.{db}.{table}"
