"""The names of topics, tables and ids: written once, here."""

from __future__ import annotations

import re

from contract.pipeline import Pipeline

LEGAL = re.compile(r"[A-Za-z0-9_-]")
CHANGES = "_changes"
STAGING = "_staging"


def escape(name: str) -> str:
    """A database or table name as part of a topic: what Kafka forbids, and the dot, becomes `_xHH` of
    its UTF-8 bytes (so that two names never meet, `_x` itself is escaped too)."""
    safe = name.replace("_x", "_x5fx")
    return "".join(c if LEGAL.match(c) else "".join(f"_x{b:02x}" for b in c.encode()) for c in safe)


def events_topic(pipeline: Pipeline, db: str, table: str) -> str:
    return pipeline.kafka.topic.format(pipeline=pipeline.name, db=escape(db), table=escape(table))


def commit_log_topic(pipeline: Pipeline) -> str:
    return f"{pipeline.name}.commit-log"


def schemas_topic(pipeline: Pipeline) -> str:
    return f"{pipeline.name}.schemas"


def lake_root(pipeline: Pipeline) -> str:
    return f"{pipeline.lake.path.rstrip('/')}/{pipeline.name}"


def lake_changes(pipeline: Pipeline) -> str:
    return f"{lake_root(pipeline)}/{CHANGES}"


def lake_table(pipeline: Pipeline, db: str, table: str) -> str:
    return f"{lake_root(pipeline)}/{escape(db)}/{escape(table)}"
