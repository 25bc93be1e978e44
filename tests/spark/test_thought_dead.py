"""A driver that stood still for long, and was taken for dead: whatever it writes when it wakes is in no table."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark.erasing.staging import refuse_reading
from spark.errors import LakeError
from spark.failpoints import hooked
from spark.lake import unfinished
from spark.lake.lake import Lake
from spark.lake.manifests import Manifest
from spark.lake.unfinished import Beating, Progress, Unfinished
from spark.merging.handoff import apply_ready
from spark.merging.parts import parts, put, sweep
from spark.snapshot.staged import StagedRows
from spark.tables.rows import parsed
from tests.spark.changes_by_hand import ITEMS, change, compact_json
from tests.spark.lake_by_hand import AT, NAME, checkpoint, ids, item, land, part, seq, stage
from tests.spark.test_lake import Hides


def append(spark: SparkSession, lake: Lake, manifest: Manifest, *rows: dict[str, Any]) -> None:
    """What the driver had read when it stood still."""
    texts = spark.createDataFrame([(compact_json(row),) for row in rows], "after string")
    wires = texts.withColumn("_wire", parsed("after", ITEMS.columns))
    StagedRows(spark, lake, manifest.rows(lake, ITEMS), manifest.id).append(wires, ITEMS, checkpoint(AT))


def test_rows_that_come_behind_the_staged_ones_do_not_move_with_them(spark: SparkSession, lake: Lake) -> None:
    manifest = stage(spark, lake, "1", AT, item(1), item(2, "b"))
    append(spark, lake, manifest, item(1))
    result = apply_ready(spark, lake)
    assert (result.applied, result.refused) == ({NAME}, {})
    assert ids(spark, lake) == [(1, "a"), (2, "b")]


class CrashError(Exception):
    pass


def test_nor_do_those_that_come_while_a_hand_off_dies(
    spark: SparkSession, lake: Lake, compact: Callable[[], dict[str, Any]]
) -> None:
    """Behind the merge, and once more when the lake's table is gone: what that one had is in the staged one alone."""
    land(spark, lake, change(seq(AT + 1), "c", item(7)))
    compact()
    manifest = stage(spark, lake, "1", AT, item(1), item(2, "b"))

    def crash(at: str) -> None:
        if at == "newer rows taken in" and not come:
            come.append(at)
            append(spark, lake, manifest, item(1))
        elif at == "table made way":
            append(spark, lake, manifest, item(2, "b"))
            raise CrashError

    come: list[str] = []
    with hooked(crash), pytest.raises(CrashError):
        compact()
    compact()
    assert ids(spark, lake) == [(1, "a"), (2, "b"), (7, "a")]


def test_an_append_beside_another_is_refused(spark: SparkSession, lake: Lake) -> None:
    manifest = stage(spark, lake, "1", AT, item(1))
    mine = StagedRows(spark, lake, manifest.rows(lake, ITEMS), manifest.id)
    mine.begin(ITEMS)
    append(spark, lake, manifest, item(2))
    wires = spark.createDataFrame([(compact_json(item(3)),)], "after string")
    with pytest.raises(LakeError, match=r"another job writes .*run the snapshot again"):
        mine.append(wires.withColumn("_wire", parsed("after", ITEMS.columns)), ITEMS, checkpoint(AT))


def test_who_finds_another_s_beat_writes_and_says_nothing_more(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unfinished, "BEATS", 3600.0)  # both threads sleep
    old, new = Unfinished(lake, "1"), Unfinished(lake, "1")
    progress = Progress(shape=ITEMS, made="", p0=checkpoint(AT))
    with old.beating() as asleep:
        old.note(progress)
        with new.beating() as awake:
            for write in (partial(old.note, progress), partial(old.forget, "shop", "items")):
                with pytest.raises(
                    LakeError, match=r"took it for dead.*_staging/1.*Run this again only where none does"
                ):
                    write()
            monkeypatch.setattr(unfinished, "BEATS", 0.01)
            asleep._beats()  # comes to its end by itself
            new.note(progress)
    assert lake.read(awake.file) == {"at": 0.0, "by": awake.by}, "the end of the other one is no end of this"


def test_a_beat_that_a_store_hides_for_a_moment_ends_nothing(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AGAIN", "BEATS"):
        monkeypatch.setattr(unfinished, name, 0.02)
    files, one = lake._files, Unfinished(lake, "1")
    with one.beating() as beating:
        for times in (1, 2, 4):  # each read looks twice
            lake._files = Hides(files, beating.file, times)
            one.note(Progress(shape=ITEMS, made="", p0=checkpoint(AT)))
        lake._files, now = Hides(files, beating.file, 4), time.time()
        while (lake.read(beating.file) or {"at": 0.0})["at"] < now:  # it beats on
            assert time.time() < now + 10


def test_who_writes_a_folder_is_not_known_by_a_clock(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was set forward behind the beat of the one, and back behind that of the other, who is dead."""
    monkeypatch.setattr(unfinished, "BEATS", 0.2)
    monkeypatch.setattr(unfinished, "SILENT", 1.5)
    folders = alive, dead = [lake.at("_parts", name) for name in ("p1", "p2")]
    with Beating(lake, alive):
        monkeypatch.setattr("spark.merging.parts.ABANDONED", -3600.0)  # each beat is an older one
        sweep(lake)
        with pytest.raises(LakeError, match=r"are being read \(\S+_parts/p1\)"):
            refuse_reading(lake, ITEMS)
    monkeypatch.setattr("spark.merging.parts.ABANDONED", 60.0)
    lake.write(f"{dead}/beat.json", {"at": time.time() + 7200, "by": "test"})
    refuse_reading(lake, ITEMS)
    sweep(lake)
    assert [folder for folder in folders if lake.exists(folder)] == [dead], "of no harm until its time has come"
    with Beating(lake, alive):
        sweep(lake, at_once=True)
        assert [folder for folder in folders if lake.exists(folder)] == [alive], "but for an erasure"


def test_a_part_whose_folder_was_swept_is_not_staged(spark: SparkSession, lake: Lake) -> None:
    """Its first rows are gone: those that are read since would be taken for all."""
    made = part(spark, lake, "p1", AT, item(1))
    folder = made.folder(lake)
    with Beating(lake, folder) as beating:
        lake.delete(folder)
        spark.createDataFrame([("", "")], "key string, after string").write.parquet(f"{folder}/rows")
        with pytest.raises(LakeError, match=r"was taken for dead.*_parts/p1 was removed.*run the repair again"):
            put(lake, made)
        with pytest.raises(LakeError, match="took it for dead"):
            beating.prove()
    assert list(parts(lake)) == []
    assert not lake.exists(beating.file)
