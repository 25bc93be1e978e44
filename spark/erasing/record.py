"""What is written down of an erasure, for people: a row of the lake's table `_erasures`, without the key itself.

| column | |
|---|---|
| `run`, `by`, `at` | Airflow's run, its user (the system's where it was another program), when it ended |
| `db`, `tbl`, `key_hashes` | whose rows: of each key the hash with the lake's salt (in `_erasures.json`) |
| `until`, `gtid_set` | the place in the binlog (epoch, file, position) and the transactions up to which is erased |
| `removed` | how many rows, by place |
| `remains` | what is still there: `place`, `from` and `until` when it goes, and `why` |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from pyspark.sql import SparkSession
from pyspark.sql import functions as fn

from contract import names
from contract.checkpoint import Checkpoint
from contract.pipeline import Pipeline
from contract.pipeline_sinks import KafkaOutput
from contract.schema import TableSchema
from contract.steps import SNAPSHOT_TABLE
from spark.failpoints import reached
from spark.lake.delta_log import kept_for
from spark.lake.erasures import Begun, Topic
from spark.lake.lake import Lake

SHAPE = (
    "run string, by string, at timestamp, db string, tbl string, key_hashes array<string>, until string, "
    "gtid_set string, removed map<string,bigint>, "
    "remains array<struct<place:string,`from`:timestamp,until:timestamp,why:string>>"
)


@dataclass(frozen=True)
class Remains:
    """What is still there. `since`, `until`: when it may go, and when it has at the latest; None where nobody says."""

    place: str
    why: str
    since: datetime | None = None
    until: datetime | None = None

    def told(self) -> str:
        when = f"until {_told(self.until)} at the latest" if self.until else "until somebody removes it"
        if self.since and self.since != self.until:
            when = f"from {_told(self.since)} on it may go{f', {when}' if self.until else ''}"
        return f"{self.place}: {when} ({self.why})"


def _told(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"


def of_files(spark: SparkSession, paths: Sequence[str], hours: float, at: datetime) -> list[Remains]:
    """Of the tables of these paths, whose files are kept for that long; none where that is no time."""
    if not hours:
        return []
    files = at + timedelta(hours=hours)
    told = [Remains(path, "files of before, removed by the first vacuum behind that", until=files) for path in paths]
    why = "least and greatest values of files, which the table's first checkpoint behind that removes"
    return [*told, *(Remains(f"{path}/_delta_log", why, since=at + kept_for(spark, path)) for path in paths)]


MAYBE = "it may have such a record"
DATA_DOCS = Remains(
    "Data Docs", "the page of a failed check may show values at fault; the table's next check makes it anew"
)


def of_changes(path: str, unsearched: int) -> list[Remains]:
    """Of changes of which nothing tells whose they are."""
    why = (
        f"{unsearched:,} change(s) of the table were not searched: they are of a time at which it lacked a column of "
        "its present key, or a mask hid it whose secret the pipeline file has no more, or of a version that the schema "
        "topic lacks. maintenance.history_days removes them by age"
    )
    return [Remains(path, why)] if unsearched else []


def of_unkeyed(schema: TableSchema, rows: int) -> list[Remains]:
    """Of rows of the table itself of which nothing tells whose they are."""
    why = (
        f"{rows:,} row(s) have no value in a column of its present key ({', '.join(schema.key)}), and were not "
        f"searched: {SNAPSHOT_TABLE}, which gives them theirs, then run the erasure again"
    )
    return [Remains(f"the table {schema.db}.{schema.table}", why)] if rows else []


def of_doubtful(path: str, doubtful: int) -> list[Remains]:
    """Of changes with hashes of the key that may be by another secret."""
    why = (
        f"{doubtful:,} change(s) of the table were sent before its masks or keys, or their secret, were changed in the "
        "pipeline file: what is hashed there by another secret was not found. An erasure by a copy of the file with "
        "that columns.secret finds it (headrace erase COPY); maintenance.history_days removes changes by age"
    )
    return [Remains(path, why)] if doubtful else []


def of_oversized(pipeline: Pipeline) -> list[Remains]:
    """Of records that were too large for Kafka, each a file."""
    if (asked := pipeline.records.oversized) is None:
        return []
    why = (
        "records too large for Kafka, whole and in plain, are not searched. The letters of the dead letter topic have "
        "each one's key, and its file as value_at: remove there those of the keys"
    )
    return [Remains(f"{asked.target.rstrip('/')}/{pipeline.name}", why)]


def of_renamed(spark: SparkSession, lake: Lake, name: str) -> list[Remains]:
    """Of tables with which a statement changed names: their rows, and changes of before, have another name here."""
    path = lake.at(names.SCHEMA_CHANGES)
    if not lake.is_table(path):
        return []
    renames = spark.read.format("delta").load(path).where("kind = 'rename'").select("at", "statement", "db", "tbl")
    mine = renames.where(fn.concat_ws(".", "db", "tbl") == name).select("at", "statement").distinct()
    full = fn.concat_ws(".", "db", "tbl").alias("name")
    others = renames.join(mine, ["at", "statement"], "left_semi").select(full).where(fn.col("name") != name)
    why = "a RENAME gave rows of one of the two the other's name: erase the keys there, too"
    return [Remains(f"the table {row['name']}", why) for row in others.distinct().orderBy("name").collect()]


def of_staged(folders: Mapping[str, str]) -> list[Remains]:
    """Of rows that a compaction could not take yet: folder -> what they are of."""
    why = "rows of {} that its table cannot take: the compaction's report says why; a new snapshot of it removes them"
    return [Remains(folder, why.format(of)) for folder, of in folders.items()]


def of_archive(pipeline: Pipeline) -> list[Remains]:
    """Of the binlog's files that `headrace archive` keeps."""
    if pipeline.archive is None:
        return []
    why = "the archive of the binlog has the rows in plain, in files of which only the whole can be removed"
    return [Remains(pipeline.archive.target.rstrip("/"), why)]


