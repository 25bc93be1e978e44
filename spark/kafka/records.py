"""Kafka's records as the rows of `_changes`, and which of them are new. Pure: DataFrames in, DataFrames out."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

from contract.sequence import FIELDS
from spark.errors import LakeError
from spark.json_texts import LONG
from spark.kafka.epochs import DAYS

ENVELOPE = (
    "op string, before string, after string, source struct<name:string, db:string, `table`:string, "
    "`schema`:int, gtid:string, ts_ms:bigint, seq:array<bigint>>"
)
OPERATIONS = ("c", "u", "d", "t")
UNREADABLE = "headrace-unreadable-record"
NEW_EPOCH = "headrace-new-epoch"
ABOVE = "mark IS NULL OR _seq > mark"
TIMES = (-62_135_596_800_000, 253_402_300_799_999)  # the years 1 to 9999 in Unix ms, which are those of a date


def opened(records: DataFrame) -> DataFrame:
    """Kafka records (`key`, `value`, `topic`, `partition`, `offset`) with the envelope `v` and `bad`: whether
    it is none; `record_key` and `value` are as they came. Tombstones are left out."""
    # Spark would carry a condition on what from_json gives below it, and parse the text anew for each word of that; a
    # generator it does not pass.
    whole = fn.struct(fn.from_json(fn.col("value").cast("string"), ENVELOPE, LONG).alias("v"))
    v = records.where("value is not null").select(
        fn.col("key").cast("string").alias("key"),
        fn.inline(fn.array(whole)),
        fn.col("key").alias("record_key"),
        "value",
        "topic",
        "partition",
        "offset",
    )
    return v.withColumn("bad", ~fn.coalesce(_sound(), fn.lit(False)))


def _sound() -> Column:
    s = "v.source"
    told = [fn.col(f"{s}.{name}").isNotNull() for name in ("name", "db", "table", "ts_ms")]
    told += [fn.get(f"{s}.seq", fn.lit(at)).isNotNull() for at in range(len(FIELDS))]  # a null is above no mark
    told.append(fn.col(f"{s}.ts_ms").between(*TIMES))
    image = fn.when(fn.col("v.op") == "d", fn.col("v.before")).otherwise(fn.col("v.after")).isNotNull()
    image = fn.col("v.op").eqNullSafe("t") | (image & fn.col(f"{s}.schema").isNotNull())  # a truncation has no row
    sound = fn.col("v.op").isin(*OPERATIONS) & image & (fn.size(f"{s}.seq") == len(FIELDS))
    for condition in told:
        sound = sound & condition
    return sound


def shaped(records: DataFrame, pipeline: str, strict: bool = True) -> DataFrame:
    """The rows of `_changes`. A record that is no envelope raises, when it is read; unless `strict`, it is left out.
    Those of another pipeline that writes into the same topic are not ours: their places in a binlog say nothing beside
    ours."""
    where = fn.concat_ws(" ", fn.lit(UNREADABLE), "topic", fn.col("partition"), fn.col("offset"))
    ts = fn.when(~fn.col("bad"), fn.timestamp_millis("v.source.ts_ms"))  # of a time that is none it dies
    sequence = fn.struct(*[fn.get("v.source.seq", fn.lit(i)).alias(name) for i, name in enumerate(FIELDS)])
    bad, named = fn.col("bad"), fn.col("v.source.name") == pipeline
    ours = opened(records).where(bad | named if strict else ~bad & named)
    return ours.select(
        fn.col("v.source.db").alias("db"),
        fn.concat_ws(".", "v.source.db", "v.source.table").alias("tbl"),
        fn.to_date(ts).alias("day"),
        "key",
        fn.when(fn.col("bad"), fn.raise_error(where)).otherwise(fn.col("v.op")).alias("op"),
        fn.col("v.before").alias("before"),
        fn.col("v.after").alias("after"),
        fn.col("v.source.schema").alias("schema"),
        sequence.alias("_seq"),
        fn.col("v.source.gtid").alias("gtid"),
        ts.alias("ts"),
        "topic",
        "partition",
        "offset",
    )


def once(changes: DataFrame, marks: DataFrame, one_epoch: bool = False) -> DataFrame:
    """Without the duplicates: of each partition, in offset order, the rows above its mark (`marks`: topic,
    partition, mark, last) and above every row before them. With `one_epoch` a row raises, when it is read, that an
    older epoch may have sent before."""
    before = Window.partitionBy("topic", "partition").orderBy("offset").rowsBetween(Window.unboundedPreceding, -1)
    topped = changes.withColumn("_top", fn.max("_seq").over(before))
    fresh = fn.col("_top").isNull() | (fn.col("_seq") > fn.col("_top"))
    found = _marked(topped, marks).where(fn.expr(ABOVE) & fresh)
    if one_epoch:
        op = fn.when(_of_a_new_epoch(), fn.raise_error(fn.lit(NEW_EPOCH))).otherwise(fn.col("op"))
        found = found.withColumn("op", op)
    return found.select(*changes.columns)


def _of_a_new_epoch() -> Column:
    """What was committed long after all that an older epoch sent to the partition cannot be among that."""
    epoch, since = fn.col("_seq.epoch"), fn.unix_millis("ts") - fn.col("last")
    late = fn.coalesce(since > DAYS * 86_400_000, fn.lit(False))
    return (epoch > fn.col("_top.epoch")) | (~late & (epoch > fn.col("mark.epoch")))


def above(changes: DataFrame, marks: DataFrame) -> DataFrame:
    """The rows above their partition's mark; all of a partition without one."""
    return _marked(changes, marks).where(ABOVE).select(*changes.columns)


def _marked(changes: DataFrame, marks: DataFrame) -> DataFrame:
    return changes.join(fn.broadcast(marks), ["topic", "partition"], "left")


def unreadable(records: DataFrame) -> LakeError:
    """How many records are no change, and the first of them."""
    bad = opened(records).where("bad")
    found = bad.agg(fn.count("*").alias("n"), fn.min(fn.struct("topic", "partition", "offset")).alias("at")).first()
    assert found is not None
    at = found["at"]
    return LakeError(
        f"{found['n']} record(s) of this batch are no change, the first at topic {at['topic']}, partition "
        f"{at['partition']}, offset {at['offset']}. Nothing of the batch was written. Something else than the "
        "streamer wrote to the topic, or a newer version did: upgrade Headrace. Or let compaction put them aside, and "
        "count them, by compaction.unreadable: dead_letter in the pipeline file"
    )
