"""`headrace check`: everything a start would ask of the servers, all findings at once, nothing changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Literal

from contract.checkpoint import Checkpoint
from contract.pipeline import Pipeline, Source, Tables
from contract.pipeline_sinks import FileCheckpoint, FilesOutput, KafkaOutput, ObjectsOutput
from streamer import disk, outputs, schemas, source
from streamer.control.running import ask
from streamer.delivery_errors import NotRunningError
from streamer.errors import HeadraceError
from streamer.flavors import flavor
from streamer.kafka import broker, topics
from streamer.outgoing.aside import local
from streamer.outgoing.transforming import Transforms
from streamer.preflight import checks as preflight
from streamer.preflight import unmatched
from streamer.preflight.findings import Result
from streamer.preflight.lake import lake
from streamer.preflight.port import port
from streamer.preflight.replica import replica
from streamer.servers import Servers
from streamer.sinks import files, objects
from streamer.start import first as first_start
from streamer.start import resume as start
from streamer.start import way

BROKER_SECONDS = 5.0
NOT_YET = "is missing yet: headrace run makes it, and so does headrace topics"


def check(pipeline: Pipeline) -> list[Result]:
    """Never raises HeadraceError: each one is a result. What a server that is away would answer is left out."""
    servers = pipeline.source.servers()
    main, *others = [pipeline.model_copy(update={"source": server}) for server in servers]
    runs = _own_streamer(pipeline)
    checkpoint, commit_log = _commit_log(pipeline)
    followed = (checkpoint.tables or pipeline.tables) if checkpoint else None
    server = _caught("server", lambda: _server(main, runs, followed))
    answers = not any(result.level == "error" and result.subject == "server" for result in server)
    chosen: list[tuple[str, str]] = source.tables(main) if answers else []
    wanted = topics.service_topics(pipeline)
    misspelled = any(result.subject == f"server: {unmatched.NAME}" for result in server)
    results = [*server]
    results += _caught("topic", lambda: _tables(pipeline, chosen, wanted, misspelled)) if answers else []
    for other in others:
        results += map(_warning, _caught("server", partial(_server, other, runs, followed)))
    results += commit_log
    results += _caught("sink", lambda: _sinks(pipeline))
    results += _folders(pipeline)
    results += lake(pipeline)
    results += map(_warning, _caught("replica", lambda: replica(main, chosen))) if answers else []
    if commit_log[-1].level != "error":
        results += _caught("broker", lambda: _topics(pipeline, wanted)) if pipeline.has_kafka else []
        results += _caught("checkpoint", lambda: _checkpoint(pipeline, checkpoint)) if answers else []
    results += _caught("transforms", lambda: _transforms(pipeline)) if pipeline.transforms else []
    return [*results, *port(pipeline, runs)]


def _commit_log(pipeline: Pipeline) -> tuple[Checkpoint | None, list[Result]]:
    """The checkpoint, if there is one, and what asking for it told of the broker."""
    found: list[Checkpoint | None] = [None]

    def answers() -> Iterable[Result]:
        broker.answers(pipeline.kafka, BROKER_SECONDS)
        yield Result("ok", "broker", f"Kafka answers at {pipeline.kafka.bootstrap}")

    def ask() -> Iterable[Result]:
        outputs.check_classes(pipeline)
        found[0] = outputs.position(pipeline)
        yield Result("ok", "checkpoint", f"kept in {pipeline.checkpoints.title}")

    results = _caught("broker", answers) if pipeline.has_kafka else []
    if all(result.level == "ok" for result in results):
        results += _caught("checkpoint", ask)
    return found[0], results


def _warning(result: Result) -> Result:
    """Of a server that is not read now."""
    return replace(result, level="warning") if result.level == "error" else result


def _caught(subject: str, step: Callable[[], Iterable[Result]]) -> list[Result]:
    """The step's results, and its error, if any, as the last one."""
    results: list[Result] = []
    try:
        results.extend(step())
    except HeadraceError as error:
        text = f"{error.operation} {error.object}: {error.cause}"
        results.append(Result("error", subject, text, error.hint))
    return results


def _server(pipeline: Pipeline, runs: bool, followed: Tables | None) -> Iterable[Result]:
    """`runs`: the pipeline's own streamer, which may read under its server id; `followed`: the tables by its
    checkpoint."""
    facts = source.facts(pipeline.source)
    where = f"{flavor(pipeline.source).title} {facts.version} at {pipeline.source.where}"
    yield Result("ok", "server", f"{where}, binlog {facts.file}")
    for finding in preflight.run_checks(pipeline, followed=followed):
        if runs and (finding.level, finding.name) == ("warning", "server_id"):
            continue
        level = "error" if finding.stops else finding.level
        yield Result(level, f"server: {finding.name}", finding.what, finding.statement or "")


