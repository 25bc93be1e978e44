"""How many bytes a merge writes: by how many rows changed, not by how many the table has.

Tables of several sizes are made in the lake itself, and the product's own merge puts batches of changes into each, of
rows that lie all over it, which is the worst that can be. What its folder has more afterwards was written: data files,
deletion vectors, the log. Needs no server and no Kafka.
"""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import groupby
from pathlib import Path
from time import monotonic
from typing import Any

import matplotlib
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from contract.pipeline import Pipeline
from contract.schema import Column, TableSchema
from spark.lake.lake import Lake
from spark.landing.foreign import look
from spark.merging.tables import Merging
from spark.tables.merge import sequence
from spark.tables.schema import Schemas, prepare

matplotlib.use("svg")
from matplotlib import pyplot as plt

SIZES = (1_000_000, 10_000_000)
CHANGES = (1_000, 10_000, 100_000)
READERS = {"modern": "#1f6f8b", "compatible": "#b9c4c9"}  # lake.readers, and the colour of each
MARKS = ("o", "s", "^", "D")


@dataclass(frozen=True)
class Written:
    """`bytes` that a merge of so many `changes` into a table of so many `rows` wrote; `table_bytes` before it."""

    rows: int
    changes: int
    bytes: int
    table_bytes: int
    seconds: float


def shape(db: str, rows: int) -> TableSchema:
    columns = (
        Column(name="id", type="bigint", nullable=False), Column(name="customer", type="int"),
        Column(name="status", type="varchar", length=9), Column(name="amount", type="decimal", precision=10, scale=2),
        Column(name="note", type="varchar", length=100),
    )  # fmt: skip
    return TableSchema(db=db, table=f"orders_{rows}", version=1, columns=columns, key=("id",))


def row(status: str) -> dict[str, Any]:
    """The columns' values by the number `id`."""
    number = fn.col("id")
    return {
        "id": number, "customer": fn.pmod(fn.hash(number), fn.lit(9973)).cast("bigint"), "status": fn.lit(status),
        "amount": (fn.pmod(fn.xxhash64(number), fn.lit(100_000)) / 100).cast("decimal(10,2)"),
        "note": fn.concat(fn.lit("a note that hardly packs: "), fn.sha2(number.cast("string"), 256)),
    }  # fmt: skip


def make(spark: SparkSession, lake: Lake, schema: TableSchema, rows: int) -> None:
    """A table as a snapshot leaves it."""
    path = lake.table(schema.db, schema.table)
    prepare(spark, path, schema, schema, lake.deletion_vectors)
    own = {"_seq": sequence((0, 1, 4, -1, -1)), "_ts": fn.timestamp_millis(fn.lit(0))}
    made = spark.range(rows).select(*[value.alias(name) for name, value in {**row("new"), **own}.items()])
    made.write.format("delta").mode("append").save(path)


def changed(spark: SparkSession, schema: TableSchema, rows: int, count: int, at: int) -> DataFrame:
    """Updates of `count` rows, as `_changes` has them, by the transaction at the position `at`."""
    wanted = spark.range(count).select((fn.col("id") * (rows // count) + at % (rows // count)).alias("id"))
    values = {**row("sent"), "amount": row("sent")["amount"].cast("string")}
    after = fn.to_json(fn.struct(*[value.alias(name) for name, value in values.items()]))
    place = fn.struct(
        *[fn.lit(n).cast("bigint").alias(name) for n, name in ((0, "epoch"), (1, "file"), (at, "pos"), (0, "event"))],
        fn.col("id").alias("row"),
    )
    return wanted.select(
        fn.lit(schema.db).alias("db"), fn.lit(f"{schema.db}.{schema.table}").alias("tbl"),
        fn.to_json(fn.struct("id")).alias("key"), fn.lit("u").alias("op"), after.alias("after"),
        fn.lit(schema.version).alias("schema"), place.alias("_seq"), fn.current_timestamp().alias("ts"),
    )  # fmt: skip


def measure(
    spark: SparkSession, lake: Lake, sizes: Sequence[int], counts: Sequence[int], db: str = "bench"
) -> Iterator[Written]:
    """Each count of changes into a table of each size, the tables one after the other. `db`: one of the pipeline's."""
    for rows in sizes:
        schema = shape(db, rows)
        make(spark, lake, schema, rows)
        path = lake.table(schema.db, schema.table)
        merging = Merging(spark, lake, Schemas([schema]), partial(look, lake, None))
        for number, count in enumerate(counts):
            before, began = lake.size(path), monotonic()
            merging._batch(changed(spark, schema, rows, count, 100 + number), number, "bench")
            if merging.stopped.tables:
                raise SystemExit(str(merging.stopped.tables))
            yield Written(rows, count, lake.size(path) - before, before, monotonic() - began)


def draw(found: dict[str, list[Written]], file: Path) -> None:
    plt.rcParams.update({"font.size": 9, "svg.hashsalt": "headrace", "svg.fonttype": "none"})
    figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
    for readers, points in found.items():
        for mark, (rows, some) in zip(MARKS, groupby(points, key=lambda one: one.rows), strict=False):
            line = [*some]
            told = f"{rows:,} rows" + ("" if readers == "modern" else f", readers: {readers}")
            axis.plot(
                [one.changes for one in line], [one.bytes / 1e6 for one in line], f"{mark}-", label=told,
                color=READERS[readers],
            )  # fmt: skip
    axis.set(xscale="log", yscale="log", xlabel="rows changed by a merge", ylabel="MB written")
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(frameon=False)
    figure.savefig(file, metadata={"Date": None})
    plt.close(figure)


def pipeline(folder: Path, readers: str) -> Pipeline:
    source = {"host": "127.0.0.1", "user": "nobody", "password": "none", "server_id": 9}
    given = {"format": 1, "name": f"bench-{readers}", "source": source, "tables": {"include": ["bench.*"]}}
    more = {"kafka": {"bootstrap": "127.0.0.1:1"}, "lake": {"path": str(folder), "readers": readers}}
    return Pipeline.model_validate({**given, **more})


def told(one: Written) -> str:
    return (
        f"{one.changes:,} changes into {one.rows:,} rows ({one.table_bytes / 1e6:,.0f} MB): {one.bytes / 1e6:,.2f} MB "
        f"written, {one.bytes / one.changes:,.0f} bytes a change, {one.seconds:.1f} s"
    )


def run(home: Path, chosen: Namespace) -> None:
    """Prints a line a merge, and leaves figures and picture in `chosen.out`."""
    from spark.session import session
    from stack.maven import spark_jars

    settings = {"spark.master": "local[2]", "spark.jars": ",".join(map(str, spark_jars()))}
    more = {"spark.driver.memory": chosen.memory, "spark.driver.extraJavaOptions": f"-Duser.timezone=UTC {chosen.java}"}
    spark = session("bench", {**settings, **more, "spark.ui.showConsoleProgress": "false"})
    found: dict[str, list[Written]] = {}
    for readers, sizes in (("modern", chosen.sizes), ("compatible", chosen.sizes[:1])):
        lake = Lake(spark, pipeline(home, readers))
        for one in measure(spark, lake, sizes, chosen.changes):
            found.setdefault(readers, []).append(one)
            print(f"readers: {readers}: {told(one)}", flush=True)
    chosen.out.mkdir(parents=True, exist_ok=True)
    text = json.dumps({readers: [asdict(one) for one in points] for readers, points in found.items()}, indent=1)
    (chosen.out / "written.json").write_text(text)
    draw(found, chosen.out / "written.svg")
