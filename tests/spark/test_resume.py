"""What an earlier run has read is gone on with only where it still fits the stream."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from contract.checkpoint import Checkpoint
from contract.pipeline import Lake as LakeSection
from contract.pipeline import Tables
from contract.schema import Column, TableSchema
from spark.lake import unfinished
from spark.lake.applied import Applied, AppliedSnapshots
from spark.lake.growing import grown
from spark.lake.in_staging import in_staging
from spark.lake.lake import Lake
from spark.lake.unfinished import BEAT, Found, Part, Progress, Unfinished
from spark.snapshot.resume import Resume
from tests.checkpoints import checkpoint

ITEMS = TableSchema(db="shop", table="items", columns=(Column(name="id", type="int"),), key=("id",))
FOUND = Found(ITEMS, "2026-01-01 00:00:00")
P0 = checkpoint(pos=100, epoch=1, tables=Tables(include=("shop.*",)))


class Folder:
    """A lake and a job in it, that have nothing but the progress of one table."""

    def __init__(self, progress: Progress | None = None) -> None:
        self.known, self.forgotten = progress, False
        self.pipeline = SimpleNamespace(lake=LakeSection(path="/lake"))

    def checkpoint(self, query: str) -> str:
        return query

    def text(self, path: str) -> str | None:
        return None

    def progress(self, db: str, table: str) -> Progress | None:
        return self.known

    def forget(self, db: str, table: str) -> None:
        self.forgotten = True


def resumed(now: Checkpoint, found: Found = FOUND, *parts: Part) -> tuple[Progress | None, list[str], bool]:
    job, told = Folder(Progress(shape=ITEMS, made=FOUND.made, p0=P0, parts=list(parts))), list[str]()
    progress = Resume(job, now, told.append).table(job, found)  # type: ignore[arg-type]
    return progress, told, job.forgotten


@pytest.fixture(autouse=True)
def each_that_began_one_has_died(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unfinished, "SILENT", 0.0)


READ = Part(rows=40, to=("40",), version=1)


def test_a_table_goes_on_behind_its_parts() -> None:
    progress, told, forgotten = resumed(P0.model_copy(update={"pos": 900}), FOUND, READ)
    assert progress is not None
    assert (progress.rows, progress.behind, forgotten) == (40, ("40",), False)
    assert told == ["shop.items: goes on behind its first 40 rows"]
    assert resumed(P0, FOUND) == (None, [], False)  # nothing was read


wide = ITEMS.model_copy(update={"columns": (*ITEMS.columns, Column(name="more", type="int"))})


@pytest.mark.parametrize(
    ("now", "found", "part", "reason"),
    [
        ({}, Found(wide, FOUND.made), READ, "altered since"),
        ({}, Found(ITEMS, "2026-02-02 00:00:00"), READ, "altered since"),
        ({}, FOUND, READ.model_copy(update={"to": None}), "a masked key"),
        ({}, FOUND, READ.model_copy(update={"version": None}), "an earlier version of Headrace"),
        ({"epoch": 2}, FOUND, READ, "another server or place"),
        ({"server_uuid": "other"}, FOUND, READ, "another server or place"),
        ({"pos": 50}, FOUND, READ, "another server or place"),
        ({"rules": "changed"}, FOUND, READ, "columns, keys, transforms or events"),
        ({"forgotten": (1, 1, 500), "pos": 900}, FOUND, READ, "did not follow it"),
    ],
)
def test_what_does_not_fit_any_more_is_read_again(now: dict[str, Any], found: Found, part: Part, reason: str) -> None:
    progress, told, forgotten = resumed(P0.model_copy(update=now), found, part)
    assert progress is None
    assert forgotten
    assert "shop.items: is read again from its beginning: " in told[0]
    assert reason in told[0]


def test_a_table_that_was_left_out_for_a_time_is_read_again() -> None:
    out = P0.model_copy(update={"pos": 200}).following(Tables(include=("other.*",)))
    back = out.model_copy(update={"pos": 300}).following(Tables(include=("shop.*",)))
    progress, told, _ = resumed(back.model_copy(update={"pos": 400}), FOUND, READ)
    assert progress is None
    assert "did not follow it for a time" in told[0]


def test_a_snapshot_of_all_tables_goes_on_with_another_of_all_whichever_there_were(lake: Lake) -> None:
    """What is gone is left out, and what is new is read beside the others."""
    told: list[str] = []
    lake.prove_writable()

    def job(*tables: str, all: bool = True) -> Unfinished:
        return Resume(lake, P0, told.append).job([f"shop.{table}" for table in tables], all)

    first = job("items", "report", "_orders_gho")
    again = job("items", "fresh", "report")
    assert (again.id, again.plan and again.plan.tables) == (first.id, ["shop.fresh", "shop.items", "shop.report"])
    assert told == [f"the snapshot {first.id} goes on without what is no table of it any more: shop._orders_gho"]
    named = job("items", "report", all=False)
    assert named.id != first.id, "what the others have read is not to be lost for a few that a person named"
    assert job("items", "report", all=False).id == named.id
    assert job("items").id == first.id, "nor is a person's taken for one of all"
    assert again.plan == Unfinished(lake, first.id).plan
    behind = P0.model_copy(update={"pos": P0.pos + 1})
    later = Resume(lake, behind, told.append).job(["shop.items"], all=True)
    assert (later.id, in_staging(lake)) == (first.id, dict.fromkeys([("shop", "items"), ("shop", "report")], P0.place))
    applied = AppliedSnapshots(lake)
    facts = {"p0": "", "p1": "", "rows": 1, "applied_at": 1, "floor": [0, 1, 4, -1, -1]}
    applied.note(("shop", "report"), Applied(id=grown(first.id, first.id), **facts))
    assert job("items", "fresh").id == first.id, "what is left out may have a newer snapshot"
    applied.note(("shop", "late"), Applied(id=grown(first.id, first.id), **facts))
    assert job("items", "late").id not in {first.id, named.id}
    assert "shop.late has a newer snapshot" in told[-1]


def test_rows_that_are_to_be_in_kafka_too_are_read_from_the_beginning(lake: Lake) -> None:
    told: list[str] = []
    lake.prove_writable()
    first = Resume(lake, P0, told.append).job(["shop.items"])
    assert Resume(lake, P0, told.append).job(["shop.items"]).id == first.id
    asked = lake.pipeline.snapshot.model_copy(update={"to_kafka": True})
    lake.pipeline = lake.pipeline.model_copy(update={"snapshot": asked})
    again = Resume(lake, P0, told.append).job(["shop.items"])
    assert again.id != first.id
    assert "snapshot.to_kafka was set since" in told[0]
    assert Resume(lake, P0, told.append).job(["shop.items"]).id == again.id


@pytest.mark.parametrize(("hours", "goes_on"), [(1, True), (25, False)])
def test_one_of_days_goes_on_where_its_last_part_is_of_today(lake: Lake, hours: int, goes_on: bool) -> None:
    """It was begun 30 hours ago: none of what it read is lost for its length alone."""
    told, now = list[str](), time.time()
    lake.prove_writable()
    first = Resume(lake, P0, told.append).job(["shop.items"])
    assert first.plan is not None
    first.begin(first.plan.model_copy(update={"began": now - 30 * 3600}))
    parts = [READ.model_copy(update={"at": now - ago * 3600}) for ago in (29, hours)]
    first.note(Progress(shape=ITEMS, made=FOUND.made, p0=P0, parts=parts))
    lake.write(f"{first.folder}/{BEAT}", {"at": now - 29 * 3600, "by": "who died"})
    Path(first.folder, "progress.shop.lines.json.new-1-x").write_text('{"shape": ')  # a kill in the middle of a note
    again = Resume(lake, P0, told.append)
    job = again.job(["shop.items"])
    assert (job.id == first.id) == goes_on
    progress = again.table(job, FOUND)
    assert (progress.rows if progress else 0) == (80 if goes_on else 0)
    assert lake.exists(first.folder) == goes_on, "what nobody goes on with is removed"
