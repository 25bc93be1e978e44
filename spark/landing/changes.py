"""Step 1: Kafka -> `_changes`, every change once.

In: the records of a pipeline's event topics. Out: `_changes`, append-only, partitioned by table and commit
date. The engine's checkpoint holds the offsets; a batch that is run again writes the same rows under the same
transaction number, which Delta then takes for done.

Duplicates: the streamer's replay sends the same records in the same order to the same partitions, and in a
partition `_seq` only grows. So a record at or below the greatest `_seq` before it is a duplicate, exactly.
The greatest of each partition is kept per batch (`_marks`), so that a repeated batch sees what it saw first. A query
begins with those of the one before it, and with what `_changes` has beyond them, of a batch that was never marked.
What a new epoch sends again is above them all, and known by its GTID (epochs.py). That costs a look into `_changes`,
so it is done only where a batch has a row that may be such a one; it is written without that look, and stopped there.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as fn

from contract import names
from contract.checkpoint import Checkpoint
from contract.pipeline import Pipeline
from contract.sequence import FIELDS, SPARK_TYPE
from spark.errors import LakeError, chain
from spark.failpoints import reached
from spark.failures import records_lost
from spark.kafka.broker import Broker
from spark.kafka.epochs import first_sent
from spark.kafka.offsets import Ends
from spark.kafka.records import NEW_EPOCH, UNREADABLE, above, once, shaped, unreadable
from spark.kafka.settings import spark_options
from spark.kafka.topic_places import Ids, Look, TopicPlace, first_known, in_json, own_topics, places
from spark.lake.applied import AppliedSnapshots
from spark.lake.erasures import Erasures
from spark.lake.lake import Lake
from spark.lake.letters import Letters
from spark.lake.lost import FirstLook, ReadTopics
from spark.lake.manifests import manifests
from spark.lake.topic_ids import TopicIds
from spark.landing.batches import run_batches
from spark.landing.foreign import Looked
from spark.landing.gone import gone, refuse_gone_unread
from spark.landing.long_names import SPREAD, spread, too_long
from spark.landing.marks import Mark, Marks
from spark.landing.planned import APP, forget_larger

MARK_COLUMNS = f"topic string, partition int, mark {SPARK_TYPE}, last bigint"

# A broker that goes away ends the run with one error; by Spark's own bounds (two minutes a read, a minute a question)
# the task would seem to hang. The next run goes on where this one stopped.
BOUNDS = {
    "kafkaConsumer.pollTimeoutMs": "30000",
    "kafka.request.timeout.ms": "20000",
    "kafka.default.api.timeout.ms": "20000",
    "fetchOffset.numRetries": "2",
}


class Landing:
    """One run of step 1. `landed` counts the new changes; `letters` has the records that are none. `look` tells of
    `_changes`, and raises LakeError where somebody else wrote into it; None: nobody does."""

    def __init__(
        self, spark: SparkSession, pipeline: Pipeline, lake: Lake, look: Callable[[], Looked] | None = None
    ) -> None:
        self.spark, self.pipeline, self.lake = spark, pipeline, lake
        self.look = look or (lambda: Looked(lake.version(lake.changes)))
        self.landed = 0
        self.letters = Letters(spark, lake)
        self.erasures = Erasures(lake)

    def topics(self) -> set[str]:
        """Those that were read. The query goes on with all of them that there are, also where tables.include no longer
        has one: what Spark is no longer given it takes for lost. Before the first read, those that a snapshot saw and
        that no template of the file gives: a streamer of a version that noted no templates may have sent there."""
        read = {topic for topic, _ in self.read()}
        return read or {topic for topic in self.seen() if names.is_unknown_topic(self.pipeline, topic)}

    def run(self, ends: Ends, ids: Ids, checkpoint: Checkpoint | None = None) -> None:
        """Lands all records below `ends`, of a commit log that ends at `checkpoint`. `ids`: Kafka's ids of the topics.
        Raises LakeError, also where Kafka has less than was read of it already, or something else."""
        done, known = self.read(), TopicIds(self.lake, self.lake.checkpoint("changes"))
        begins: Ends = {}
        if done:
            ReadTopics(self.lake).keep(places(known.known() or ids, done))
        look = FirstLook(self.lake, Broker(self.pipeline), checkpoint, ids, ends)
        if not done:
            begins = look.begin(self.seen())
        if anew := known.made_again_unread(ids, done):
            look.note_unread(anew)
        if lost := gone(done, ends) or known.made_again(ids, done):
            raise records_lost(self.pipeline, lost)
        if not any(ends.values()) and not done:
            return
        known.keep(ids)  # behind what was noted, which is noted once
        if short := self._short(ends):
            refuse_gone_unread(self.pipeline, done, ends)
        for _ in range(3):  # a topic that is new since the query's last run may be seen in the run after
            if not short:
                ReadTopics(self.lake).keep(places(ids, self.read()))
                return
            self._query(sorted({topic for topic, _ in ends}), begins)
            reached("landed")
            short = self._short(ends)
        raise LakeError(f"Spark did not read {', '.join(short)} to the end; run compaction again")

    def seen(self) -> dict[str, TopicPlace]:
        """What the oldest of the snapshots that matter saw of each topic."""
        both = [(one.id, one.seen, name) for name, one in AppliedSnapshots(self.lake).tables.items()]
        both += [(one.id, one.seen, (shape.db, shape.table)) for one in manifests(self.lake) for shape in one.tables]
        both = [one for one in both if self.pipeline.tables.match(*one[2])]
        both.sort(key=lambda one: one[0])
        return first_known([Look(own_topics(self.pipeline, *name), seen) for _, seen, name in both])

    def _query(self, topics: list[str], begins: Ends) -> None:
        """`begins`: where a query begins that has read nothing; what goes until it reads it misses, and stops."""
        options = {
            **BOUNDS,
            **spark_options(self.pipeline),
            "kafka.bootstrap.servers": self.pipeline.kafka.bootstrap,
            "kafka.isolation.level": "read_committed",
            "subscribe": ",".join(topics),
            "startingOffsets": in_json(begins) if begins else "earliest",
            "failOnDataLoss": "true",
            "maxOffsetsPerTrigger": str(self.pipeline.compaction.max_offsets_per_batch),
        }
        forget_larger(self.spark, self.lake, self.pipeline.compaction.max_offsets_per_batch)
        records = self.spark.readStream.format("kafka").options(**options).load()
        run_batches(records, self.lake.checkpoint("changes"), self._batch, self.lake.settle)

    def _short(self, ends: Ends) -> list[str]:
        """The topics that the query's checkpoint has not done to their ends."""
        done = self.read()
        return sorted({topic for (topic, number), end in ends.items() if done.get((topic, number), 0) < end})

    def read(self) -> Ends:
        """The offsets up to which the query's checkpoint has read."""
        folder = self.lake.checkpoint("changes")
        batches = [int(name) for name in self.lake.list(f"{folder}/commits") if name.isdigit()]
        text = self.lake.text(f"{folder}/offsets/{max(batches)}") if batches else None
        topics = json.loads(text.splitlines()[-1]) if text else {}
        return {(topic, int(n)): at for topic, numbers in topics.items() for n, at in numbers.items()}

    def _batch(self, records: DataFrame, number: int, query: str) -> None:
        marks = Marks(self.lake, query)
        if not marks.begun:
            marks.begin(self._landed(marks.before(number)))
        known = marks.before(number)
        try:
            self._land(shaped(records, self.pipeline.name), self._frame(known), number, query)
        except Exception as error:
            if not _says(error, UNREADABLE):
                raise
            if self.pipeline.compaction.unreadable == "stop":
                raise unreadable(records) from error
            self.letters.bury(records, number, query)
            self._land(shaped(records, self.pipeline.name, strict=False), self._frame(known), number, query)
        marks.write(number, self._marks_after(known, number))

    def _land(self, changes: DataFrame, marks: DataFrame, number: int, query: str) -> None:
        try:
            self._append(once(changes, marks, one_epoch=True), number, query)
            return
        except Exception as error:
            if not _says(error, NEW_EPOCH):
                raise
        print("a new epoch begins in this batch: what an older one sent already is left out", flush=True)
        fresh = once(changes, marks).persist()
        version = self.look().version
        landed = None if version is None else self.lake.frame(self.lake.changes, version)
        try:
            self._append(first_sent(fresh, landed), number, query)
        finally:
            fresh.unpersist()

    def _append(self, fresh: DataFrame, number: int, query: str) -> None:
        numbered = self.erasures.without(fresh).withColumn("batch", fn.lit(number).cast("bigint"))
        writer = numbered.write.format("delta").mode("append").partitionBy("tbl", "day")
        # Delta would pass by a number that it has seen without a word.
        writer = writer.option("txnAppId", APP.format(query)).option("txnVersion", number)
        self.look()  # behind a commit of ours, what somebody wrote before it could not be taken back
        try:
            writer.save(self.lake.changes)
        except Exception as error:
            if not too_long(error):
                raise
            if self.lake.is_table(self.lake.changes):
                spread(self.spark, self.lake.changes)
            writer.option(SPREAD, "true").save(self.lake.changes)
        reached("changes written")

    def _landed(self, known: list[Mark]) -> list[Mark]:
        """The marks with what `_changes` has: the query before may have died between a batch and its marks."""
        version = self.look().version
        return known if version is None else _raised(known, self._tops(self.lake.frame(self.lake.changes, version)))

    def _marks_after(self, known: list[Mark], number: int) -> list[Mark]:
        """Of rows of ours alone: a record that a mark does not know of lands again where it comes again."""
        numbered = self.lake.frame(self.lake.changes, self.look().version).where(fn.col("batch") == number)
        # An older query had a batch of this number, below its marks.
        tops = self._tops(above(numbered, self._frame(known)))
        self.landed += sum(row["n"] for row in tops)
        return _raised(known, tops)

    def _tops(self, written: DataFrame) -> list[Row]:
        """Of each partition the greatest `_seq`, the latest commit, and how many rows there are."""
        top, last = fn.max("_seq").alias("mark"), fn.unix_millis(fn.max("ts")).alias("last")
        return written.groupBy("topic", "partition").agg(top, last, fn.count("*").alias("n")).collect()

    def _frame(self, marks: list[Mark]) -> DataFrame:
        if not marks:
            return self.spark.createDataFrame([], MARK_COLUMNS)
        rows = []
        for mark in marks:
            fields = ", ".join(f"'{name}', {value}L" for name, value in zip(FIELDS, mark.at, strict=True))
            last = "CAST(NULL AS BIGINT)" if mark.last is None else f"{mark.last}L"
            rows.append(f"('{mark.topic}', {mark.partition}, named_struct({fields}), {last})")
        return self.spark.sql(f"SELECT * FROM VALUES {', '.join(rows)} AS marks(topic, partition, mark, last)")


def _raised(known: list[Mark], tops: list[Row]) -> list[Mark]:
    merged = {(mark.topic, mark.partition): mark for mark in known}
    for row in tops:
        at = (row["topic"], row["partition"])
        before = merged.get(at, Mark(*at, []))
        merged[at] = Mark(*at, max(before.at, list(row["mark"])), max(before.last or 0, row["last"]))
    return [mark for _, mark in sorted(merged.items())]


def _says(error: BaseException, word: str) -> bool:
    return any(word in text for text in chain(error))
