"""`headrace mend FILE TOPIC PARTITION OFFSET`: takes back a record that is none of the pipeline's own.

In a topic that compacts the last record of a key counts: behind the broken one comes what its key had before, or a
tombstone. The DDL topic keeps all: there the record is removed with those before it, which a compaction takes for lost
(landing/ddl_topic.py), so that each table counts as not snapshotted until it is read again. No record that can be read
is touched in the first case, and none is taken for one that cannot.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from confluent_kafka import KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from contract import steps
from contract.pipeline import Pipeline, load
from contract.pipeline_file import PipelineFileError
from spark.errors import LakeError
from spark.kafka.own_records import Kind, kinds
from spark.kafka.reading import Reading, Record, Silent, connection, numbers_of, records_of

SECONDS = 30.0
AS_TOLD = "as the message of the job that stopped has it"
USAGE = "headrace mend FILE TOPIC PARTITION OFFSET, as the message of a job has them"


def mend(pipeline: Pipeline, topic: str, partition: int, offset: int) -> str:
    """Gives what was done. Raises LakeError where there is nothing to be done, KafkaException."""
    kind = kinds(pipeline).get(topic)
    if kind is None:
        raise LakeError(
            f"{topic} is none of the topics that this is for: {', '.join(kinds(pipeline))}. Name one of these, "
            f"{AS_TOLD}"
        )
    with Reading(pipeline) as consumer:
        known = partition in numbers_of(consumer, topic)
        records = list(records_of(consumer, topic, partition)) if known else []
    bad = next((record for record in records if record.offset == offset), None)
    if bad is None:
        raise LakeError(
            f"{topic}, partition {partition}, has no record at offset {offset}, or has it no more. Give the place "
            f"{AS_TOLD}"
        )
    if bad.value is None or _readable(kind, bad):
        raise LakeError(
            f"the record at offset {offset} of {topic}, partition {partition}, can be read: it stays as it is. Give "
            f"the place {AS_TOLD}; where no job stops at a record there is nothing to mend"
        )
    return _put_behind(pipeline, kind, bad, records) if kind.compacted else _remove(pipeline, bad)


def _readable(kind: Kind, record: Record) -> bool:
    with suppress(ValueError):
        kind.parse(record.value or b"")
        return True
    return False


def _put_behind(pipeline: Pipeline, kind: Kind, bad: Record, records: Sequence[Record]) -> str:
    mine = [record for record in records if record.key == bad.key]
    if mine[-1].offset > bad.offset:
        raise LakeError(
            f"another record of its key stands behind the one at offset {bad.offset} of {bad.topic}: it is passed "
            "by, and nothing is left to mend. Run the job again"
        )
    good = [record for record in mine if record.value is not None and _readable(kind, record)]
    failed: list[Any] = []
    producer = Producer(connection(pipeline), logger=Silent())
    value = good[-1].value if good else None
    producer.produce(
        bad.topic, value, bad.key, bad.partition, on_delivery=lambda error, _: failed.append(error) if error else None
    )
    if producer.flush(SECONDS) or failed:
        raise LakeError(f"{bad.topic} did not take the record: {failed[0] if failed else 'no answer'}. Run this again")
    done = f"the one of offset {good[-1].offset} again" if good else "a tombstone, since its key had nothing before"
    return f"behind the record at offset {bad.offset} of {bad.topic} stands {done}: it is passed by from now on"


def _remove(pipeline: Pipeline, bad: Record) -> str:
    admin = AdminClient(connection(pipeline), logger=Silent())
    place = TopicPartition(bad.topic, bad.partition, bad.offset + 1)
    for done in admin.delete_records([place], operation_timeout=SECONDS).values():
        done.result(SECONDS)
    return (
        f"{bad.topic}, partition {bad.partition}, begins behind offset {bad.offset} now. Any statement may be missing: "
        f"each table counts as not snapshotted from the next compaction on, until you {steps.snapshot(pipeline)}"
    )


def main(given: Sequence[str]) -> int:
    try:
        file, topic, partition, offset = given
        numbers = int(partition), int(offset)
    except ValueError:
        print(f"usage: {USAGE}", file=sys.stderr)
        return 2
    try:
        print(mend(load(file), topic, *numbers))
    except PipelineFileError as error:
        print(error, file=sys.stderr)
        return 2
    except LakeError as error:
        print(f"error (mend): {error}", file=sys.stderr)
        return 1
    except KafkaException as error:
        step = "See that the broker runs and that kafka.bootstrap names it, then run this again"
        print(f"error (mend): mending {topic} of {file}: {error.args[0].str()}. {step}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