def of_sinks(pipeline: Pipeline) -> list[Remains]:
    """Of those beside Kafka."""
    why = "a sink of the pipeline: the records there are not searched. Remove those of the keys"
    return [Remains(sink.title, why) for sink in pipeline.sinks if not isinstance(sink, KafkaOutput)]


def of_topics(topics: Sequence[Topic], why: str = "") -> list[Remains]:
    """`why`: what there is to say of them; left out, as of a table's own."""
    return [_of_topic(topic, why or _why(topic)) for topic in topics if topic.last_ms is not None]


def _of_topic(topic: Topic, why: str) -> Remains:
    made = Remains(f"topic {topic.name}", f"cleanup.policy {topic.policy}: {why}")
    return made if topic.tombstone else replace(made, since=_moment(topic.earliest_ms), until=_moment(topic.latest_ms))


def _why(topic: Topic) -> str:
    if topic.tombstone and topic.found:
        return "a tombstone was sent, by which the broker removes it"
    if topic.tombstone:
        return (
            "no change of the keys was found, and it may have one: a tombstone was sent into each partition, for the "
            "keys as records have them now"
        )
    if topic.compacts:
        return f"{MAYBE}. No tombstone was sent: tables share it, and another one's row may have the same key"
    return "the broker removes it by age" if topic.found else MAYBE


def _moment(ms: int | None) -> datetime | None:
    return None if ms is None else datetime.fromtimestamp(ms / 1000, UTC)


def note(
    spark: SparkSession, lake: Lake, begun: Begun, until: Checkpoint, remains: Sequence[Remains], run: str, by: str
) -> None:
    """Appends the row; once, however often it is called, and for a run that ended and then was tried again."""
    if _known(spark, lake, begun, run):
        return
    db = begun.tbl.partition(".")[0]
    epoch, file, pos = until.place
    left = [(one.place, one.since, one.until, one.why) for one in remains]
    row = (
        run, by, datetime.now(UTC), db, begun.tbl, begun.hashes, f"{epoch}, {file}, {pos}", until.sent,
        begun.removed, left,
    )  # fmt: skip
    writer = spark.createDataFrame([row], SHAPE).coalesce(1).write.format("delta").mode("append")
    writer = writer.option("txnAppId", f"headrace-erasure-{begun.id}").option("txnVersion", 0)
    writer.save(lake.at(names.ERASURES))
    reached("erasure recorded")


def _known(spark: SparkSession, lake: Lake, begun: Begun, run: str) -> bool:
    """Whether the run has its row, and nothing was left to be erased since."""
    path = lake.at(names.ERASURES)
    if not run or any(begun.removed.values()) or not lake.is_table(path):
        return False
    rows = spark.read.format("delta").load(path)
    mine = rows.where((fn.col("run") == run) & (fn.col("tbl") == begun.tbl))
    return any(row["key_hashes"] == begun.hashes for row in mine.select("key_hashes").collect())
