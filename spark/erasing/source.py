"""Whether the source still has the rows of some keys, and up to where everything of before is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pymysql

from contract.checkpoint import Checkpoint
from contract.counted import counted
from contract.erased_key import ErasedKey
from contract.names import quoted
from contract.pipeline import Pipeline
from contract.pipeline_columns import Shown
from contract.schema import TableSchema
from contract.steps import SNAPSHOT_TABLE
from spark.errors import LakeError
from spark.failures import passing
from spark.kafka.broker import Broker
from spark.snapshot.places import Places
from spark.source import chunks
from spark.source.charsets import converted, writable
from spark.source.choice import shown_of
from spark.source.row_texts import row_json
from spark.source.source import Source
from spark.source.streamed import streamed

TOLD = 20  # keys


def place_without(pipeline: Pipeline, broker: Broker, db: str, table: str, keys: Sequence[ErasedKey]) -> Checkpoint:
    """A checkpoint before and behind which the source had none of the rows. Raises LakeError where it has one."""
    checkpoint = newest(pipeline, broker)
    with streamed(pipeline, checkpoint) as source:
        places = Places(source, checkpoint, broker.checkpoint, tell=_tell, job="the erasure")
        if (schema := source.schema(db, table)) is None:
            return places.now()
        shown = replace(shown_of(pipeline, schema), rounded=source.rounded(schema))
        _refuse_other_key(shown.schema, keys[0])
        _refuse_present(source, shown, keys)
        place = places.now()
        source.awake()  # that waits as long as the streamer goes on
        _refuse_present(source, shown, keys)  # one that came in between would be erased, and be there
        return place


def _refuse_other_key(schema: TableSchema, one: ErasedKey) -> None:
    """Another one, or the same in other letters: the lake finds it by these all the same, but spells records by its
    newest version."""
    if {*schema.key} == {*one.values}:
        return
    same = {name.lower() for name in schema.key} == {name.lower() for name in one.values}
    raise LakeError(
        f"{schema.db}.{schema.table}: the source's key is ({', '.join(schema.key)}) by now, and the lake's is "
        f"({', '.join(one.values)}): no row of it was changed behind the ALTER TABLE (or the edit of `keys` in the "
        "pipeline's file), or none that the streamer has reached. Change one there, whichever and how little, by "
        f"which the stream learns of the key; {'' if same else f'{SNAPSHOT_TABLE}; '}and run the erasure again, with "
        "the keys as they are there, when a compaction has taken that in. Nothing was erased"
    )


def _refuse_present(source: Source, shown: Shown, keys: Sequence[ErasedKey]) -> None:
    there = [(at, one, texts) for at, one in enumerate(keys, 1) if (texts := _answered(source, shown, at, one))]
    if otherwise := [(at, one.text, texts[0]) for at, one, texts in there if one.text not in texts]:
        raise _otherwise(f"{shown.schema.db}.{shown.schema.table}", otherwise)
    if there:
        which = ", ".join(str(at) for at, *_ in there[:TOLD]) + (", ..." if len(there) > TOLD else "")
        raise LakeError(
            f"{shown.schema.db}.{shown.schema.table}: the source still has {len(there)} of {counted(len(keys), 'row')}"
            f", of the keys as they were given that of number {which}, and a check would miss each in the lake. Delete "
            "them there first; or tell the erasure that it is meant so (--present, or present in the DAG's form), and "
            "know that the next change, snapshot or repair of such a row brings it back. Nothing was erased"
        )


def _otherwise(table: str, keys: Sequence[tuple[int, str, str]]) -> LakeError:
    """`keys`: of each its number, and how it is spelled here and there. The log alone has that, which is deleted with
    the run: an error goes to alerts and their webhook, where no erasure looks."""
    for at, here, there in keys:
        _tell(f"{table}: key {at}: {here} is {there} in the source")
    return LakeError(
        f"{table}: the source has the row of key {', '.join(str(at) for at, *_ in keys)} otherwise spelled, which is "
        "the same row to it and another one to the lake. Write the key as it is there (this job's log has both "
        "spellings); or, if the one is meant that was spelled so once, tell the erasure that it is meant so "
        "(--present, or present in the DAG's form). Nothing was erased"
    )


def columns_of(
    pipeline: Pipeline, broker: Broker, schema: TableSchema, shapes: Sequence[TableSchema], unasked: bool
) -> TableSchema | None:
    """The table with the columns by which values that a mask of the key hides are spelled: as the source has them, or,
    where it cannot be asked and need not be (`unasked`), as the last version without the mask had. None where nobody
    knows. Raises LakeError."""
    if not _masked(schema, schema.key):
        return None
    before = next((one for one in reversed(shapes) if not _masked(one, schema.key)), None)
    try:
        with streamed(pipeline, newest(pipeline, broker)) as source:
            found = source.schema(schema.db, schema.table) or before
    except (LakeError, pymysql.MySQLError):
        if not unasked:
            raise
        found = before
    if found is None:
        _tell(f"{schema.db}.{schema.table}: nobody knows the types behind the masks of its key: spell it as records do")
    return found


def _masked(shape: TableSchema, key: Sequence[str]) -> bool:
    """Whether a column of the key is, or is not there at all."""
    return not {name.lower() for name in key} <= {column.name.lower() for column in shape.columns if not column.mask}


def newest(pipeline: Pipeline, broker: Broker) -> Checkpoint:
    """Raises LakeError."""
    checkpoint = broker.checkpoint()
    if checkpoint is None:
        raise LakeError(f"the commit log of {pipeline.name} is empty: start the streamer, then run this again")
    return checkpoint


def _answered(source: Source, shown: Shown, at: int, one: ErasedKey) -> list[str]:
    """What the server says of a key may have its value, so the log alone has that. Raises LakeError."""
    try:
        return _texts(source, shown, one)
    except pymysql.MySQLError as error:
        if passing(error):
            raise
        table = f"{shown.schema.db}.{shown.schema.table}"
        _tell(f"{table}: key {at}: of {one.text} the source says {error.args[-1]}")
        raise LakeError(
            f"{table}: the source, asked for the row of key {at}, gives the error {error.args[0]} (this job's log has "
            "what it says): write the key as the source has it, or mend what it names. Nothing was erased"
        ) from None


def _texts(source: Source, shown: Shown, one: ErasedKey) -> list[str]:
    """The key as it is there: found by the index, as the server compares, and it may take other letters for equal."""
    key = shown.schema.key
    columns = [shown.source.column(name) for name in key]
    texts = [(c.charset, str(one.values[c.name])) for c in columns if converted(c)]
    if not writable(texts, source.row):
        return []  # no row of it has such a text
    text = row_json(shown, source.pipeline.source.flavor, key).replace("%", "%%")
    where = " AND ".join(f"{quoted(name).replace('%', '%%')} = %s" for name in key)
    sql = f"SELECT {text} FROM {chunks.table_sql(shown.source).replace('%', '%%')} WHERE {where}"
    return [_plain(row[0]) for row in source.rows(sql, *(one.values[name] for name in key))]


def _plain(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _tell(line: str) -> None:
    print(line, flush=True)
