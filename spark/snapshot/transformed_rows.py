"""The part of a snapshot's transforms that runs in Spark's Python workers: it imports nothing that those may lack."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from contract import transforms
from contract.pipeline import Pipeline, Streamer
from contract.pipeline_columns import Columns
from contract.pipeline_quality import Quality
from contract.pipeline_sinks import KafkaCheckpoint, KafkaOutput
from contract.schema import TableSchema
from contract.transform_event import Event
from contract.transforms import Chain, Step, TransformFaultError

MADE = "key string, row string, after string, cause string, by string, stops boolean, passed boolean"


def _without_secrets(pipeline: Pipeline) -> Pipeline:
    """Neither the passwords of servers and stores nor the masks' secret is for a worker."""
    bare = {
        "source": pipeline.source.model_copy(update={"password": None}),
        "columns": Columns(),
        "kafka": pipeline.kafka.model_copy(update={"properties": {}}),
        "records": pipeline.records.model_copy(update={"oversized": None}),
        "streamer": Streamer(),
        "sinks": (KafkaOutput(),),
        "checkpoints": KafkaCheckpoint(),
        "archive": None,
        "quality": Quality(),
    }
    return pipeline.model_copy(update=bare)


class RowTransform:
    """Row by row, on a worker. Loads the scripts there, once a task."""

    def __init__(self, pipeline: Pipeline, schema: TableSchema, steps: list[Step], source: dict[str, Any]) -> None:
        self._pipeline, self._schema = _without_secrets(pipeline), schema
        self._steps, self._source = steps, source

    def __call__(self, rows: Iterable[Any]) -> Iterator[tuple[Any, ...]]:
        """`key` and `after` -> MADE: `after` None of a row that does not stay. `key`: as the stream's records have it,
        by which the lake knows that a change came later."""
        chain = Chain(self._pipeline, self._schema, [(step, step.load()) for step in self._steps])
        for key, after in rows:
            passed = chain.passed
            try:
                made = chain.apply(self._event(chain, key, after))
            except TransformFaultError as fault:
                yield key, after, None, fault.cause, fault.name, fault.on_error == "stop", False
                continue
            stays = made is not None and made.topic == chain.topic
            text = transforms.json_text(made.after) if made is not None and stays else None
            if made is not None and made.key != json.loads(key):
                key = (transforms.json_text(made.key) or b"").decode()
            yield key, after, None if text is None else text.decode(), None, None, False, chain.passed != passed

    def _event(self, chain: Chain, key: str, after: str) -> Event:
        images = json.loads(key), None, json.loads(after)
        return Event("r", self._schema.db, self._schema.table, *images, chain.topic, self._source)
