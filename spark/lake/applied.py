"""Which snapshot each table was last made from: one file of the lake, the only place that says so.

It is written behind the table itself. A run that dies in between applies the snapshot again, with the same
result, before anything else is merged.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from pydantic import Field, field_serializer

from contract import names
from contract.checkpoint import Checkpoint
from contract.schema import TableSchema
from contract.status import AppliedSnapshot
from spark.failpoints import reached
from spark.kafka.topic_places import TopicPlace
from spark.lake.lake import Lake
from spark.lake.letters import BEFORE_ALL
from spark.lake.lost import Loss, Losses
from spark.lake.stopped import Name


class Applied(AppliedSnapshot):
    """`floor`: P0 as a `_seq`; `p0_ms`: its commit time, Unix ms, 0 where an earlier version of Headrace applied it.
    The table's changes up to it are in the snapshot's rows. `gap`: the table was not followed for a time since, so
    changes that nobody knows are missing. `rules`: by which its rows were shown (contract/fingerprint.py); empty from a
    version that did not say. `letters`: the number of the last find of dead letters when its reading began
    (letters.py). `version`: of the lake's table that has the snapshot's rows, before anything else was merged;
    None where an earlier version of Headrace applied it. `seen`: what was in the table's topics before its reading
    began; empty from a version that did not look. `erasures`: the number of the last one when its reading
    began. `shape`: by which its rows were applied, all that tells it of a table
    of which nothing was changed yet; None where an earlier version of Headrace applied it."""

    floor: list[int]
    p0_ms: int = 0
    rules: str = ""
    gap: bool = False
    letters: int = BEFORE_ALL
    erasures: int = BEFORE_ALL
    version: int | None = None
    seen: dict[str, TopicPlace] = Field(default_factory=dict)
    shape: TableSchema | None = None

    @field_serializer("shape")
    def _short(self, shape: TableSchema | None) -> Any:
        """The file has those of all tables, and is written for each."""
        return shape and shape.model_dump(mode="json", exclude_defaults=True)


# Of a table that never had one: it comes before all of its changes.
NEVER = Applied(id="", p0="", p1="", rows=0, applied_at=0, floor=[0, 0, 0, 0, 0])


class AppliedSnapshots:
    """Each table's newest. Ids of snapshots grow with time."""

    def __init__(self, lake: Lake) -> None:
        self.lake, self.path, self.lock = lake, lake.at("_snapshots.json"), threading.Lock()
        known = lake.read(self.path) or []
        self.tables: dict[Name, Applied] = {(db, table): Applied.model_validate(facts) for db, table, facts in known}

    def has(self, name: Name, id: str) -> bool:
        """Whether the table was made from this snapshot, or from a newer one."""
        return name in self.tables and self.tables[name].id >= id

    def floors(self) -> dict[Name, list[int]]:
        return {name: applied.floor for name, applied in self.tables.items()}

    def gap(self, name: Name) -> bool:
        """Whether the table lacks changes until it gets another snapshot."""
        return name in self.tables and (self.tables[name].gap or self.loss(name) is not None)

    def loss(self, name: Name, since: Sequence[int] | None = None) -> Loss | None:
        """What Kafka had no more when the lake came to read it, and the snapshot has not. `since`: the `_seq` of the
        first record of a table that has no snapshot."""
        if not self.losses.known:
            return None
        applied, topics = self.tables.get(name), names.events_topics(self.lake.pipeline, *name)
        if applied is None:
            return self.losses.of(topics, since, {})
        return self.losses.of(topics, applied.floor, applied.seen)

    @cached_property
    def losses(self) -> Losses:
        return Losses(self.lake)

    def find_gaps(self, checkpoint: Checkpoint, last: Checkpoint | None) -> None:
        """Notes which tables were not followed for a time since their snapshot. A checkpoint tells of the last times
        alone, so this is kept. `last`: the checkpoint that was looked at before; what was forgotten since may have been
        any table's."""
        forgotten = checkpoint.forgotten
        if forgotten and last and last.place >= forgotten:
            forgotten = None
        for name, applied in list(self.tables.items()):
            since = max(filter(None, (checkpoint.since(*name), forgotten)), default=None)
            if since and tuple(applied.floor[:3]) < since and not applied.gap:
                self.note(name, applied.model_copy(update={"gap": True}))
                reached("gap noted")

    def note(self, name: Name, applied: Applied) -> None:
        with self.lock:  # tables are handed off side by side
            self.tables[name] = applied
            facts = [[*name, applied.model_dump(mode="json")] for name, applied in sorted(self.tables.items())]
            self.lake.write(self.path, facts)
