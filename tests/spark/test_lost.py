"""What Kafka had no more when the lake came to read it: which partitions lack something, and which tables."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from pyspark.sql import SparkSession

from contract.lost_changes import until
from contract.pipeline import Pipeline
from spark.errors import LakeError
from spark.evolution.evolution import Evolution
from spark.failpoints import hooked
from spark.kafka import reading as kafka_reading
from spark.kafka.broker import Broker
from spark.kafka.offsets import Ends
from spark.kafka.topic_places import End, Look, TopicPlace, TopicPlaces, first_known, seen, seen_for
from spark.lake.applied import Applied, AppliedSnapshots
from spark.lake.lake import Lake
from spark.lake.lost import FirstLook, Loss, Losses, ReadTopics
from spark.lake.manifests import MANIFEST, Manifest
from spark.landing import ddl_topic
from spark.landing.changes import Landing
from spark.tables.schema import Schemas
from tests.spark.changes_by_hand import ITEMS
from tests.spark.lake_by_hand import checkpoint
from tests.spark.sessions import pipeline_in

TOPIC, DDL = "shop.shop.items", "shop.ddl"
FIRST = [0, 1, 80, 0, 0]  # of the records that are still there
NOW = [0, 1, 90, -1, -1]


class Files:
    """The lake's small files."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline, self.kept = pipeline, dict[str, Any]()
        self.read, self.write = self.kept.get, self.kept.__setitem__
        self.at = lambda *parts: "/".join(parts)

    def text(self, path: str) -> None:
        return None


class Topics:
    """A broker. `there`: partition -> where it begins and ends; of a `topic` with an `id`."""

    def __init__(self, there: dict[int, tuple[int, int]], id: str | None = "a", topic: str = TOPIC) -> None:
        self.there, self.id, self.topic = there, id, topic

    def bounds(self, topic: str) -> dict[int, tuple[int, int]]:
        return self.there

    def topic_ids(self, topics: Any) -> dict[str, str]:
        return {topic: self.id for topic in topics if self.id}

    def begins(self, partitions: Any) -> Ends:
        return {at: self.there[at[1]][0] for at in partitions}

    def ends(self) -> Ends:
        return {(self.topic, number): end for number, (_, end) in self.there.items()}

    def first(self, topic: str, number: int, begin: int) -> list[int] | None:
        return FIRST if begin < self.there[number][1] else None

    def checkpoint(self) -> Any:
        return checkpoint(90)


@pytest.fixture
def lake(tmp_path: Path) -> Any:
    return Files(pipeline_in(tmp_path))


def look(lake: Any, topics: Topics, snapshots: TopicPlaces | None = None) -> Ends:
    broker: Any = topics
    return FirstLook(lake, broker, checkpoint(90), topics.topic_ids([TOPIC]), topics.ends()).begin(snapshots or {})


def place(id: str | None = "a", end: End | None = None, **at: int) -> TopicPlace:
    """`end`: of the first partition."""
    ends = {0: end} if end else {}
    return TopicPlace(id=id, at={int(number.strip("_")): offset for number, offset in at.items()}, ends=ends)


