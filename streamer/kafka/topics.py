"""The pipeline's topics: made where they are missing, compared where they exist.

`provision` is the one road for `headrace topics`, for the topics DAG and for the streamer itself. It creates
what is missing and reports what differs of what exists; it changes no setting and no partition count. It
refuses an event topic that compacts (a compacted topic loses deletes before the lake has read them) where the file
does not ask for that, which it may not where it feeds a lake; and a commit log or schema topic that does not
(it would forget where the pipeline stands).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from contract import names
from contract.pipeline import Kafka, Pipeline
from contract.pipeline_file import place_of
from contract.pipeline_sinks import KafkaCheckpoint
from contract.pipeline_topics import TopicSettings, settings
from streamer import source
from streamer.delivery_errors import TopicError
from streamer.kafka import broker

TIMEOUT_SECONDS = 30.0
HOUR_MS = 3_600_000
COPIES = "min.insync.replicas"
NO_KEY = (COPIES, "retention.bytes")  # of the pipeline file
Needs = Literal["delete", "compact", ""]


@dataclass(frozen=True)
class Wanted:
    name: str
    partitions: int
    replication: int
    config: dict[str, str]
    needs: Needs = ""  # the policy by which alone it forgets nothing that is wanted


class Difference(NamedTuple):
    setting: str
    wanted: str
    found: str


@dataclass(frozen=True)
class Report:
    """`state`: `created`, `as wanted`, `differs` (then with `differences`), or, where nothing is made, `missing`."""

    topic: str
    state: str
    differences: tuple[Difference, ...] = ()

    def advice(self) -> str:
        """The differences in words, with the operator's next step; empty without any."""
        if not self.differences:
            return ""
        found = ", ".join(f"{d.setting} is {d.found}, the pipeline file wants {d.wanted}" for d in self.differences)
        own = all(d.setting in NO_KEY for d in self.differences)
        other = "" if own else ", or write its values into the pipeline file"
        return f"{found}. Used as it is; alter the topic{other}."


@dataclass(frozen=True)
class Provisioned:
    """What `provision` did, a report a topic."""

    reports: tuple[Report, ...]

    @property
    def created(self) -> list[str]:
        return [report.topic for report in self.reports if report.state == "created"]

    @property
    def as_wanted(self) -> list[str]:
        return [report.topic for report in self.reports if report.state == "as wanted"]

    @property
    def differing(self) -> dict[str, str]:
        """Topic -> what differs, and the next step."""
        return {report.topic: report.advice() for report in self.reports if report.differences}


def service_topics(pipeline: Pipeline) -> list[Wanted]:
    """The commit log, where the checkpoints are in Kafka, and the schemas: small, compacted, kept for ever; the DDL,
    of which all is kept; and those that the file asks for."""
    config = {
        "cleanup.policy": "compact",
        # A compacted topic is read at every start, and only closed segments are compacted: keep them small.
        "segment.bytes": str(16 * 1024 * 1024),
        "min.cleanable.dirty.ratio": "0.1",
        "max.message.bytes": str(pipeline.kafka.max_message_bytes),
    }
    topics = [names.schemas_topic(pipeline)]
    if isinstance(pipeline.checkpoints, KafkaCheckpoint):
        topics.insert(0, names.commit_log_topic(pipeline))
    kept = {"cleanup.policy": "delete", **_kept("-1"), "max.message.bytes": config["max.message.bytes"]}
    more = [(names.ddl_topic(pipeline), kept)]
    if pipeline.records.transactions:
        more.append((names.transactions_topic(pipeline), kept | {"retention.ms": _retention(pipeline.kafka)}))
    if pipeline.records.heartbeat_seconds is not None:
        more.append((names.heartbeat_topic(pipeline), kept | {"retention.ms": _retention(pipeline.kafka)}))
    if pipeline.dead_letters:
        more.append((names.dead_letter_topic(pipeline), kept))
    copies = pipeline.kafka.replication
    made = [_wanted(topic, 1, copies, config, "compact") for topic in topics]
    made += [_wanted(topic, 1, copies, config, "delete") for topic, config in more]
    if pipeline.snapshot.to_kafka:
        rows = kept | {"retention.ms": _retention(pipeline.kafka)}
        made.append(_wanted(names.snapshot_topic(pipeline), pipeline.kafka.partitions, copies, rows, "delete"))
    return made


def event_topics(pipeline: Pipeline, tables: Iterable[tuple[str, str]]) -> list[Wanted]:
    """One for each `(db, table)`, or fewer where the file's template names one topic for several. Raises TopicError
    for a table that cannot have its topic."""
    tables = list(tables)
    if found := names.meeting_tables(pipeline, tables):
        place = place_of(pipeline.path, "kafka", "topic")
        hint = f"Write {{pipeline}}.{{db}}.{{table}} at {place}; or take the table out, by tables.exclude."
        raise TopicError("naming the topics of", f"pipeline {pipeline.name}", "; ".join(found), hint)
    topics = {names.events_topic(pipeline, db, table): (db, table) for db, table in tables}
    return [event_topic(pipeline, topic, *of) for topic, of in topics.items()]


def event_topic(pipeline: Pipeline, topic: str, db: str, table: str) -> Wanted:
    """`db`, `table`: a table of it; where it has several, no setting is by table."""
    chosen = settings(pipeline.topics, pipeline.kafka, db, table)
    config = {"cleanup.policy": chosen.cleanup, "max.message.bytes": str(pipeline.kafka.max_message_bytes)}
    if "delete" in chosen.cleanup:
        config |= _kept(_retention(chosen))
    needs: Needs = "" if chosen.compacts else "delete"
    return _wanted(topic, chosen.partitions, chosen.replication, config, needs)