def _tables(
    pipeline: Pipeline, chosen: list[tuple[str, str]], wanted: list[topics.Wanted], misspelled: bool
) -> Iterable[Result]:
    """Adds the tables' topics to `wanted`. `misspelled`: which pattern matches nothing is told already."""
    if chosen:
        yield Result("ok", "tables", ", ".join(f"{db}.{table}" for db, table in chosen))
    elif taken := _taken_out(pipeline):
        text = f"tables.exclude takes out all {taken} tables that tables.include chooses"
        yield Result("warning", "tables", text, "Mend tables.exclude.")
    elif not misspelled:
        globs = ", ".join(pipeline.tables.include)
        yield Result("warning", "tables", f"no table matches {globs} now", "Mend tables.include, or make the tables.")
    wanted += topics.event_topics(pipeline, chosen)


def _taken_out(pipeline: Pipeline) -> int:
    """How many tables there would be without `exclude`."""
    if not pipeline.tables.exclude:
        return 0
    included = pipeline.tables.model_copy(update={"exclude": ()})
    return len(source.tables(pipeline.model_copy(update={"tables": included})))


def _folders(pipeline: Pipeline) -> Iterable[Result]:
    """Those on this machine into which nothing could be written."""
    named = [("sink", one.title, one.path) for one in pipeline.sinks if isinstance(one, FilesOutput)]
    if isinstance(pipeline.checkpoints, FileCheckpoint):
        named.append(("checkpoint", pipeline.checkpoints.title, pipeline.checkpoints.path))
    oversized = pipeline.records.oversized
    if oversized is not None and (folder := local(oversized)) is not None:
        named.append(("oversized", "records.oversized", folder))
    for subject, title, folder in named:
        if why := disk.obstacle(folder):
            yield Result("error", subject, f"{title}: {why}", "Name a folder that the streamer's user may write.")


def _sinks(pipeline: Pipeline) -> Iterable[Result]:
    for output in pipeline.sinks:
        if isinstance(output, FilesOutput):
            files.used(output)
        elif isinstance(output, ObjectsOutput):
            objects.used(output)
        if not isinstance(output, KafkaOutput):
            yield Result("ok", "sink", output.title)


def _transforms(pipeline: Pipeline) -> Iterable[Result]:
    Transforms(pipeline)
    names = ", ".join(dict.fromkeys(rule.name for rule in pipeline.transforms))
    yield Result("ok", "transforms", f"{names}: loaded, not tried on a change")


def _topics(pipeline: Pipeline, wanted: list[topics.Wanted]) -> Iterable[Result]:
    for report in topics.compare(pipeline, wanted):
        level: Literal["ok", "warning"] = "warning" if report.differences else "ok"
        state = NOT_YET if report.state == "missing" else report.state
        yield Result(level, "topic", f"{report.topic} {state}", report.advice())


def _checkpoint(pipeline: Pipeline, checkpoint: Checkpoint | None) -> Iterable[Result]:
    if checkpoint is None:
        yield from _first(pipeline)
        return
    servers = Servers(pipeline)
    checkpoint = way.chosen(servers, checkpoint)
    seen = pipeline.source.gtids(checkpoint.behind)
    found = servers.choose(checkpoint, seen)
    reading = pipeline.model_copy(update={"source": found.source})
    for finding in preflight.run_checks(reading, seen, checkpoint.ts_ms / 1000):
        if finding.name == "lag":  # the others were found without the checkpoint
            yield Result(finding.level, "checkpoint", finding.what, finding.statement)
    start.refuse_lost_schemas(checkpoint, schemas.place(pipeline), len(outputs.known_schemas(pipeline)))
    anew = f"; {found.anew} ({found.source.where}), the epoch will rise" if found.anew else ""
    yield Result("ok", "checkpoint", f"{checkpoint.file}:{checkpoint.pos}, {checkpoint.events:,} events released{anew}")
    for server in pipeline.source.servers():
        if server.where != found.source.where:
            yield from map(_warning, _caught("failover", partial(_takes_over, server, checkpoint)))


def _takes_over(server: Source, checkpoint: Checkpoint) -> Iterable[Result]:
    start.resume(checkpoint, source.facts(server), server.gtids(checkpoint.behind))
    yield Result("ok", "failover", f"{server.where} has all that was streamed, and all that was not")


def _first(pipeline: Pipeline) -> Iterable[Result]:
    start.refuse_lost_checkpoint(pipeline, outputs.used(pipeline))
    found = Servers(pipeline).any()
    begin = first_start.find(pipeline.model_copy(update={"source": found.source}), found.facts)
    yield Result("ok", "checkpoint", f"none yet: the first start begins at {begin.told}")
    if lost := found.facts.purged.subtract(begin.seen):
        hint = "Start at earliest, with a new snapshot, or at a later place."
        yield Result("error", "checkpoint", f"the server has purged what comes after it: {lost}", hint)


def _own_streamer(pipeline: Pipeline) -> bool:
    try:
        return bool(ask(pipeline))
    except NotRunningError:
        return False
