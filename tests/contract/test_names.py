"""Which topic is whose: the one rule that the streamer and the Spark jobs follow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from contract import names
from contract.pipeline import Pipeline, PipelineFileError, load
from contract.pipeline_file import place_of
from streamer.delivery_errors import TopicError
from streamer.kafka import topics

EXAMPLE = Path(__file__).parents[2] / "pipelines" / "flights.yaml"
SERVICE = ["commit-log", "schemas", "ddl", "transactions", "dead-letter", "snapshot-rows"]


def pipeline(name: str = "sales", include: str = "shop.*", exclude: tuple[str, ...] = (), **kafka: Any) -> Pipeline:
    return Pipeline.model_validate(
        {
            "format": 1,
            "name": name,
            "source": {"host": "h", "user": "u", "password": "p", "server_id": 7},
            "tables": {"include": [include], "exclude": exclude},
            "kafka": {"bootstrap": "h:9092", **kafka},
            "lake": {"path": "lake"},
        }
    )


@pytest.mark.parametrize("template", ["{pipeline}.{db}.{table}", "{db}.{table}", "x.{db}.{table}.{db}", "{table}"])
@pytest.mark.parametrize("table", ["orders", "Orders_2", "a.b", "naïve", "_x41", "_xff", "a-b"])
def test_a_tables_topic_is_the_pipelines(template: str, table: str) -> None:
    chosen = pipeline(topic=template)
    topic = names.events_topic(chosen, "shop", table)
    assert names.event_topics(chosen, [topic, "else.where"]) == [topic]


def test_tables_that_take_no_part_have_no_topic() -> None:
    chosen = pipeline(exclude=("shop.tmp*",))
    made = [names.events_topic(chosen, db, table) for db, table in [("shop", "a"), ("shop", "tmp1"), ("other", "a")]]
    assert names.event_topics(chosen, made) == ["sales.shop.a"]


def test_the_topics_of_a_table_whose_template_was_edited() -> None:
    chosen = pipeline(topic="tables.{db}.{table}", earlier_topics=["{pipeline}.{db}.{table}", "all.{pipeline}"])
    made = names.events_topics(chosen, "shop", "a")
    assert made == ("tables.shop.a", "sales.shop.a", "all.sales")
    others = ["sales.other.a", "x.shop.a", "sales.schemas"]
    assert names.event_topics(chosen, [*made, *others]) == sorted(made)
    assert [topic for topic in (*made, *others) if names.is_unknown_topic(chosen, topic)] == ["x.shop.a"]
    assert names.tables_of(chosen, "sales.shop.a") == {("shop", "a")}
    assert names.tables_of(chosen, "all.sales") == set()


@pytest.mark.parametrize(
    "topic", ["sales.shop._xff", "sales.shop._x41", "sales.shop.", "sales.shop.a.b", "SALES.shop.a"]
)
def test_a_name_that_no_table_gives_is_no_event_topic(topic: str) -> None:
    assert not names.is_event_topic(pipeline(), topic)


def test_two_pipelines_on_one_broker_whose_template_has_no_pipeline() -> None:
    """The databases are named as the pipelines are, and hold tables named as service topics end."""
    shop, crm = (pipeline(name, f"{name}.*", topic="{db}.{table}") for name in ("shop", "crm"))
    tables = ["orders", "commit-log", "x.commit-log", "commit-log2", "schemas_"]
    events = {
        p.name: [names.events_topic(p, p.name, table) for table in tables if table != "commit-log"] for p in (shop, crm)
    }
    service = [f"{name}.{kind}" for name in ("shop", "crm", "third") for kind in SERVICE]
    broker = [*events["shop"], *events["crm"], *service, "__consumer_offsets"]
    assert names.event_topics(shop, broker) == sorted(events["shop"])
    assert names.event_topics(crm, broker) == sorted(events["crm"])
    everything = pipeline("all", "*.*", topic="{db}.{table}")
    assert names.event_topics(everything, broker) == sorted([*events["shop"], *events["crm"]])


@pytest.mark.parametrize("kind", SERVICE)
def test_a_table_whose_topic_would_be_a_service_topic_is_refused(kind: str) -> None:
    chosen = pipeline(topic="{db}.{table}")
    with pytest.raises(TopicError, match=rf"table shop\.{kind} would be shop\.{kind}.*kafka\.topic.*tables\.exclude"):
        topics.event_topics(chosen, [("shop", "orders"), ("shop", kind)])
    assert [topic.name for topic in topics.event_topics(pipeline(), [("shop", kind)])] == [f"sales.shop.{kind}"]


def test_topics_that_are_one_name_to_kafka_are_refused() -> None:
    chosen = pipeline(include="*.*", topic="{db}.{table}")
    with pytest.raises(TopicError, match=r"a\.b_c and a_b\.c, a\.b_c and a_b\.c, are one name to Kafka"):
        topics.event_topics(chosen, [("a", "b_c"), ("a_b", "c")])


def test_one_topic_for_all_tables() -> None:
    chosen = pipeline(topic="{pipeline}.all")
    assert names.event_topics(chosen, ["sales.all", "sales.other"]) == ["sales.all"]
    assert len(topics.event_topics(chosen, [("shop", "a"), ("shop", "b")])) == 1


def edited(tmp_path: Path, topic: str, include: str) -> Path:
    path = tmp_path / "edited.yaml"
    text = EXAMPLE.read_text().replace("password: ${HEADRACE_MYSQL_PASSWORD}", "password_file: x")
    path.write_text(text.replace("{pipeline}.{db}.{table}", topic).replace('["nycflights.*"]', include))
    return path


@pytest.mark.parametrize(
    ("topic", "include", "words"),
    [
        ("{pipeline}.{table}", '["*.*"]', "one name would get one topic\n"),
        ("{pipeline}.{table}", '["a.*", "b.t"]', "one name would get one topic"),
        ("{pipeline}.{table}", '["a.t", "b.t"]', "one name would get one topic"),
        ("{pipeline}.{db}-{table}", '["a.*"]', "two tables could get one topic"),
        ("{db}{table}", '["a.*"]', "two tables could get one topic"),
        ("{db}.{table}", '["a.*", "shop.schemas"]', "shop.schemas is kept"),
        ("{pipeline}.ddl", '["a.*"]', "flights.ddl is kept"),
        ("{pipeline}.{table}", '["a.dead-letter"]', "flights.dead-letter is kept"),
        ("{pipeline}/{db}.{table}", '["a.*"]', "'/' is not allowed in a topic's name"),
        ("{pipeline}.{db!r}.{table}", '["a.*"]', "unknown field {db}"),
    ],
)
def test_templates_that_mix_up_topics_are_refused(tmp_path: Path, topic: str, include: str, words: str) -> None:
    path = edited(tmp_path, topic, include)
    with pytest.raises(PipelineFileError) as caught:
        load(path)
    line = next(n for n, text in enumerate(path.read_text().splitlines(), 1) if "topic:" in text)
    assert f"{path}:{line}: kafka.topic: " in str(caught.value)
    assert words in f"{caught.value}\n"
    assert place_of(path, "kafka", "topic") == f"{path}:{line}: kafka.topic"


def test_an_earlier_template_that_names_no_topics_is_refused(tmp_path: Path) -> None:
    path = edited(tmp_path, "x.{db}.{table}", '["shop.*"]')
    path.write_text(path.read_text().replace("  topic:", '  earlier_topics: ["{dbs}"]\n  topic:'))
    with pytest.raises(PipelineFileError, match=r"earlier_topics.*unknown field \{dbs\}"):
        load(path)


@pytest.mark.parametrize(
    ("topic", "include"),
    [
        ("{pipeline}.{table}", '["a.*"]'),
        ("{table}", '["a.t", "b.u"]'),
        ("{pipeline}.{db}", '["*.*"]'),
        ("all", '["*.*"]'),
    ],
)
def test_templates_that_tell_tables_apart_or_join_them_on_purpose_hold(
    tmp_path: Path, topic: str, include: str
) -> None:
    assert load(edited(tmp_path, topic, include)).kafka.topic == topic


def test_the_line_of_a_key_that_is_not_given_is_its_sections(tmp_path: Path) -> None:
    path = edited(tmp_path, "{db}.{table}", '["a.*"]')
    path.write_text(path.read_text().replace("  topic:", "  #"))
    line = next(n for n, text in enumerate(path.read_text().splitlines(), 1) if text.startswith("kafka:"))
    assert place_of(path, "kafka", "topic") == f"{path}:{line}: kafka.topic"


def test_tables_chosen_by_regular_expression() -> None:
    chosen = pipeline(include=r"/shop_\d+\.(orders|items)/", exclude=(r"/.*\.i.*/",))
    assert [chosen.tables.match("shop_1", table) for table in ("orders", "items", "orders2")] == [True, False, False]
    assert not chosen.tables.match("myshop_1", "orders"), "from end to end"
    assert not pipeline(include="/.*/").tables.match("mysql", "user"), "the server's own never take part"
    assert names.is_event_topic(chosen, "sales.shop_12.orders")
    assert not names.is_event_topic(chosen, "sales.shop.orders")
    assert names.is_event_topic(pipeline(include="/a.*/", topic="{pipeline}.all"), "sales.all")
    with pytest.raises(ValueError, match="two databases' tables of one name would get one topic"):
        pipeline(include="/shop.*/", topic="{table}")
    with pytest.raises(ValueError, match="is no regular expression"):
        pipeline(include="/shop(/")


def test_settings_of_topics_by_table() -> None:
    rules = [
        {"tables": ["shop.audit"], "partitions": 1, "retention_hours": 720},
        {"tables": [r"/shop\..*/"], "partitions": 6, "replication": 3},
    ]
    given = pipeline().model_dump() | {"topics": rules, "source": {**pipeline().source.model_dump(), "password": "p"}}
    chosen = Pipeline.model_validate(given)
    found = topics.event_topics(chosen, [("shop", "audit"), ("shop", "orders"), ("other", "t")])
    hours = [int(one.config["retention.ms"]) // 3_600_000 for one in found]
    assert [(one.partitions, one.replication) for one in found] == [(1, 3), (6, 3), (2, 1)]
    assert hours == [720, 168, 168]
    assert {one.config["cleanup.policy"] for one in found} == {"delete"}
    with pytest.raises(ValueError, match=r"tables share topics by kafka\.topic"):
        Pipeline.model_validate(given | {"kafka": {"bootstrap": "h:1", "topic": "{pipeline}.all"}})
    with pytest.raises(ValueError, match="sets nothing"):
        Pipeline.model_validate(given | {"topics": [{"tables": ["a.b"]}]})
