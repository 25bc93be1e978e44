"""What the lake's tables have of some keys, and its removal from them.

Keys are compared by their values, in the images of a change too: an ALTER TABLE may have given a key's text another
form. Where the key was masked otherwise than now, a version has its own text of it, by which it is looked for. No value
stands in a commit's condition, which Delta keeps in its log: the keys come as rows to join with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as fn

from contract import names
from contract.checkpoint import Place
from contract.erased_key import ErasedKey, findable, like, of_key, text_in
from contract.names import quoted
from contract.schema import TableSchema
from contract.types import may_not_fit
from spark.errors import LakeError
from spark.failpoints import reached
from spark.lake.lake import Lake
from spark.proof.differences import CHUNK
from spark.tables.merge import sequence
from spark.tables.refused import refused
from spark.tables.rows import READING, beside, parsed, read_by, typed
from spark.tables.schema import columns_of, lacks_key

EVENT = ("tbl", "day", "topic", "partition", "offset", "_seq")
LETTER = ("topic", "partition", "offset")
AUDIT = ("run", "tbl", "kind", "key")
IMAGES = ("key", "before", "after")
RECORD = "before string, after string, source struct<db: string, table: string>"  # images as the texts that they are


@dataclass(frozen=True)
class Traces:
    """Of the keys of one table, of before the place `until`. `shapes`: its versions, the last of which is `schema`;
    `applied`: by which a snapshot's rows were applied. `secret`: of the key's hashes; `shown_since`: from where on the
    table is shown by the rules of now, None where it was by no others."""

    spark: SparkSession
    lake: Lake
    schema: TableSchema
    shapes: Sequence[TableSchema]
    keys: Sequence[ErasedKey]
    until: Place
    secret: bytes = b""
    applied: TableSchema | None = None
    shown_since: Place | None = None

    @property
    def name(self) -> str:
        return f"{self.schema.db}.{self.schema.table}"

    @property
    def path(self) -> str:
        return self.lake.table(self.schema.db, self.schema.table)

    def table(self, name: str) -> DataFrame | None:
        """One of the lake's own; None where there is none."""
        path = self.lake.at(name)
        return self.spark.read.format("delta").load(path) if self.lake.is_table(path) else None

    def rows(self) -> int:
        """How many the current table has."""
        if (now := self._present()) is None or self._lacks_key(now):
            return 0
        now = now.where(_or_unplaced(self._before()))
        return now.join(fn.broadcast(self._wanted_rows()), list(self.schema.key), "left_semi").count()

    def unkeyed(self) -> int:
        """How many rows of the current table have no value in a column of the key: it is another one since, or has
        another name, and no snapshot was taken behind that."""
        if (now := self._present()) is None:
            return 0
        if self._lacks_key(now):  # it was stopped before it got the column
            return now.count()
        return now.where(_lacking(self.schema.key)).count()

    def _present(self) -> DataFrame | None:
        """The current table."""
        return self.spark.read.format("delta").load(self.path) if self.lake.is_table(self.path) else None

    def _lacks_key(self, now: DataFrame) -> bool:
        return lacks_key(self.schema, dict(now.dtypes)) is not None

    def texts(self) -> list[str]:
        """The keys as records have them, or had them when the key was shown otherwise, or was of other types."""
        of_before = [text_in(shape, key, self.secret) for shape in self._searched() for key in self.keys]
        texts = [*(text for shape in self._forms() for text in self._texts_in(shape)), *filter(None, of_before)]
        return list(dict.fromkeys(texts))

    def events(self) -> DataFrame | None:
        """The changes of the keys: their place in `_changes`, and `key`."""
        if (changes := self.table(names.CHANGES)) is None:
            return None
        mine, columns = self._mine(changes), [*EVENT, "key"]
        found = self._of_keys(mine, columns)
        return found.unionByName(self._of_texts(mine, columns)).distinct() if self._untyped() else found

    def unsearched(self) -> int:
        """How many changes are of versions without a column of the key, or with a mask that hides it, or of such as
        nobody knows any more: nothing tells whose they are."""
        if (changes := self.table(names.CHANGES)) is None:
            return 0
        searched = fn.col("schema").isin([shape.version for shape in self._searched()])
        return self._mine(changes).where((fn.col("op") != "t") & ~fn.coalesce(searched, fn.lit(False))).count()

    def doubtful(self) -> int:
        """How many changes have a hash of the key that may be by another secret: a version does not tell it."""
        if self.shown_since is None or (changes := self.table(names.CHANGES)) is None:
            return 0
        hashed = [shape.version for shape in self._searched() if _masked(of_key(shape, self.schema.key))]
        before = fn.col("_seq") < sequence([*self.shown_since, -1, -1])
        return self._mine(changes).where((fn.col("op") != "t") & before & fn.col("schema").isin(hashed)).count()

    def letters(self) -> DataFrame | None:
        """The records of the table, or of a topic that it had and of nobody knows which table, that are no change and
        yet name one of the keys."""
        if (letters := self.table(names.DEAD_LETTERS)) is None:
            return None
        said = fn.from_json(fn.col("value").cast("string"), RECORD, READING)
        text = letters.where(fn.coalesce("value", "record_key").isNotNull()).withColumn("said", said)
        images = {name: fn.col(f"said.{name}") for name in ("before", "after")}
        text = text.where(self._of_table()).withColumn("key", fn.col("record_key").cast("string")).withColumns(images)
        return self._of_texts(text, LETTER)

    def audited(self, name: str) -> DataFrame | None:
        """The rows of a table of findings that name one of the keys."""
        if (found := self.table(name)) is None:
            return None
        mine = found.where((fn.col("tbl") == self.name) & (fn.col("db") == self.schema.db) & fn.col("key").isNotNull())
        nothing = fn.lit(None).cast("string")
        return self._of_texts(mine.withColumns({"before": nothing, "after": nothing}), AUDIT)

    def erase_rows(self) -> None:
        same = [fn.col(f"t.{quoted(name)}") == fn.col(f"c.{quoted(name)}") for name in self.schema.key]
        merge = self._merge(self.path, self._wanted_rows(), _all([*same, _or_unplaced(self._before("t._seq"))]))
        try:
            merge.whenMatchedDelete().execute()
        except Exception as error:
            name = self.schema.db, self.schema.table
            if (text := refused(self.lake, name, error)) is None:
                raise
            raise LakeError(f"{text}. Then run this again") from error
        reached("rows erased")

    def erase_events(self, events: DataFrame) -> None:
        days = [row["day"] for row in events.select("day").distinct().collect()]
        # Said of the partitions' own columns, so that no other one is read.
        here = (fn.col("t.tbl") == self.name) & fn.col("t.day").isin(days)
        merge = self._merge(self.lake.changes, events.select(*EVENT), _all([here, *_same(EVENT)]))
        merge.whenMatchedDelete().execute()
        reached("changes erased")

    def erase_letters(self, letters: DataFrame) -> None:
        """The place of each stays: it tells that the table lacks something."""
        merge = self._merge(self.lake.at(names.DEAD_LETTERS), letters, _all(_same(LETTER)))
        merge.whenMatchedUpdate(set={"record_key": "null", "value": "null"}).execute()
        reached("letters erased")

    def erase_audited(self, name: str, found: DataFrame) -> None:
        self._merge(self.lake.at(name), found, _all(_same(AUDIT))).whenMatchedDelete().execute()
        reached("findings erased")

    def erase_chunks(self) -> None:
        """The conditions of chunks that differ have keys in them; the next check finds such a chunk again."""
        path = self.lake.at(names.DIFFERENCES)
        mine = (fn.col("tbl") == self.name) & (fn.col("kind") == CHUNK)
        if self.lake.is_table(path) and not self.spark.read.format("delta").load(path).where(mine).isEmpty():
            DeltaTable.forPath(self.spark, path).delete(mine)
            reached("chunks erased")

    def _mine(self, changes: DataFrame) -> DataFrame:
        return changes.where((fn.col("tbl") == self.name) & (fn.col("db") == self.schema.db) & self._before())

    def _searched(self) -> list[TableSchema]:
        """The versions that tell whose a change is."""
        return [shape for shape in self.shapes if findable(shape, self.schema.key, self.secret)]

    def _forms(self) -> list[TableSchema]:
        """The present version, and one for each other form that the key had by its masks."""
        known = [*self.shapes, *([self.applied] if self.applied else [])]
        told = [shape for shape in known if findable(shape, self.schema.key, self.secret)]
        others = {of_key(shape, self.schema.key).columns: shape for shape in told if self._own(shape)}
        return [self.schema, *others.values()]

    def _own(self, shape: TableSchema) -> bool:
        """Whether the key is masked there in another way than now."""
        return any(like(shape, name).mask != self.schema.column(name).mask for name in self.schema.key)

    def _texts_in(self, shape: TableSchema) -> list[str]:
        if not self._own(shape):
            return [key.text for key in self.keys]
        return [text for key in self.keys if (text := text_in(shape, key, self.secret)) is not None]

    def _of_table(self) -> Column:
        """Whether a record that is no change may be the table's: it says so (the column `said`), or does not say whose
        it is and is in a topic of the table."""
        said = (fn.col("said.source.db") == self.schema.db) & (fn.col("said.source.table") == self.schema.table)
        return fn.coalesce(said, fn.col("topic").isin(self.topics()))

    def topics(self) -> list[str]:
        """In which the table's changes are, or were before the pipeline file named another one."""
        topics = {*names.events_topics(self.lake.pipeline, self.schema.db, self.schema.table)}
        if (changes := self.table(names.CHANGES)) is not None:
            topics |= {row["topic"] for row in self._mine(changes).select("topic").distinct().collect()}
        return sorted(topics)

    def _before(self, name: str = "_seq") -> Column:
        """Rows of a snapshot that begins just there are older than what comes behind it."""
        return fn.col(name) <= sequence([*self.until, -1, -1])

    def _merge(self, path: str, found: DataFrame, same: Column) -> Any:
        return DeltaTable.forPath(self.spark, path).alias("t").merge(found.alias("c"), same)

    def _wanted_rows(self) -> DataFrame:
        """The keys' columns as the table has them: rows that did not change since a mask are as they were before."""
        kinds = self._kinds()
        return reduce(DataFrame.unionByName, [self._wanted(shape, kinds) for shape in self._forms()]).distinct()

    def _wanted(self, shape: TableSchema, kinds: dict[str, str]) -> DataFrame:
        """The keys' columns by a version, in these types. What these do not take, no row of a table has."""
        return self._typed(shape, kinds).dropna().distinct()

    def _typed(self, shape: TableSchema, kinds: dict[str, str]) -> DataFrame:
        key = of_key(shape, self.schema.key)
        wires = self._frame(self._texts_in(shape)).withColumn("_wire", parsed("key", key.columns))
        return wires.select(*typed("_wire", key, kinds))

    def _untyped(self) -> bool:
        """Whether `_changes` may have a key that no value of the lake's types tells: a zero date has none there, and
        where moments are texts each version has its own of them."""
        if any(may_not_fit(column) and column.unfit == "string" for column in self.schema.of_key().columns):
            return True
        kinds = self._changed_kinds()
        made = [self._typed(shape, {} if self._own(shape) else kinds) for shape in self._forms()]
        return any(keys.where(_lacking(self.schema.key)).take(1) for keys in made)

    def _frame(self, texts: Sequence[str]) -> DataFrame:
        return self.spark.createDataFrame([(text,) for text in texts], "key string")

    def _kinds(self) -> dict[str, str]:
        return columns_of(self.spark, self.path) if self.lake.is_table(self.path) else {}

    def _changed_kinds(self) -> dict[str, str]:
        """As `_kinds`, for changes: a masked column's values are texts, whatever the table has where no snapshot was
        taken since."""
        masked = _masked(self.schema)
        return {name: kind for name, kind in self._kinds().items() if name.lower() not in masked}

    def _of_keys(self, changes: DataFrame, columns: Sequence[str]) -> DataFrame:
        """These columns of the changes of which key, or an image, is one of the keys, each by its own version."""
        kinds = self._changed_kinds()
        present, parts = self._wanted(self.schema, kinds), []
        for shape in read_by(changes, self._searched()):
            key, own = of_key(shape, self.schema.key), self._own(shape)
            wires = [parsed(name, key.columns, "PERMISSIVE") for name in IMAGES]
            values = typed("_wire", key, {} if own else kinds)
            mine = changes.where(fn.col("schema") == shape.version)
            parts.append(self._joined(mine, wires, values, self._wanted(shape, {}) if own else present, columns))
        return reduce(DataFrame.unionByName, parts).distinct()

    def _of_texts(self, rows: DataFrame, columns: Sequence[str]) -> DataFrame:
        """The same of rows of which nobody knows by what version they are, or whether they are sound."""
        values = [fn.col(f"_wire.{quoted(name)}").alias(name) for name in self.schema.key]
        wanted = self._frame(self.texts()).select(fn.explode(fn.array(*self._spelled("key"))).alias("_wire"))
        wires = [wire for name in IMAGES for wire in self._spelled(name)]
        return self._joined(rows, wires, values, wanted.select(*values).dropna(), columns).distinct()

    def _spelled(self, json: str) -> list[Column]:
        """The key's texts of the JSON in that column, by each spelling that the key's columns had."""
        columns = [[like(shape, name) for name in self.schema.key] for shape in self._searched()]
        keys = dict.fromkeys([self.schema.key, *(tuple(one.sent or one.name for one in key) for key in columns)])
        now = f"struct<{', '.join(f'{quoted(name)}: string' for name in self.schema.key)}>"
        made = [", ".join(f"{quoted(name)} string" for name in key) for key in keys]
        return [fn.from_json(json, shape, READING).cast(now) for shape in made]

    def _joined(
        self, rows: DataFrame, wires: list[Column], values: list[Column], wanted: DataFrame, columns: Sequence[str]
    ) -> DataFrame:
        kept = [
            fn.col(name).alias(beside(str(at))) for at, name in enumerate(columns)
        ]  # a key's column may have such a name
        each = rows.select(*kept, fn.explode(fn.array_compact(fn.array(*wires))).alias("_wire"))
        found = each.select(*[beside(str(at)) for at in range(len(columns))], *values)
        found = found.join(fn.broadcast(wanted), list(self.schema.key), "left_semi")
        return found.select(*[fn.col(beside(str(at))).alias(name) for at, name in enumerate(columns)])


def _or_unplaced(before: Column) -> Column:
    """What somebody else put into the table may have no place."""
    return fn.coalesce(before, fn.lit(True))


def _lacking(key: Sequence[str]) -> Column:
    return reduce(lambda some, one: some | one, [fn.col(quoted(name)).isNull() for name in key])


def _masked(shape: TableSchema) -> set[str]:
    return {column.name.lower() for column in shape.columns if column.mask}


def _same(columns: Sequence[str]) -> list[Column]:
    return [fn.col(f"t.{name}").eqNullSafe(fn.col(f"c.{name}")) for name in columns]


def _all(conditions: Sequence[Column]) -> Column:
    return reduce(lambda some, one: some & one, conditions)
