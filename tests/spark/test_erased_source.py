"""What is read of an idle source behind an erasure has the erasure's own place, and is the source's all the same."""

from __future__ import annotations

import re
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pymysql
import pytest
from pyspark.sql import SparkSession

from contract import masks
from contract.erased_key import keys_of
from contract.masks import Mask
from contract.pipeline import Pipeline
from contract.schema import Column, TableSchema
from spark.erasing import source
from spark.erasing.staging import refuse_reading
from spark.errors import LakeError
from spark.failures import message_of
from spark.lake.applied import AppliedSnapshots
from spark.lake.erasures import Begun, Erased, Erasures
from spark.lake.lake import Lake
from spark.lake.unfinished import Plan, Progress, Unfinished
from tests.spark.changes_by_hand import ITEMS
from tests.spark.lake_by_hand import AT, NAME, checkpoint, ids, item, part, stage
from tests.spark.test_foreign import Compact

LAST = 1000  # of the source, and of the lake


def erase(lake: Lake, id: int, end: bool = True) -> None:
    """Notes it; of its row nothing else is anywhere."""
    erasures, until = Erasures(lake), checkpoint(LAST)
    hash = erasures.hash_of("shop.items", f'{{"id":{id}}}')
    gone = Erased(tbl="shop.items", hash=hash, until=until.place, gtid_set=until.gtid_set)
    begun = erasures.begin(Begun(id="x", tbl="shop.items", hashes=[hash]), [gone])
    if end:
        erasures.end(begun)


def test_a_repair_of_another_row_is_taken(spark: SparkSession, lake: Lake, compact: Compact) -> None:
    stage(spark, lake, "1", AT, item(1), item(2))
    compact()
    erase(lake, 1)
    part(spark, lake, "p1", LAST, item(2, "right"), keys=[{"id": 2}])
    assert compact()["parts"]["p1"]["refused"] is None
    assert (2, "right") in ids(spark, lake)


def test_one_that_was_read_before_it_is_not(spark: SparkSession, lake: Lake, compact: Compact) -> None:
    stage(spark, lake, "1", AT, item(1), item(2))
    compact()
    part(spark, lake, "p1", LAST, item(1, "erased"), keys=[{"id": 1}])
    erase(lake, 1)
    assert "were erased since these were read" in compact()["parts"]["p1"]["refused"]


@pytest.mark.parametrize("before", [False, True], ids=["read behind it", "read before it"])
def test_a_row_that_the_source_still_has_comes_back_by_a_snapshot_behind_it_alone(
    spark: SparkSession, lake: Lake, compact: Compact, before: bool
) -> None:
    stage(spark, lake, "1", AT, item(1), item(2))
    compact()
    if before:
        stage(spark, lake, "2", LAST, item(1), item(2))
        erase(lake, 1)
    else:
        erase(lake, 1)
        stage(spark, lake, "2", LAST, item(1), item(2))
    compact()
    assert ids(spark, lake) == ([(2, "a")] if before else [(1, "a"), (2, "a")])


def test_the_table_says_how_many_there_were_before_it(spark: SparkSession, lake: Lake, compact: Compact) -> None:
    """A backfill from changes takes the snapshot's rows by it."""
    erase(lake, 1)
    stage(spark, lake, "1", LAST, item(1))
    compact()
    assert AppliedSnapshots(lake).tables[NAME].erasures == 1


def test_a_table_that_is_being_read_refuses_it_also_before_its_first_part_is_noted(
    lake: Lake, pipeline: Pipeline
) -> None:
    one = Unfinished(lake, "20260101T000000000Z")
    with one.beating():
        one.begin(Plan(tables=["shop.items", "shop.others"], began=0, landing=None))
        refuse_reading(lake, ITEMS)  # another table's turn comes first, and this one's rows are all to be read
        one.note(Progress(shape=ITEMS, made="1", p0=checkpoint(LAST)))
        with pytest.raises(LakeError, match=r"a snapshot of shop\.items is being read"):
            refuse_reading(lake, ITEMS)