@pytest.mark.parametrize(
    ("there", "read", "snapshot", "until"),
    [
        ({0: (0, 9)}, None, None, None),
        ({0: (5, 9)}, None, None, FIRST),
        ({0: (9, 9)}, None, None, NOW),
        ({0: (0, 0)}, None, None, None),
        ({0: (5, 9)}, place(_0=5), None, None),
        ({0: (5, 9)}, place(_0=4), None, FIRST),
        ({0: (9, 9)}, place(_0=9), None, None),
        ({0: (0, 9)}, place("b", _0=4), None, FIRST),
        ({0: (0, 0)}, place("b", _0=4), None, NOW),
        ({0: (0, 9)}, place(None, _0=4), None, None),
        ({0: (0, 3)}, place(None, _0=4), None, FIRST),
        ({0: (0, 9), 1: (0, 2)}, place(_0=4), None, None),
        ({}, place(_0=4), None, NOW),
        ({0: (5, 9)}, None, place(_0=5), None),
        ({0: (5, 9)}, None, place(_0=0), FIRST),
        ({0: (0, 9)}, None, place("b", _0=0), FIRST),
        ({0: (5, 9)}, place(_0=7), place(_0=0), None),
    ],
    ids=[
        "a new topic", "its first records are gone", "all are", "nothing was ever sent", "all was read that is gone",
        "not all was", "all was read, all is gone", "made again", "made again and empty", "no ids", "no ids, and cut",
        "a new partition", "the topic is gone", "a snapshot looked since", "and before", "made again since",
        "the lake read on since",
    ],
)  # fmt: skip
def test_what_is_lost_before_the_first_read(
    lake: Any, there: dict[int, tuple[int, int]], read: Any, snapshot: Any, until: list[int] | None
) -> None:
    if read:
        ReadTopics(lake).keep({TOPIC: read})
    begins = look(lake, Topics(there), {TOPIC: snapshot} if snapshot else {})
    assert begins == {(TOPIC, number): begin for number, (begin, _) in there.items()}
    known = [loss.until for loss in Losses(lake).known.values()]
    assert known == ([until] if until else [])
    look(lake, Topics(there))  # nothing was read meanwhile, and nothing more is lost
    assert [loss.until for loss in Losses(lake).known.values()] == known


EDITED = "tables.{db}.{table}"


def edited(pipeline: Pipeline, **more: Any) -> Pipeline:
    return pipeline.model_copy(update={"kafka": pipeline.kafka.model_copy(update={"topic": EDITED, **more})})


def test_a_topic_that_no_template_gives_any_more_may_have_held_any_tables_changes(tmp_path: Path) -> None:
    """A snapshot saw it; the query, which has read nothing, is not given it."""
    lake: Any = Files(edited(pipeline_in(tmp_path)))
    saw = {TOPIC: place(_0=0), "shop.hidden.t": place(_0=0), DDL: place(_0=0)}
    look(lake, Topics({0: (0, 1)}, topic="tables.shop.items"), saw)
    assert [(loss.topic, loss.everywhere) for loss in Losses(lake).known.values()] == [
        ("shop.hidden.t", True), (TOPIC, True),
    ]  # fmt: skip
    assert AppliedSnapshots(lake).loss(("shop", "items"))


def test_what_is_lost_of_a_topic_of_before_an_edit_is_lost_to_its_table(tmp_path: Path) -> None:
    lake: Any = Files(edited(pipeline_in(tmp_path), earlier_topics=("{pipeline}.{db}.{table}",)))
    look(lake, Topics({0: (0, 1)}, topic="tables.shop.items"), {TOPIC: place(_0=0), "shop.hidden.t": place(_0=0)})
    assert [(loss.topic, loss.everywhere) for loss in Losses(lake).known.values()] == [(TOPIC, False)]
    assert AppliedSnapshots(lake).loss(("shop", "items"))
    assert AppliedSnapshots(lake).loss(("shop", "lines")) is None
    assert until(json.dumps(lake.read("_lost.json")), lake.pipeline, "shop", "items") == (0, 1, 90)
    assert until(json.dumps(lake.read("_lost.json")), lake.pipeline, "shop", "lines") is None


