"""Which changes the lake lacks for good, because Kafka had them no more when it came to read them: one small file of
the lake, which compaction writes (spark/lake/lost.py).

A table's rows are whole again behind a snapshot. Its past is not: that begins behind the last of them.
"""

from __future__ import annotations

import json

from pydantic import BaseModel

from contract import names
from contract.checkpoint import Place
from contract.pipeline import Pipeline

FILE = "_lost.json"


class LostChanges(BaseModel):
    """`topic`: the one that they were in. `until`: a `_seq` that none of them is behind. `everywhere`: they may be of
    any table."""

    topic: str
    until: list[int]
    everywhere: bool = False


def until(text: str | None, pipeline: Pipeline, db: str, table: str) -> Place | None:
    """The place before which changes of the table may be missing; None where none are. `text`: of the file. Lost
    statements are no changes."""
    known = [LostChanges.model_validate(one) for one in json.loads(text)] if text else []
    known = [one for one in known if one.topic != names.ddl_topic(pipeline)]
    topics = names.events_topics(pipeline, db, table)
    last = max((one.until for one in known if one.everywhere or one.topic in topics), default=None)
    return (last[0], last[1], last[2]) if last else None
