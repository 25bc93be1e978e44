"""The jobs that a message asks for as the next step, each by both its ways: as the DAG of who runs Airflow, and as a
command. Each continues a sentence, without a stop at its end."""

from __future__ import annotations

from collections.abc import Sequence

from contract.pipeline import Pipeline
from contract.topic_template import fill

# Where neither the pipeline's name nor its file is known.
SNAPSHOT_TABLE = "run the snapshot DAG, or `headrace snapshot`, for the table"
CHECK_SHOWS = "A check shows what differs now, and a repair mends that"


def snapshot(pipeline: Pipeline) -> str:
    return snapshot_of(pipeline.name, pipeline.path)


def snapshot_of(name: str, file: object = "FILE") -> str:
    """`name`: the pipeline's; `file`: how its path is to be written."""
    return _run(name, "snapshot", f"snapshot {file}")


def snapshot_table(pipeline: Pipeline, table: str) -> str:
    """Of one table, as `db.table`, which the lake has at the end."""
    command = f"headrace snapshot {pipeline.path} --table {table} --compact"
    return f"run the DAG {pipeline.name}.snapshot with the table {table}, or `{command}`"


def first_snapshot(pipeline: Pipeline) -> str:
    """What makes a lake of a pipeline that has none, with the rows in it at the end."""
    return _run(pipeline.name, "snapshot", f"snapshot {pipeline.path} --compact")


def compaction(pipeline: Pipeline) -> str:
    return _run(pipeline.name, "compaction", f"compact {pipeline.path}")


def check(pipeline: Pipeline) -> str:
    """Of all rows, also where the file asks for samples."""
    command = f"headrace verify {pipeline.path} --whole"
    return f"run the DAG {pipeline.name}.quality with its switch for all rows, or `{command}`"


def staged(pipeline: Pipeline) -> str:
    """Of rows that are beside the lake: what takes them in. Continues "it is"."""
    if pipeline.compaction.schedule:
        return "staged, for the next compaction"
    return f"staged: {compaction(pipeline)}, which takes that in"


def topics(pipeline: Pipeline) -> str:
    return _run(pipeline.name, "topics", f"topics {pipeline.path}")


def other_flavor(pipeline: Pipeline, flavor: str) -> tuple[str, str]:
    """Of a checkpoint of a server of that flavor, which is not the file's: what is wrong, and the way on, as two
    sentences, the first without a stop at its end."""
    return (
        f"its checkpoint is of a server of another flavor, {flavor}, and {pipeline.path} says source.flavor: "
        f"{pipeline.source.flavor}; the name {pipeline.name} is another pipeline's",
        f"Choose another name in {pipeline.path}; or, where the file is meant for that pipeline, correct its section "
        "source.",
    )


def unnamed_topics(pipeline: Pipeline, templates: Sequence[str]) -> tuple[str, str]:
    """Of `templates` by which topics were named and that the file does not have: what is wrong, and the way on, as two
    sentences, the first without a stop at its end."""
    were, first = ", ".join(templates), fill(templates[0], pipeline.name, "db", "table")
    earlier = ", ".join(f'"{one}"' for one in dict.fromkeys((*pipeline.kafka.earlier_topics, *templates)))
    return (
        f"changes were sent into topics by kafka.topic {were} (such as {first}), of which the file says nothing: the "
        "lake would lack what it has not read of them",
        f"Write kafka.earlier_topics: [{earlier}], and leave it there, in the file of each streamer and job; or write "
        "kafka.topic as it was.",
    )


def _run(name: str, dag: str, command: str) -> str:
    return f"run the DAG {name}.{dag}, or `headrace {command}`"
