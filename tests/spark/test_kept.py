"""What a check takes up of one that did not end: no less than it is to compare, and nothing that holds no more."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from contract.pipeline import Pipeline
from contract.pipeline_columns import Columns
from contract.schema import Column, TableSchema
from spark.lake.erasures import Begun, Erased, Erasures
from spark.proof import reading
from spark.proof.answer import Answer
from spark.proof.boundary import Read
from spark.proof.checksum import Total
from spark.proof.differences import CHUNK, Difference
from spark.proof.erased import lost
from spark.proof.kept import Kept, keeping, leave
from spark.proof.splits import Ranges
from tests.checkpoints import SOURCE, checkpoint

ID = Column(name="id", type="int", nullable=False)
SHOWN = Columns().show(TableSchema(db="shop", table="t", columns=(ID,), key=("id",)))
SPLIT = Ranges((ID,), [(str(n * 100),) for n in range(1, 100)])
LOW = checkpoint(pipeline="shop")
ALL = set(range(100))


class Files:
    """The lake's files."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}

    def at(self, *parts: str) -> str:
        return "/".join(parts)

    def text(self, path: str) -> str | None:
        return self.texts.get(path)

    def read(self, path: str) -> Any:
        return json.loads(self.texts[path]) if path in self.texts else None

    def write(self, path: str, value: Any) -> None:
        self.texts[path] = json.dumps(value)

    def delete(self, path: str) -> None:
        self.texts.pop(path, None)


class Source(SimpleNamespace):
    """A table of 100 chunks, a row each. `made`, `position`: as the server has them now."""

    at, pos, row = "monday", 5, None

    def made(self, db: str, table: str) -> str:
        return self.at


class Chunks:
    chunk_rows = 100

    def __init__(self, spark: Any, pipeline: Pipeline, source: Any, *_: Any) -> None:
        self.source = source

    def bounded(self, name: str, boundaries: Iterator[Any]) -> Iterator[Any]:
        return boundaries

    def reads(self, shown: Any, split: Any, left: list[int]) -> Iterator[Read]:
        for number in left:
            yield Read({number: Total(1, 1)}, "", (0, 1, self.source.pos), at=float(self.source.pos))


Check = Callable[..., Answer]


@pytest.fixture
def lake() -> Any:
    return Files()


@pytest.fixture
def source() -> Any:
    return Source()


@pytest.fixture
def check(pipeline: Pipeline, lake: Any, source: Any, monkeypatch: pytest.MonkeyPatch) -> Check:
    """One check of `percent` of the chunks, that dies behind its reads unless it `ends`."""
    monkeypatch.setattr(reading, "split_of", lambda *_: SPLIT)
    monkeypatch.setattr(reading, "ChunkReads", Chunks)

    def run(percent: int = 100, ends: bool = False, found: Any = (), keeps: bool = True, altered: Any = None) -> Answer:
        rules = pipeline.quality.model_copy(update={"sample_percent": percent})
        kept = Kept.open(lake, LOW, keeps)
        if altered:
            kept.drop_before("shop.t", altered)
        spark: Any = None
        asked = pipeline.model_copy(update={"quality": rules})
        mine = reading.Reading(spark, asked, source, 0, kept, lambda line: None)
        mine.found = {("shop", "t"): found}
        answer = mine._read(SHOWN)
        kept.save()
        if ends:
            kept.forget(["shop.t"])
        return answer

    return run


def read(answer: Answer) -> set[Any]:
    return {number for one in answer.reads for number in one.totals}


def fresh(answer: Answer) -> set[Any]:
    """The chunks that this check read itself."""
    return {number for one in answer.reads[answer.resumed :] for number in one.totals}


def test_a_check_of_all_rows_behind_a_sample_that_died_reads_all(check: Check) -> None:
    sample = check(10)
    assert len(sample.chosen or ()) == 10
    whole = check(100)
    assert (whole.chosen, read(whole)) == (None, ALL)
    assert fresh(whole) == ALL - (sample.chosen or set()), "and takes up what the sample read"


def test_a_sample_goes_on_with_its_own_chunks_and_has_those_that_are_known(check: Check) -> None:
    first = check(10)
    assert check(10).chosen == first.chosen
    other = check(20)
    assert other.chosen is not None
    assert first.chosen is not None
    assert first.chosen < other.chosen == read(other)
    assert 20 <= len(other.chosen) <= 30
    assert len(fresh(other)) == len(other.chosen) - 10


def test_a_sample_looks_at_what_was_found_before(check: Check) -> None:
    where = SPLIT.source_where([7])
    seven = Difference("shop", "t", CHUNK, source_where=where, lake_where=where)
    for _ in range(2):
        told = check(1, found=[seven])
        assert told.chosen is not None
        assert 7 in told.chosen
        assert len(told.chosen) <= 2
        assert 7 in fresh(told), "what was read of it before may be older than the finding"
    gone = Difference("shop", "t", CHUNK, source_where="(`id` <= 7)", lake_where="(`id` <= 7)")
    cut_otherwise = check(1, found=[gone])
    assert (cut_otherwise.chosen, read(cut_otherwise)) == (None, ALL)


def test_nothing_is_taken_up_of_a_table_that_was_made_anew(check: Check, source: Any) -> None:
    check()
    source.at = "tuesday"
    assert fresh(check()) == ALL


def test_nothing_is_taken_up_where_nobody_wants_it(check: Check, lake: Any) -> None:
    check()
    leave(lake)
    assert fresh(check()) == ALL


