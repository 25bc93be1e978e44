"""Which of the keys that a person named nobody has: one in another spelling than records have would change nothing, and
look as if there was nothing to mend.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pyspark.sql import SparkSession
from pyspark.sql import functions as fn

from contract.names import quoted
from spark.lake.keys import key_json
from spark.lake.lake import Lake
from spark.mending.choice import tell
from spark.merging.parts import Part, texts_of
from spark.tables.rows import keys_of

NAMED = 10  # of them


@dataclass
class Unfound:
    """Says of which of a part's keys neither its rows nor the lake's table have a row, where a person `asked` for these
    keys. To be called before the part is staged: behind that a compaction may take it, and its folder, at any moment.
    `facts`: the report's, by `db.table`; of a table without such keys none."""

    spark: SparkSession
    lake: Lake
    asked: bool
    facts: dict[str, dict[str, int]] = field(default_factory=dict)

    def __call__(self, part: Part) -> None:
        found = unfound(self.spark, self.lake, part) if self.asked else []
        if not found:
            return
        name, more = ".".join(part.name), f" and {len(found) - NAMED:,} more" if len(found) > NAMED else ""
        tell(
            f"{name}: no row has the key {', '.join(found[:NAMED])}{more}, neither where rows were read nor in the "
            "lake: it may be written in another way than records have it, such as in capitals"
        )
        self.facts[name] = {"unfound": len(found)}


def unfound(spark: SparkSession, lake: Lake, part: Part) -> list[str]:
    """The keys, as records have them, sorted."""
    key, shape, path = list(part.shape.key), part.shape, lake.table(*part.name)
    wanted = keys_of(texts_of(spark, part.folder(lake)), shape)
    rows = part.rows(spark, lake)
    rows = keys_of(rows.select("key"), shape) if part.texts else rows.select(*map(quoted, key))
    left = wanted.join(rows, key, "left_anti")
    if lake.is_table(path):
        there = lake.frame(path).select(*map(quoted, key)).join(fn.broadcast(left), key, "left_semi")
        left = left.join(there, key, "left_anti")
    return sorted(row["key"] for row in left.select(fn.expr(key_json(shape)).alias("key")).collect())
