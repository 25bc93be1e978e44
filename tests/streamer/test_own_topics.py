"""Which topics are a pipeline's own."""

from __future__ import annotations

from typing import Any

import pytest

from contract import names
from contract.pipeline import Pipeline
from streamer import own_topics, topics


def pipeline(**kafka: Any) -> Pipeline:
    return Pipeline.model_validate(
        {
            "format": 1,
            "name": "sales",
            "source": {"host": "h", "user": "u", "password": "p", "server_id": 7},
            "tables": {"include": ["shop.*"]},
            "kafka": {"bootstrap": "h:9092", **kafka},
            "lake": {"path": "lake"},
        }
    )


@pytest.mark.parametrize("template", ["{pipeline}.{db}.{table}", "{db}-{table}", "x.{db}.{table}.{db}"])
@pytest.mark.parametrize("table", ["orders", "Orders_2", "a.b", "naïve", "_x41"])
def test_a_tables_topic_is_the_pipelines(template: str, table: str) -> None:
    chosen = pipeline(topic=template)
    assert own_topics.of_pipeline(chosen, names.events_topic(chosen, "shop", table))
    assert not own_topics.of_pipeline(chosen, names.events_topic(chosen, "elsewhere", table))


def test_one_topic_for_all_tables() -> None:
    chosen = pipeline(topic="{pipeline}.all")
    assert own_topics.of_pipeline(chosen, "sales.all")
    assert not own_topics.of_pipeline(chosen, "sales.other")
    assert len(topics.event_topics(chosen, [("shop", "a"), ("shop", "b")])) == 1


def test_another_pipelines_topics_are_not() -> None:
    assert not own_topics.of_pipeline(pipeline(), "sales2.shop.orders")
    assert not own_topics.of_pipeline(pipeline(), "sales.commit-log")
