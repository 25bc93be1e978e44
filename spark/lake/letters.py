"""Records of the event topics that are no change, put aside: the lake's table `_dead_letters`.

Where `compaction.unreadable` is `dead_letter`, such a record does not stop the lake, and is not passed by either: it is
kept as it came, with its place, once. What it said of its table nobody knows, so the tables of its topic count as
unequal until a snapshot is applied that began behind it.

In: a batch of step 1. Out: the table, in the same idempotent way as `_changes`, and one small file that numbers what
was found: the snapshot notes the number that it begins at, so that no clock decides which of the two was first.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import and_

from pydantic import BaseModel
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as fn

from contract import names
from spark.failpoints import reached
from spark.kafka.records import opened
from spark.lake.lake import Lake
from spark.lake.stopped import Name

FILE = "_letters.json"
PLACE, TEXTS = ("topic", "partition", "offset"), ("record_key", "value")
APP = "headrace-letters-{}"  # and the query's id
BEFORE_ALL = -1  # the number of letters, or of erasures, of a reading that does not say


class Found(BaseModel):
    """`count`: of the topic's records that were put aside; `before`: of those the ones in a `_dead_letters` that is
    gone since. `number`: the find at which the last of them was there."""

    count: int
    number: int
    before: int = 0


class State(BaseModel):
    """`number`: of the last find; one is whatever came since the one before. `version`: of `_dead_letters` then."""

    number: int = 0
    version: int | None = None
    topics: dict[str, Found] = {}


class Letters:
    """Of one run. `of` needs `count` before."""

    def __init__(self, spark: SparkSession, lake: Lake) -> None:
        self.spark, self.lake = spark, lake
        self.table, self.path = lake.at(names.DEAD_LETTERS), lake.at(FILE)
        self.state = state_of(lake)

    def bury(self, records: DataFrame, number: int, query: str) -> None:
        """Puts aside those of the batch's records that are no change. A batch that comes again adds nothing."""
        if self.lake.version(self.table) is None:
            self._begin_anew()  # before there is another, of whose versions nothing tells that they are not the last's
        bad = opened(records).where("bad").select("topic", "partition", "offset", "record_key", "value")
        kept = self._fresh(bad).withColumns({"batch": fn.lit(number).cast("bigint"), "query": fn.lit(query)})
        kept = kept.withColumn("noted", fn.current_timestamp())
        writer = kept.coalesce(1).write.format("delta").mode("append")
        writer = writer.option("txnAppId", APP.format(query)).option("txnVersion", number)
        writer.save(self.table)
        self.lake.settle()  # where the batch's changes are there, it is not asked again for what is none
        reached("records put aside")

    def _fresh(self, bad: DataFrame) -> DataFrame:
        """Without those that are there by another query, since the topics are read from their beginnings again. One
        that stands where an erasure emptied one is noted without its texts: it is the same, or the topic was made
        anew and it is another, which nobody can tell by now and of which its table is to know."""
        if not self.lake.is_table(self.table):
            return bad
        there = self.spark.read.format("delta").load(self.table)
        empty = there.where("record_key is null and value is null").select(*PLACE).distinct().withColumn("e", fn.lit(1))
        place, same = ([_same(name) for name in some] for some in (PLACE, TEXTS))
        fresh = bad.alias("b").join(there.alias("t"), reduce(and_, [*place, *same]), "left_anti")
        fresh = fresh.alias("b").join(empty.alias("t"), reduce(and_, place), "left")
        kept = {name: fn.when(fn.col("e").isNull(), fn.col(f"b.{name}")).alias(name) for name in TEXTS}
        return fresh.select(*(fn.col(f"b.{name}") for name in PLACE), *kept.values())

    def count(self) -> int:
        """Takes note of what there is, of this run or of one that was killed before it did; gives how many records are
        put aside in all."""
        version = self.lake.version(self.table)
        if version != self.state.version:
            self._look(version)
        return sum(found.count for found in self.state.topics.values())

    def _look(self, version: int | None) -> None:
        if version is None:
            self._begin_anew()
            return
        rows = self.spark.read.format("delta").load(self.table).groupBy("topic").count().collect()
        known = self.state.topics
        before = {topic: found.before for topic, found in known.items()}
        counts = {row["topic"]: int(row["count"]) + before.get(row["topic"], 0) for row in rows}
        fresh = {topic: count for topic, count in counts.items() if topic not in known or known[topic].count != count}
        number = self.state.number + bool(fresh)
        found = {
            topic: Found(count=count, number=number, before=before.get(topic, 0)) for topic, count in fresh.items()
        }
        self._note(State(number=number, version=version, topics={**known, **found}))
        reached("letters counted")

    def _begin_anew(self) -> None:
        """There is no table. Where there was one, a person has moved it away: its letters count all the same, and so do
        those of the next one, whose first version may have as many."""
        if self.state.version is not None:
            gone = {
                topic: found.model_copy(update={"before": found.count}) for topic, found in self.state.topics.items()
            }
            self._note(State(number=self.state.number, topics=gone))

    def _note(self, state: State) -> None:
        self.state = state
        self.lake.write(self.path, state.model_dump(mode="json"))

    def tables(self, known: Iterable[Name]) -> dict[Name, int]:
        """The tables that lack something, each with the number of the last find in its topic: those of `known` that
        the topic has, else the one that it is named after."""
        pipeline, found = self.lake.pipeline, dict[Name, int]()
        topics = dict[str, list[Name]]()
        for name in known:
            for topic in names.events_topics(pipeline, *name):
                topics.setdefault(topic, []).append(name)
        for topic, letters in self.state.topics.items():
            for name in topics.get(topic) or names.tables_of(pipeline, topic):
                found[name] = max(letters.number, found.get(name, letters.number))
        return found


def _same(name: str) -> Column:
    return fn.col(f"b.{name}").eqNullSafe(fn.col(f"t.{name}"))


def state_of(lake: Lake) -> State:
    text = lake.text(lake.at(FILE))
    return State.model_validate_json(text) if text else State()
