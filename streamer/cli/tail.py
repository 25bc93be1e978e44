"""`headrace tail`."""

from __future__ import annotations

import json
import signal
import threading
from itertools import islice
from typing import Annotated

import typer

from contract import pipeline as pipeline_file
from contract.patterns import any_matches, is_plain
from contract.pipeline import Pipeline
from streamer.cli.console import File, Patterns, err, explained, out, refuse_others, table_patterns
from streamer.errors import HeadraceError

EXAMPLE = "Example: [cyan]headrace tail pipelines/flights.yaml --table nycflights.flights[/]"


def tail(
    pipeline: File,
    table: Patterns = None,
    from_beginning: Annotated[
        bool, typer.Option("--from-beginning", help="what is in the topics first, and not only from now on")
    ] = False,
    limit: Annotated[int | None, typer.Option(min=1, help="end after so many changes")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="records as they are in Kafka, one a line")] = False,
) -> None:
    """Show the changes of the pipeline's tables as they happen, as readers of committed records see them.

    It reads Kafka, and leaves no trace there. Changed columns are shown; they are your rows' data. Until Ctrl-C; what
    it waits for stands on stderr.
    """
    from streamer import tail as tailing
    from streamer.control.change_lines import line
    from streamer.kafka import broker

    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    patterns = table_patterns(table)
    with explained():
        settings = pipeline_file.load(pipeline, secrets="kafka")
        _refuse_without_kafka(settings)
        broker.check(settings)
        refuse_others(settings, filter(is_plain, patterns))
        for told in [*tailing.silent(settings, patterns), tailing.waits_for(settings, patterns, from_beginning)]:
            err.print(told, markup=False)
        wanted = (lambda db, name: any_matches(patterns, db, name)) if patterns else settings.tables.match
        found = tailing.changes(
            settings, wanted, from_beginning, stop.is_set, lambda text: err.print(text, markup=False)
        )
        for change in islice(found, limit):
            if as_json:
                out.file.write(json.dumps(change._asdict(), ensure_ascii=False, separators=(",", ":")) + "\n")
                out.file.flush()
            else:
                out.print(line(change), soft_wrap=True)


def _refuse_without_kafka(pipeline: Pipeline) -> None:
    if not pipeline.has_kafka:
        raise HeadraceError(
            "following", f"pipeline {pipeline.name}", "none of its sinks is Kafka, which is what is read",
            "Look at what its sinks write, or add {type: kafka} to sinks.",
        )  # fmt: skip