def test_nor_is_anything_left_of_what_a_snapshot_read_and_reads_anew(lake: Lake, pipeline: Pipeline) -> None:
    one = Unfinished(lake, "20260101T000000000Z")
    one.begin(Plan(tables=["shop.items"], began=0, landing=None))
    one.note(Progress(shape=ITEMS, made="1", p0=checkpoint(LAST)))
    rows = Path(one.folder, "shop", "items")
    rows.mkdir(parents=True)
    one.forget("shop", "items")
    assert not rows.exists()
    assert not one.has("shop", "items")
    rows.mkdir()
    assert one.has("shop", "items"), "as behind a kill between the two"
    with one.beating(), pytest.raises(LakeError, match=r"a snapshot of shop\.items is being read"):
        refuse_reading(lake, ITEMS)


MASKED = ITEMS.model_copy(
    update={"version": 2, "columns": (masks.shown(ITEMS.columns[0], Mask("hash")), *ITEMS.columns[1:])}
)


class Server:
    """Has the table so; None: it has none."""

    def __init__(self, shape: TableSchema | None) -> None:
        self.schema = lambda db, table: shape

    def rounded(self, *_: Any) -> frozenset[str]:
        return frozenset()


def columns(pipeline: Pipeline, schema: TableSchema, *shapes: TableSchema, unasked: bool = False) -> TableSchema | None:
    return source.columns_of(pipeline, Broker(), schema, shapes, unasked)  # type: ignore[arg-type]


class Broker:
    def checkpoint(self) -> Any:
        return checkpoint(LAST)