def test_nothing_is_taken_up_that_was_read_before_a_statement(check: Check, source: Any) -> None:
    check()
    assert fresh(check(altered=(0, 1, 4))) == set(), "it was altered before"
    source.pos = 20
    again = check(altered=(0, 1, 9))
    assert fresh(again) == ALL
    assert not again.resumed_before((0, 1, 9)), "its own reads are no matter"
    source.pos = 30
    resumed = check()
    assert (resumed.resumed_before((0, 1, 25)), resumed.resumed_before((0, 1, 15))) == (True, False)
    assert {one.at for one in resumed.reads} == {20.0}, "the time of the read, not of the check"


def test_nothing_is_taken_up_that_was_read_before_rows_were_erased(check: Check, lake: Any, source: Any) -> None:
    source.pos = 20
    check()
    for seen, gtid_set, stays in ((19, 20, False), (20, 20, True), (25, 20, True), (25, 0, False)):
        kept = Kept.open(lake, LOW)
        for facts in kept.tables["shop.t"]["reads"]:
            facts[1] = f"{SOURCE}:1-{seen}"
        one = Erased(tbl="shop.t", hash="h", until=(0, 1, 20), gtid_set=f"{SOURCE}:1-{gtid_set}" if gtid_set else "")
        kept.drop_if("shop.t", partial(lost, ones=[one]))
        assert ("shop.t" in kept.tables) == stays
    for high, stays in ((19, False), (20, True)):
        assert lost(Read({}, "", (0, 1, high), exact=True), [one]) != stays, "of a server whose reads have a place"


def test_of_two_checks_at_once_one_keeps_its_reads(check: Check, tmp_path: Path, lake: Any) -> None:
    place: Any = SimpleNamespace(root=str(tmp_path), at=lambda name: f"{tmp_path}/{name}")
    with keeping(place) as first:
        with keeping(place) as second:
            assert (first, second) == (True, False)
        check(100)
        known = dict(lake.texts)
        other = check(10, ends=True, keeps=second)
        assert (other.resumed, len(other.chosen or ())) == (0, 10), "it takes up nothing"
        assert lake.texts == known, "and leaves what the other keeps as it is"
        assert fresh(check(100)) == set()
    with keeping(place) as later:
        assert later, "the one before it has ended"


@pytest.mark.parametrize("hours", [7, -7])
def test_what_is_old_is_read_anew_and_so_is_what_is_of_a_time_to_come(check: Check, lake: Any, hours: int) -> None:
    """A clock that was set back does not tell how long ago it was."""
    check()
    [path] = lake.texts
    lake.write(path, lake.read(path) | {"began": time.time() - hours * 3600})
    assert fresh(check()) == ALL
    assert fresh(check()) == set()


def test_what_an_earlier_version_kept_is_read_anew(check: Check, lake: Any) -> None:
    check()
    [path] = lake.texts
    facts = lake.read(path)
    del facts["format"]
    lake.write(path, facts)
    assert fresh(check()) == ALL


def test_a_check_of_one_table_leaves_what_was_read_of_the_others(check: Check, lake: Any) -> None:
    other = Columns().show(SHOWN.source.model_copy(update={"table": "other"}))
    began = Kept.open(lake, LOW)
    for shown in (SHOWN, other):
        began.begin(shown, SPLIT, "monday")
        began.add(shown, Read({0: Total(1, 1)}, "", (0, 1, 5)))
    began.save()
    assert fresh(check(ends=True)) == ALL - {0}
    left = Kept.open(lake, LOW)
    assert ({*left.tables}, left.began) == ({"shop.other"}, began.began), "nor is it any younger for that"
    assert len(left.reads(other)) == 1
    Kept.open(lake, LOW, keeps=False).forget(["shop.other"])
    assert {*Kept.open(lake, LOW).tables} == {"shop.other"}, "it is another check's"
    left.forget(["shop.other"])
    assert lake.texts == {}, "nothing is left to take up"


def test_what_was_read_before_an_erasure_is_not_written_down_behind_it(lake: Any) -> None:
    """The boundaries of its chunks are keys of rows, and the erasure has removed the file."""
    other = Columns().show(SHOWN.source.model_copy(update={"table": "other"}))
    kept = Kept.open(lake, LOW)
    for shown in (SHOWN, other):
        kept.begin(shown, SPLIT, "monday")
    kept.save()
    assert {*lake.read(kept.path)["tables"]} == {"shop.t", "shop.other"}
    erased = Erased(tbl="shop.t", hash="h", until=(0, 1, 900), gtid_set="")
    Erasures(lake).begin(Begun(id="x", tbl="shop.t", hashes=["h"]), [erased])
    kept.add(SHOWN, Read({0: Total(1, 1)}, "", (0, 1, 5)))
    kept.save()
    assert {*lake.read(kept.path)["tables"]} == {"shop.other"}
    assert len(kept.reads(SHOWN)) == 1, "the check itself goes on"
    lake.write(kept.path, lake.read(kept.path) | {"tables": {"shop.t": {}, "shop.other": {}}, "erasures": 0})
    assert {*Kept.open(lake, LOW).tables} == {"shop.other"}, "it was killed between the erasure and its next write"
    later = Kept.open(lake, LOW)
    later.begin(SHOWN, SPLIT, "monday")
    later.save()
    assert {*lake.read(kept.path)["tables"]} == {"shop.t", "shop.other"}
