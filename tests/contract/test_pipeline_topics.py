"""`cleanup` of event topics: delete where a lake is fed, by table elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from contract.pipeline import PipelineFileError, load
from contract.pipeline_topics import settings
from streamer.kafka import topics

FILE = """\
format: 1
name: sales
source: {{host: h, user: u, password_file: /nowhere, server_id: 7}}
tables: {{include: ["shop.*"]}}
kafka: {{bootstrap: "h:9092"{kafka}}}
topics:
  - {{tables: ["shop.a"], partitions: 3{topic}}}
{rest}
"""
NO_LAKE = "checkpoints: {type: file, path: position}"


def written(folder: Path, **parts: str) -> Path:
    path = folder / "sales.yaml"
    path.write_text(FILE.format(**({"kafka": "", "topic": "", "rest": "lake: {path: lake}"} | parts)))
    return path


@pytest.mark.parametrize(
    ("parts", "at"),
    [
        ({"topic": ", cleanup: compact"}, "7: topics[0].cleanup"),
        ({"topic": ", cleanup: 'compact,delete'"}, "7: topics[0].cleanup"),
        ({"kafka": ", cleanup: compact"}, "5: kafka.cleanup"),
    ],
)
def test_a_topic_from_which_a_lake_is_fed_does_not_compact(tmp_path: Path, parts: dict[str, str], at: str) -> None:
    with pytest.raises(PipelineFileError) as caught:
        load(written(tmp_path, **parts))
    told = str(caught.value)
    assert at in told
    assert "loses deletes before the lake" in told
    assert "checkpoints: {type: file}" in told
    load(written(tmp_path, **parts | {"rest": NO_LAKE}))


def test_each_topic_is_made_by_the_first_rule_that_says_so(tmp_path: Path) -> None:
    made = load(written(tmp_path, topic=", cleanup: compact", rest=NO_LAKE))
    assert settings(made.topics, made.kafka, "shop", "a") == (3, 1, 168, "compact")
    assert settings(made.topics, made.kafka, "shop", "b") == (2, 1, 168, "delete")
    wanted = {one.name: one for one in topics.event_topics(made, [("shop", "a"), ("shop", "b")])}
    compacted, plain = wanted["sales.shop.a"], wanted["sales.shop.b"]
    assert compacted.config == {"cleanup.policy": "compact", "max.message.bytes": "10485760"}
    assert (compacted.needs, plain.needs) == ("", "delete")
    assert plain.config["retention.ms"] == "604800000"


def test_what_a_broker_does_by_itself_takes_nothing_before_its_time(tmp_path: Path) -> None:
    """By its size, or with the one copy that it was acknowledged of."""
    for copies, least in ((1, None), (2, None), (3, "2")):
        made = load(written(tmp_path, kafka=f", replication: {copies}", rest="lake: {path: lake}"))
        wanted = [*topics.service_topics(made), *topics.event_topics(made, [("shop", "a"), ("shop", "b")])]
        assert {one.config.get("min.insync.replicas") for one in wanted} == {least}
        kept = [one.config for one in wanted if "delete" in one.config["cleanup.policy"]]
        assert len(kept) > 2
        assert {(config["retention.bytes"], "retention.ms" in config) for config in kept} == {("-1", True)}


def test_a_topic_that_asks_more_copies_than_wanted_is_as_wanted(tmp_path: Path) -> None:
    made = load(written(tmp_path, kafka=", replication: 3", rest="lake: {path: lake}"))
    [wanted] = topics.event_topics(made, [("shop", "b")])

    class Metadata:
        partitions: Any = dict.fromkeys(range(2), type("Partition", (), {"replicas": [1, 2, 3]}))

    for least, differs in (("1", True), ("2", False), ("3", False)):
        found = [*topics._differences(wanted, Metadata, wanted.config | {"min.insync.replicas": least})]
        assert [one.setting for one in found] == ["min.insync.replicas"] * differs
    told = topics.Report(wanted.name, "differs", (topics.Difference("min.insync.replicas", "2", "1"),)).advice()
    assert told.endswith("Used as it is; alter the topic."), "the pipeline file has no key for it"


def test_a_policy_is_the_same_in_any_order(tmp_path: Path) -> None:
    made = load(written(tmp_path, topic=", cleanup: 'compact,delete'", rest=NO_LAKE))
    [wanted] = topics.event_topics(made, [("shop", "a")])

    class Metadata:
        partitions: Any = dict.fromkeys(range(3), type("Partition", (), {"replicas": [1]}))

    found = wanted.config | {"cleanup.policy": "delete,compact"}
    assert list(topics._differences(wanted, Metadata, found)) == []
    assert [one.setting for one in topics._differences(wanted, Metadata, found | {"cleanup.policy": "delete"})] == [
        "cleanup.policy"
    ]
