"""What is of Kafka alone says so of a pipeline without it, and asks no broker."""

from __future__ import annotations

from pathlib import Path

import pytest

from contract.pipeline import Pipeline, load
from streamer import tail
from streamer.delivery_errors import TopicError
from streamer.kafka import topics
from tests.contract.test_pipeline_sinks import FILE, written


@pytest.fixture
def nowhere(tmp_path: Path) -> Pipeline:
    return load(written(tmp_path, "sinks: [{type: stdout}]\n" + FILE))


def test_there_are_no_topics_to_make(nowhere: Pipeline) -> None:
    with pytest.raises(TopicError, match="Kafka is none of its sinks"):
        topics.provision(nowhere, [("shop", "orders")])


def test_there_are_no_records_to_show(nowhere: Pipeline) -> None:
    with pytest.raises(TopicError, match="Kafka is none of its sinks"):
        next(tail.changes(nowhere, nowhere.tables.match, False, lambda: False, print))
