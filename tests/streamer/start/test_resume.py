"""Where a start begins, and what it refuses."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import TopicPartition

from contract.pipeline import Pipeline
from streamer import outputs
from streamer.control.status import Status
from streamer.delivery_errors import FirstStartError, OtherFormError, SchemasLostError, TopicError, WrongServerError
from streamer.kafka import broker
from streamer.outgoing.transforming import Transforms
from streamer.patience import Patience
from streamer.servers import Chosen, Servers
from streamer.start import own_topics
from streamer.start import resume as start
from streamer.start.beginning import Beginnings
from tests.checkpoints import SOURCE, checkpoint
from tests.streamer.fakes import pipeline

FOUND: Any = Chosen(pipeline().source, SimpleNamespace(), "")


def test_records_without_schemas_are_refused() -> None:
    with pytest.raises(SchemasLostError, match=r"1,234 records were sent, but the topic sales\.schemas"):
        start.refuse_lost_schemas(checkpoint(events=1234), "the topic sales.schemas", 0)


@pytest.mark.parametrize(("events", "known"), [(0, 0), (1, 1), (0, 2)])
def test_others_go_on(events: int, known: int) -> None:
    start.refuse_lost_schemas(checkpoint(events=events), "the topic sales.schemas", known)


def test_records_of_another_form_behind_each_other_are_refused() -> None:
    start.refuse_other_form(checkpoint(events=5), "headrace", list)
    start.refuse_other_form(checkpoint(events=0), "debezium", list)
    with pytest.raises(OtherFormError, match="records of the form headrace were sent") as refusal:
        start.refuse_other_form(checkpoint(events=5), "debezium", list)
    assert "format: headrace" in refusal.value.hint
    with pytest.raises(OtherFormError, match="form debezium"):
        start.refuse_other_form(checkpoint(events=0, form="debezium"), "headrace", lambda: ["sales.schemas"])


WAS, IS = "{pipeline}.{db}.{table}", "tables.{db}.{table}"


def named(topic: str, *earlier: str, form: str = "headrace") -> Pipeline:
    made = pipeline()
    kafka = made.kafka.model_copy(update={"topic": topic, "earlier_topics": earlier})
    return made.model_copy(update={"kafka": kafka, "records": made.records.model_copy(update={"format": form})})


def test_topics_that_the_lake_would_not_read_any_more_are_refused() -> None:
    known = checkpoint(events=5, templates=(WAS, IS))
    with pytest.raises(TopicError, match=r"kafka\.topic \{pipeline\}.*such as sales\.db\.table") as refusal:
        start.refuse_unnamed_topics(named(IS), known)
    assert f'kafka.earlier_topics: ["{WAS}"]' in refusal.value.hint
    with pytest.raises(TopicError) as refusal:
        start.refuse_unnamed_topics(named("x.{table}", IS), known)
    assert f'kafka.earlier_topics: ["{IS}", "{WAS}"]' in refusal.value.hint


def test_topics_that_the_file_names_or_that_hold_nothing_are_not() -> None:
    known = checkpoint(events=5, templates=(WAS, IS))
    start.refuse_unnamed_topics(named(IS, WAS), known)
    start.refuse_unnamed_topics(named(WAS, IS), known)
    start.refuse_unnamed_topics(named("x.{table}", form="debezium"), known)  # which feeds no lake
    start.refuse_unnamed_topics(named("x.{table}"), checkpoint(events=0, templates=(WAS,)))
    start.refuse_unnamed_topics(named("x.{table}"), checkpoint(events=5))  # of a version that did not say


class Admin:
    """A broker with topics of one partition, each with the offset behind its last record."""

    def __init__(self, ends: dict[str, int]) -> None:
        self.ends = ends

    def list_topics(self, timeout: float) -> Any:
        return SimpleNamespace(topics={name: SimpleNamespace(partitions={0: None}) for name in self.ends})

    def list_offsets(self, asked: dict[TopicPartition, Any]) -> dict[TopicPartition, Future[Any]]:
        """The first offset is the last one, too: every record has expired."""
        return {partition: self._answer(self.ends[partition.topic]) for partition in asked}

    @staticmethod
    def _answer(offset: int) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(SimpleNamespace(offset=offset))
        return future


@pytest.mark.parametrize("topic", ["sales.shop.orders", "sales.schemas"])
def test_a_lost_commit_log_is_noticed_where_all_records_have_expired(
    topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends = {"sales.shop.orders": 0, "sales.schemas": 0, "sales.shop.lines": 0, "other.shop.t": 9}
    monkeypatch.setattr(broker, "admin", lambda kafka: Admin(ends | {topic: 7}))
    used = own_topics.used(pipeline())
    assert used == [topic]
    with pytest.raises(FirstStartError, match=f"have held some: {topic}") as refusal:
        start.refuse_lost_checkpoint(pipeline(), used)
    assert "sales.commit-log" in refusal.value.hint


@pytest.mark.parametrize("ends", [{}, {"sales.shop.orders": 0, "sales.schemas": 0, "other.shop.t": 9}])
def test_a_pipeline_whose_topics_never_held_a_record_begins(
    ends: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broker, "admin", lambda kafka: Admin(ends))
    start.refuse_lost_checkpoint(pipeline(), own_topics.used(pipeline()))


@pytest.mark.parametrize(("known", "flavor"), [(f"{SOURCE}:1-79711", "mariadb"), ("0-1-270,1-2-33", "mysql")])
def test_a_commit_log_of_a_server_of_another_flavor_is_another_pipelines(
    known: str, flavor: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is refused before the pipeline's streamer is shut out, and before the one that stands by is elected."""
    told = checkpoint(gtid_set=known)
    monkeypatch.setattr(outputs, "read_checkpoint", lambda _: told)
    monkeypatch.setattr(broker, "has_topic", lambda *_: True)
    for made in (pipeline(), pipeline(high_availability=True)):
        other = made.model_copy(update={"source": made.source.model_copy(update={"flavor": flavor})})
        patience = Patience(Status(other.name), threading.Event())
        with pytest.raises(WrongServerError, match=f"of another flavor.*source.flavor: {flavor}.*Choose another name"):
            Beginnings(Servers(other), Transforms(other), patience, lambda: False).before_topics(FOUND)
        with pytest.raises(WrongServerError, match="the name sales is another pipeline's"):
            Beginnings(Servers(other), Transforms(other), patience, lambda: False).begin(told, FOUND)


@pytest.mark.parametrize("known", ["", f"{SOURCE}:1-5"])
def test_a_commit_log_of_the_same_flavor_is_none(known: str) -> None:
    start.refuse_other_flavor(pipeline(), checkpoint(gtid_set=known))
