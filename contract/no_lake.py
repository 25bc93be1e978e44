"""Why a pipeline feeds no lake, as a mistake of its file, for who asks for one."""

from __future__ import annotations

from contract.pipeline import Pipeline
from contract.pipeline_file import problem_at

FEEDS_NONE = "the pipeline feeds no lake, which reads events and commit log from Kafka"


def refuse(pipeline: Pipeline) -> None:
    """Raises PipelineFileError where it feeds none."""
    if pipeline.feeds_lake:
        return
    if not pipeline.has_kafka:
        fix = "add {type: kafka} to sinks, and leave checkpoints out, which are in Kafka then"
        raise problem_at(pipeline.path, ("sinks",), FEEDS_NONE, "", fix)
    if not pipeline.commits_in_kafka:
        raise problem_at(
            pipeline.path, ("checkpoints",), FEEDS_NONE, "", "leave checkpoints out, which are in Kafka then"
        )
    fix = "remove it; a second pipeline, of another name, can feed a lake beside this one"
    raise problem_at(pipeline.path, ("records", "format"), FEEDS_NONE, "", fix)