def test_values_behind_a_mask_are_spelled_as_the_source_has_its_columns(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = ITEMS.model_copy(update={"version": 0})
    monkeypatch.setattr(source, "streamed", lambda *_: nullcontext(Server(now)))
    assert columns(pipeline, MASKED, ITEMS, MASKED) is now
    assert columns(pipeline, ITEMS, MASKED, ITEMS) is None, "its own columns tell it"
    monkeypatch.setattr(source, "streamed", lambda *_: nullcontext(Server(None)))
    assert columns(pipeline, MASKED, ITEMS, MASKED) == ITEMS, "as they were before the mask"
    assert capsys.readouterr().out == ""
    assert columns(pipeline, MASKED, MASKED) is None
    assert "shop.items: nobody knows the types behind the masks of its key" in capsys.readouterr().out


def test_a_source_that_is_away_is_asked_for_them_all_the_same_unless_it_need_not_be(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: Any) -> Any:
        raise pymysql.OperationalError(2003, "away")

    monkeypatch.setattr(source, "streamed", away)
    with pytest.raises(pymysql.OperationalError):
        columns(pipeline, MASKED, ITEMS, MASKED)
    assert columns(pipeline, MASKED, ITEMS, MASKED, unasked=True) == ITEMS


class Row(Server):
    """Has a table of people, whose server takes capitals for small letters."""

    def __init__(self, pipeline: Pipeline, *spelled: str) -> None:
        super().__init__(PEOPLE)
        self.pipeline, self.spelled = pipeline, spelled

    def row(self, sql: str) -> None:
        raise AssertionError(f"these keys need no other character set: {sql}")

    def rows(self, sql: str, *key: str) -> list[tuple[bytes]]:
        return [(f'{{"email":"{one}"}}'.encode(),) for one in self.spelled if one.lower() == key[0].lower()]


PEOPLE = TableSchema(
    db="shop", table="people", version=1, columns=(Column(name="email", type="varchar", length=40),), key=("email",)
)


def test_a_key_that_the_source_spells_otherwise_is_told_by_its_number_alone(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An error goes to alerts and to their webhook, where no erasure looks for it."""
    server = Row(pipeline, "ada@x.org", "eve@x.org")
    monkeypatch.setattr(source, "streamed", lambda *_: nullcontext(server))
    monkeypatch.setattr(source, "Places", lambda *_, **__: None)
    keys = keys_of('["bob@x.org", "Ada@x.org", "eve@x.org", "EVE@x.org"]', PEOPLE)
    with pytest.raises(
        LakeError, match=r"shop\.people: the source has the row of key 2, 4 otherwise spelled"
    ) as caught:
        source.place_without(pipeline, Broker(), "shop", "people", keys)  # type: ignore[arg-type]
    assert "x.org" not in str(caught.value)
    logged = capsys.readouterr().out.splitlines()
    assert logged == [
        'shop.people: key 2: {"email":"Ada@x.org"} is {"email":"ada@x.org"} in the source',
        'shop.people: key 4: {"email":"EVE@x.org"} is {"email":"eve@x.org"} in the source',
    ]


def test_a_key_that_is_another_in_the_source_by_now_is_told(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No row was changed behind the ALTER TABLE, so the schema topic has the one of before."""
    monkeypatch.setattr(source, "streamed", lambda *_: nullcontext(Row(pipeline)))
    monkeypatch.setattr(source, "Places", lambda *_, **__: None)
    before = PEOPLE.model_copy(update={"columns": (Column(name="id", type="int"),), "key": ("id",)})
    with pytest.raises(
        LakeError, match=r"the source's key is \(email\) by now, and the lake's is \(id\).*snapshot DAG"
    ):
        source.place_without(pipeline, Broker(), "shop", "people", keys_of("[7]", before))  # type: ignore[arg-type]


def test_other_letters_of_the_same_key_need_a_changed_row_and_no_snapshot(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "streamed", lambda *_: nullcontext(Row(pipeline)))
    monkeypatch.setattr(source, "Places", lambda *_, **__: None)
    upper = [column.model_copy(update={"name": column.name.upper()}) for column in PEOPLE.columns]
    before = PEOPLE.model_copy(update={"columns": tuple(upper), "key": ("EMAIL",)})
    with pytest.raises(LakeError, match=r"source's key is \(email\) by now, and the lake's is \(EMAIL\)") as caught:
        source.place_without(pipeline, Broker(), "shop", "people", keys_of('["a@x"]', before))  # type: ignore[arg-type]
    assert "snapshot" not in str(caught.value)


class Latin(Row):
    """Writes its people in Latin-1, and fails where it is asked for what that has not."""

    def __init__(self, pipeline: Pipeline, *spelled: str) -> None:
        super().__init__(pipeline, *spelled)
        of = PEOPLE.columns[0].model_copy(update={"charset": "latin1"})
        self.schema = lambda db, table: PEOPLE.model_copy(update={"columns": (of,)})

    def row(self, sql: str) -> tuple[str, ...]:  # type: ignore[override]
        [text] = re.findall("x'([0-9a-f]*)' using latin1", sql)
        return (bytes.fromhex(text).decode().encode("latin1", "replace").decode("latin1").encode().hex().upper(),)

    def rows(self, sql: str, *key: str) -> list[tuple[bytes]]:
        key[0].encode("latin1")
        return super().rows(sql, *key)


def test_a_text_that_the_columns_character_set_has_not_is_that_of_no_row(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server fails where it is to compare such a one, and "?" is another row."""
    server = Latin(pipeline, "?", "jörg")
    monkeypatch.setattr(source, "streamed", lambda *_: nullcontext(server))
    monkeypatch.setattr(source, "Places", lambda *_, **__: SimpleNamespace(now=lambda: "here"))
    monkeypatch.setattr(server, "awake", lambda: None, raising=False)

    def place(keys: str) -> Any:
        return source.place_without(pipeline, Broker(), "shop", "people", keys_of(keys, PEOPLE))  # type: ignore[arg-type]

    assert place('["Łukasz", "bob"]') == "here"
    with pytest.raises(LakeError, match="still has 1 of 2 rows, of the keys as they were given that of number 2"):
        place('["Łukasz", "jörg"]')


class Failing(Row):
    def __init__(self, pipeline: Pipeline, error: pymysql.MySQLError) -> None:
        super().__init__(pipeline)
        self.error = error

    def rows(self, sql: str, *key: str) -> list[tuple[bytes]]:
        if key == ("bob",):
            return []
        raise self.error


def test_what_the_source_says_of_a_key_is_in_the_log_alone(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    server = Failing(pipeline, pymysql.OperationalError(1525, "Incorrect DATE value: 'ada'"))
    monkeypatch.setattr(source, "streamed", lambda *_: nullcontext(server))
    monkeypatch.setattr(source, "Places", lambda *_, **__: None)
    keys = keys_of('["bob", "ada"]', PEOPLE)
    with pytest.raises(LakeError, match=r"row of key 2, gives the error 1525 .*Nothing was erased$") as caught:
        source.place_without(pipeline, Broker(), "shop", "people", keys)  # type: ignore[arg-type]
    assert "ada" not in message_of(caught.value, pipeline)
    assert "the source says Incorrect DATE value: 'ada'" in capsys.readouterr().out
    server.error = pymysql.OperationalError(2013, "Lost connection to MySQL server during query")
    with pytest.raises(pymysql.OperationalError):  # that another run may do better
        source.place_without(pipeline, Broker(), "shop", "people", keys)  # type: ignore[arg-type]