def _wanted(name: str, partitions: int, replication: int, config: dict[str, str], needs: Needs) -> Wanted:
    """Of three copies two have each record before it counts as sent: the broker's own default is one, that of a leader
    which may be lost with it."""
    copies = {COPIES: "2"} if replication > 2 else {}
    return Wanted(name, partitions, replication, config | copies, needs)


def compacts(pipeline: Pipeline, db: str, table: str) -> bool:
    """Whether the table's topic takes records with a key alone."""
    return settings(pipeline.topics, pipeline.kafka, db, table).compacts


def _kept(retention_ms: str) -> dict[str, str]:
    """For so long, and not for as long as there is room by the broker's own `log.retention.bytes`."""
    return {"retention.ms": retention_ms, "retention.bytes": "-1"}


def _retention(chosen: TopicSettings | Kafka) -> str:
    return str(chosen.retention_hours * HOUR_MS)


def provision(pipeline: Pipeline, tables: Iterable[tuple[str, str]] | None = None) -> Provisioned:
    """Makes what is missing of the pipeline's topics. `tables`: the `(db, table)` that take part; by default
    the server is asked for those that match now.

    Raises TopicError, BrokerUnreachableError, BrokerRefusedError, and the errors of source.tables; what was
    created until then stays.
    """
    refuse_without(pipeline, "making the topics of")
    broker.check(pipeline)
    chosen = source.tables(pipeline) if tables is None else tables
    return Provisioned(tuple(ensure(pipeline, [*service_topics(pipeline), *event_topics(pipeline, chosen)])))


def refuse_without(pipeline: Pipeline, doing: str) -> None:
    """Raises TopicError where Kafka is none of the pipeline's sinks."""
    if not pipeline.has_kafka:
        hint = "Add {type: kafka} to sinks where its changes are to go to Kafka."
        raise TopicError(doing, f"pipeline {pipeline.name}", "Kafka is none of its sinks", hint)


def ensure(pipeline: Pipeline, wanted: list[Wanted]) -> list[Report]:
    """As `provision`, of the given topics alone."""
    client = broker.admin(pipeline.kafka)
    try:
        existing = client.list_topics(timeout=TIMEOUT_SECONDS).topics
        reports = _compare(client, [topic for topic in wanted if topic.name in existing], existing)
        reports += _create(client, [topic for topic in wanted if topic.name not in existing])
    except KafkaException as error:
        raise broker.typed(error, "making the topics of", pipeline.kafka) from None
    order = {topic.name: at for at, topic in enumerate(wanted)}
    return sorted(reports, key=lambda report: order[report.topic])


def compare(pipeline: Pipeline, wanted: list[Wanted]) -> list[Report]:
    """As `ensure`, but makes nothing: a topic that is not there is `missing`."""
    client = broker.admin(pipeline.kafka)
    try:
        existing = client.list_topics(timeout=TIMEOUT_SECONDS).topics
        found = {r.topic: r for r in _compare(client, [t for t in wanted if t.name in existing], existing)}
    except KafkaException as error:
        raise broker.typed(error, "looking at the topics of", pipeline.kafka) from None
    return [found.get(topic.name, Report(topic.name, "missing")) for topic in wanted]


def _create(client: AdminClient, wanted: list[Wanted]) -> list[Report]:
    if not wanted:
        return []
    new = [NewTopic(t.name, t.partitions, t.replication, config=t.config) for t in wanted]
    for future in client.create_topics(new, operation_timeout=TIMEOUT_SECONDS).values():
        try:
            future.result()
        except KafkaException as error:
            # Someone else was quicker, with the same file.
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise
    return [Report(topic.name, "created") for topic in wanted]


def _compare(client: AdminClient, wanted: list[Wanted], existing: Any) -> list[Report]:
    if not wanted:
        return []
    resources = [ConfigResource(ResourceType.TOPIC, topic.name) for topic in wanted]
    configs = {resource.name: future.result() for resource, future in client.describe_configs(resources).items()}
    reports = []
    for topic in wanted:
        found = {name: str(entry.value) for name, entry in configs[topic.name].items()}
        _refuse_loss(topic, found.get("cleanup.policy", ""))
        differences = tuple(_differences(topic, existing[topic.name], found))
        reports.append(Report(topic.name, "differs" if differences else "as wanted", differences))
    return reports


def _refuse_loss(topic: Wanted, found: str) -> None:
    if topic.needs == "delete" and "compact" in found:
        cause = f"cleanup.policy={found}: a compacted topic loses deletes (or DDL) before they were read"
    elif topic.needs == "compact" and "delete" in found:
        cause = f"cleanup.policy={found}: it would forget where the pipeline stands"
    else:
        return
    hint = f"Set cleanup.policy={topic.needs} on it (kafka-configs.sh --alter), or give the pipeline another name."
    raise TopicError("using topic", topic.name, cause, hint)


def _differences(topic: Wanted, metadata: Any, found: dict[str, str]) -> Iterable[Difference]:
    partitions = len(metadata.partitions)
    replication = min((len(p.replicas) for p in metadata.partitions.values()), default=0)
    if partitions != topic.partitions:
        yield Difference("partitions", str(topic.partitions), str(partitions))
    if replication != topic.replication:
        yield Difference("replication", str(topic.replication), str(replication))
    for name, value in topic.config.items():
        if name == COPIES and found.get(name, "").isdecimal() and int(found[name]) >= int(value):
            continue  # a stricter one
        if set(found.get(name, "").split(",")) != set(value.split(",")):
            yield Difference(name, value, found.get(name, "unknown"))