def test_before_the_first_read_what_a_snapshot_saw_is_read_by_whatever_template(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Lake(spark, edited(pipeline_in(tmp_path)))
    landing = Landing(spark, lake.pipeline, lake)
    monkeypatch.setattr(landing, "seen", lambda: {TOPIC: place(_0=0), "tables.shop.items": place(_0=0), DDL: place()})
    assert landing.topics() == {TOPIC}
    monkeypatch.setattr(landing, "read", lambda: {("tables.shop.items", 0): 1})
    assert landing.topics() == {"tables.shop.items"}


@pytest.mark.parametrize("point", ["loss noted", "read topics kept"])
def test_a_loss_outlives_a_run_that_is_killed_before_it_lands(lake: Any, point: str) -> None:
    class KilledError(Exception):
        pass

    def kill(reached: str) -> None:
        if reached == point:
            raise KilledError

    with hooked(kill), pytest.raises(KilledError):
        look(lake, Topics({0: (5, 9)}))
    look(lake, Topics({0: (5, 9)}))
    assert Losses(lake).of(TOPIC, None, {}) is not None


def test_more_that_goes_before_the_first_read_is_lost_too(lake: Any) -> None:
    look(lake, Topics({0: (5, 9)}))
    look(lake, Topics({0: (9, 9)}))
    [loss] = Losses(lake).known.values()
    assert (loss.begin, loss.until) == (9, NOW)


@pytest.mark.parametrize(
    ("loss", "floor", "seen", "spared"),
    [
        ({"begin": 5}, [0, 1, 79, -1, -1], None, False),
        ({"begin": 5}, [0, 1, 81, -1, -1], None, True),
        ({"begin": 5}, FIRST, None, True),
        ({"begin": 5}, None, None, False),
        ({"begin": 5}, [0, 1, 70, -1, -1], place(_0=5), True),
        ({"begin": 5}, [0, 1, 70, -1, -1], place(_0=4), False),
        ({"begin": 5}, [0, 1, 70, -1, -1], place("b", _0=9), False),
        ({"begin": 5}, [0, 1, 70, -1, -1], place(_1=9), False),
        ({"id": None}, [0, 1, 70, -1, -1], place("b", _0=9), False),
        ({"id": None}, [0, 1, 70, -1, -1], TopicPlace(), True),
        ({"begin": 5, "until": NOW}, [0, 1, 70, -1, -1], place(_0=0, end=End(5, [0, 1, 60, 0, 3])), True),
        ({"begin": 5, "until": NOW}, [0, 1, 70, -1, -1], place(_0=0, end=End(4, [0, 1, 60, 0, 3])), False),
        ({"begin": 5, "until": NOW}, [0, 1, 70, -1, -1], place(_0=0, end=End(9, [0, 1, 70, 0, 0])), False),
        ({"begin": 5, "until": NOW}, [0, 1, 70, -1, -1], place("b", _0=0, end=End(9, [0, 1, 60, 0, 3])), False),
        ({"begin": 5, "until": NOW, "id": None}, [0, 1, 70, -1, -1], place(None, _0=0, end=End(9, FIRST)), False),
        ({"begin": 5, "until": NOW, "partition": 1}, [0, 1, 70, -1, -1], place(_0=0, end=End(9, [0] * 5)), False),
    ],
    ids=[
        "a snapshot before it", "behind it", "just behind it", "none", "one that looked later", "and earlier",
        "at another topic of the name", "that had other partitions", "before the topic went", "and after that",
        "all that is gone was there, and read", "more came, and went", "a change was there before its commit had ended",
        "that topic was another", "or nobody knows", "that partition is new",
    ],
)  # fmt: skip
def test_which_snapshot_has_what_was_lost(
    lake: Any, loss: dict[str, Any], floor: list[int] | None, seen: TopicPlace | None, spared: bool
) -> None:
    Losses(lake).note([Loss.model_validate({"topic": TOPIC, "partition": 0, "id": "a", "until": FIRST, **loss})])
    snapshots = AppliedSnapshots(lake)
    if floor:
        facts: Any = {"p0": "", "p1": "", "rows": 1, "applied_at": 1, "seen": {TOPIC: seen} if seen else {}}
        snapshots.note(("shop", "items"), Applied(id="1", floor=floor, **facts))
    found = AppliedSnapshots(lake)
    assert (found.loss(("shop", "items")) is None) == spared
    assert found.gap(("shop", "items")) == (not spared and floor is not None)
    assert found.loss(("shop", "lines")) is None


def test_a_table_that_was_made_behind_a_loss_of_all_tables_lacks_nothing(lake: Any) -> None:
    Losses(lake).note([Loss(topic=DDL, partition=0, id="a", begin=5, until=NOW, everywhere=True)])
    snapshots = AppliedSnapshots(lake)
    assert snapshots.loss(("shop", "items"), [0, 1, 50, 0, 0])
    assert snapshots.loss(("shop", "items"), [0, 1, 95, 0, 0]) is None


def test_what_a_snapshot_saw_of_a_table(tmp_path: Path) -> None:
    items, lines, pipeline = place(_0=3), place(_0=4), pipeline_in(tmp_path)
    known = {TOPIC: items, "shop.shop.lines": lines}
    assert seen_for(pipeline, known, "shop", "items") == {TOPIC: items, DDL: TopicPlace()}
    assert seen_for(pipeline, {}, "shop", "items") == {}  # an earlier version did not look


LINES = "shop.shop.lines"


@pytest.mark.parametrize(
    ("looks", "found"),
    [
        ([((TOPIC,), place(_0=3)), ((TOPIC,), place(_0=4))], place(_0=3)),
        ([((LINES,), place(_0=3)), ((TOPIC,), place(_0=4))], place(_0=4)),
        ([((LINES,), place(_0=3)), ((LINES,), place(_0=4))], place(_0=3)),
        ([((TOPIC,), None), ((LINES,), place(_0=4, _1=5))], place(_0=0, _1=0)),
        ([((TOPIC,), None), ((TOPIC,), place(_0=4))], place(_0=0)),
        ([((LINES,), None), ((LINES,), place(_0=4))], place(_0=0)),
        ([((LINES,), None), ((TOPIC,), place(_0=4))], place(_0=4)),
        ([((TOPIC,), {}), ((LINES,), place(_0=4))], TopicPlace()),
    ],
    ids=[
        "the oldest", "of those of the table", "a topic of no table, such as a transform's", "one of before looks",
        "and a newer one of the table", "any table's changes may be there", "one of before, of another table",
        "the topic was not there yet",
    ],
)  # fmt: skip
def test_no_other_tables_snapshot_stands_in_for_one_that_did_not_look(looks: list[Any], found: TopicPlace) -> None:
    """`{}`: one that looked, and found the topic nowhere."""
    elsewhere = {DDL: TopicPlace()}
    seen = [{} if it is None else {**elsewhere, **({TOPIC: it} if it else {})} for _, it in looks]
    known = first_known([Look(own, seen) for (own, _), seen in zip(looks, seen, strict=True)])
    assert known.get(TOPIC) == found


def test_a_table_of_an_older_lake_is_told_to_lack_what_went_before_another_tables_snapshot(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake = Lake(spark, pipeline_in(tmp_path))
    facts: Any = {"p0": "", "p1": "", "rows": 1, "applied_at": 1, "floor": [0, 1, 50, -1, -1]}
    AppliedSnapshots(lake).note(("shop", "items"), Applied(id="1", **facts))
    other = ITEMS.model_copy(update={"table": "lines"})
    staged: dict[str, Any] = {"p0": checkpoint(85), "p1": "", "tables": [other], "counts": {"shop.lines": 1}}
    manifest = Manifest(id="2", pipeline="shop", seen={TOPIC: place(_0=5)}, **staged)
    lake.write(f"{manifest.folder(lake)}/{MANIFEST}", manifest.model_dump(mode="json"))
    look(lake, Topics({0: (5, 9)}), Landing(spark, lake.pipeline, lake).seen())
    assert AppliedSnapshots(lake).loss(("shop", "items"))


def test_an_empty_topic_that_was_deleted_is_told_as_such_where_there_is_more_to_read(
    lake: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark would say that its records are lost."""
    asked, lake.checkpoint = list[list[str]](), lambda name: name
    monkeypatch.setattr(Landing, "read", lambda self: {(LINES, 0): 0, (LINES, 1): 0, (TOPIC, 0): 3})
    monkeypatch.setattr(Landing, "_query", lambda self, topics, begins: asked.append(topics))
    landing = Landing(None, lake.pipeline, lake)  # type: ignore[arg-type]
    landing.run({(TOPIC, 0): 3}, {TOPIC: "a"})
    told = rf"the topic {LINES} is gone.*nothing that it has is lost.*--topic {LINES} --partitions 2. Then run this"
    with pytest.raises(LakeError, match=told):
        landing.run({(TOPIC, 0): 5}, {TOPIC: "a"})
    assert asked == []
    with pytest.raises(LakeError, match="did not read"):  # made again
        landing.run({(TOPIC, 0): 5, (LINES, 0): 0, (LINES, 1): 0}, {TOPIC: "a", LINES: "b"})
    assert asked[0] == [TOPIC, LINES]


class Records:
    """A consumer of one partition that begins at the offset `low` and has these values from there on."""

    def __init__(self, low: int, values: list[bytes | None]) -> None:
        self.low, self.values, self.at = low, values, 0

    def get_watermark_offsets(self, at: TopicPartition, seconds: float) -> tuple[int, int]:
        return self.low, self.low + len(self.values)

    def assign(self, at: list[TopicPartition]) -> None:
        self.at = at[0].offset

    def poll(self, seconds: float) -> Any:
        at, self.at = self.at, self.at + 1
        value = self.values[at - self.low]
        return SimpleNamespace(error=lambda: None, key=lambda: None, value=lambda: value, offset=lambda: at)

    def close(self) -> None:
        return None


def sent(pos: int, name: str = "shop") -> bytes:
    return json.dumps({"source": {"name": name, "seq": [0, 1, pos, 0, 0]}}).encode()


@pytest.mark.parametrize(
    ("low", "values", "end"),
    [
        (3, [sent(70), sent(80)], End(5, FIRST)),
        (0, [sent(80), None, sent(90, "crm")], End(3, FIRST)),
        (0, [sent(70), sent(80), sent(60), sent(70)], End(4, FIRST)),
        (0, [sent(80), *[None] * 200], End(201, FIRST)),
        (0, [sent(80), *[None] * 300], None),
        (7, [], None),
    ],
    ids=["its last", "that is a change", "a replay", "far behind", "too far", "empty"],
)
def test_what_a_snapshots_look_finds_at_a_topics_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, low: int, values: list[bytes | None], end: End | None
) -> None:
    monkeypatch.setattr(kafka_reading, "Consumer", lambda *_, **__: Records(low, values))
    broker = Broker(pipeline_in(tmp_path))
    monkeypatch.setattr(broker, "topics", lambda read: {TOPIC: [0], LINES: [0]})
    monkeypatch.setattr(broker, "topic_ids", lambda topics: dict.fromkeys(topics, "a"))
    monkeypatch.setattr(broker, "begins", lambda partitions: dict.fromkeys(partitions, low))
    found = seen(broker.pipeline, broker, [("shop", "items")])
    assert found == {TOPIC: place(_0=low, end=end), LINES: place(_0=low)}
    assert TopicPlace.model_validate(found[TOPIC].model_dump(mode="json")) == found[TOPIC]


@pytest.mark.parametrize(
    ("read", "id", "there", "lost"),
    [
        ({}, None, {0: (0, 3)}, False),
        ({0: 2}, "a", {0: (0, 3)}, False),
        ({0: 2}, None, {0: (0, 3)}, False),
        ({0: 2}, "b", {0: (0, 3)}, True),
        ({0: 2}, "a", {}, True),
        ({0: 2}, "a", {0: (3, 3)}, True),
        ({0: 2}, None, {0: (0, 1)}, True),
        ({}, None, {0: (2, 3)}, True),
        ({}, None, {}, False),
    ],
    ids=[
        "a new lake", "as it was", "a lake of before ids were kept", "made again", "gone", "cut below", "cut above",
        "a new lake that comes late", "no such topic yet",
    ],
)  # fmt: skip
def test_statements_that_are_lost(
    lake: Any, read: dict[int, int], id: str | None, there: dict[int, tuple[int, int]], lost: bool
) -> None:
    evolution = Evolution(None, lake, Schemas([]))  # type: ignore[arg-type]
    evolution.state = evolution.state.model_copy(update={"read": read, "topic": id})
    broker: Any = Topics(there, topic=DDL)
    ddl_topic.prove(lake, broker, evolution, dict)
    assert evolution.topic == ("a" if there else None)
    assert evolution.read == ({} if lost else read)
    assert (AppliedSnapshots(lake).loss(("shop", "items")) is not None) == lost
    known = Losses(lake).known
    ddl_topic.prove(lake, broker, evolution, dict)  # by a run that was killed behind it
    assert Losses(lake).known == known


def test_a_topic_of_statements_that_stays_away_is_one_loss(lake: Any) -> None:
    """What snapshots saw counts for a lake that has read none: else each run would take back those made since."""
    evolution = Evolution(None, lake, Schemas([]))  # type: ignore[arg-type]
    evolution.state = evolution.state.model_copy(update={"read": {0: 2}, "topic": "a"})
    evolution.new = False
    ddl_topic.prove(lake, Topics({}, topic=DDL), evolution, dict)  # type: ignore[arg-type]
    known = Losses(lake).known
    assert known
    for there, id in (({}, None), ({0: (0, 1)}, "b")):
        later: Any = Topics(there, id, topic=DDL)
        later.checkpoint = lambda: checkpoint(200)
        ddl_topic.prove(lake, later, evolution, lambda: {DDL: TopicPlace(id="a", at={0: 2})})
        assert Losses(lake).known == known


def test_without_ids_a_snapshot_of_before_may_have_seen_another_topic() -> None:
    loss = Loss(topic=TOPIC, partition=0, id=None, begin=0, until=NOW)
    assert not loss.spares([0, 1, 50, 0, 0], TopicPlace(id=None, at={0: 0}))
    assert loss.spares(NOW, None)


@pytest.mark.parametrize(
    ("shapes", "lacks"),
    [
        ([ITEMS, ITEMS.model_copy(update={"version": 2, "since": (0, 1, 50, 0, 0)})], False),
        ([ITEMS], True),
        ([], True),
        ([ITEMS, ITEMS.model_copy(update={"version": 2, "since": (0, 1, 60, 0, 0)})], True),
    ],
    ids=["as it was", "a version is gone", "all are gone", "another shape of that number"],
)
def test_a_schema_topic_that_lacks_what_was_followed_stops_the_run(lake: Any, shapes: Any, lacks: bool) -> None:
    shapes = [type(ITEMS).model_validate(shape.model_dump()) for shape in shapes]
    evolution = Evolution(None, lake, Schemas(shapes))  # type: ignore[arg-type]
    known = {"versions": {"shop.items": 2}, "since": {"shop.items": (0, 1, 50)}}
    evolution.state = evolution.state.model_copy(update=known)
    if not lacks:
        evolution.refuse_lost_shapes()
        return
    with pytest.raises(LakeError, match=r"shop\.schemas lacks version 2 of shop\.items.*Bring its records back"):
        evolution.refuse_lost_shapes()


@pytest.mark.parametrize(
    ("value", "seq"),
    [
        (b'{"source": {"name": "shop", "seq": [0, 1, 80, 0, 0]}, "op": "t"}', FIRST),
        (b'{"source": {"name": "crm", "seq": [0, 1, 80, 0, 0]}}', None),
        (None, None),
        (b"no change \xfe", None),
        (b"[1]", None),
        (b'{"source": {"name": "shop", "seq": [0, null]}}', None),
        (b'{"source": null}', None),
    ],
)
def test_the_first_change_of_this_pipeline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: bytes | None, seq: list[int] | None
) -> None:
    assert Broker(pipeline_in(tmp_path))._sequence(value) == seq
