"""The command: the stretch, both readers, and the tables that it prints."""

from __future__ import annotations

import secrets
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from contract.pipeline import Pipeline, Source
from contract.start_at import Place
from streamer import source as server
from streamer.crosscheck import ours, reference, stretch
from streamer.crosscheck.compare import Comparison, Report
from streamer.crosscheck.errors import PlaceError
from streamer.crosscheck.values import EVENTS, KNOWN
from streamer.errors import UnsupportedTransactionError

# Server ids of the two dumps: no streamer's, for the server ends the older of two dumps under one id.
LOWEST_ID, IDS = 3_000_000_000, 1_000_000_000


def crosscheck(pipeline: Pipeline, last: int, begin: str | None, end: str | None) -> Report:
    """From `begin` (a place; else where the `last` transactions begin) to `end` (else the present end). Raises
    HeadraceError."""
    reference.package()  # before anything is read
    asked = stretch.place(begin, "--from") if begin else None
    until = stretch.place(end, "--to") if end else None
    facts = server.facts(pipeline.source)
    if not facts.gtids:
        what, cause = f"the binlog of {pipeline.source.where}", "the server has no GTIDs, by which readers are compared"
        raise PlaceError("read", what, cause, "Switch them on, as headrace check says.")
    to = until or Place(facts.file, facts.pos)
    first, second = _readers(pipeline.source)
    start = stretch.first_behind(first, asked) if asked else stretch.last(first, last)
    stretch.refuse_far(start)
    wanted = pipeline.tables.match
    try:
        return Comparison(ours.steps(first, start, to, wanted), reference.steps(second, start, wanted)).run()
    except UnsupportedTransactionError as error:
        error.hint = "Give a stretch without it, by --from and --to: it may begin in an earlier binlog file"
        raise


def _readers(source: Source) -> tuple[Source, Source]:
    number = LOWEST_ID + secrets.randbelow(IDS - 1)
    return tuple(source.model_copy(update={"server_id": number + n}) for n in range(2))  # type: ignore[return-value]


def show(out: Console, report: Report, values: bool) -> None:
    out.print(
        f"{report.transactions:,} transactions, {report.events:,} events and {report.values:,} values compared with "
        "mysql-replication"
    )
    if report.known:
        table = Table("known defect of mysql-replication", "where", "times", box=None, pad_edge=False)
        for (name, where), count in sorted(report.known.items()):
            table.add_row(escape(_words(name)), escape(where), f"{count:,}")
        out.print(table)
    if report.unknown:
        out.print(_unexplained(report, values))
        if report.unknown > len(report.unexplained):
            out.print(f"and {report.unknown - len(report.unexplained):,} more")
    else:
        out.print("[green]no difference is unexplained[/]")


def facts(report: Report, values: bool) -> dict[str, Any]:
    """The same for a program; `values`: with those that differ."""
    hidden = () if values else ("ours", "theirs")
    return {
        "transactions": report.transactions,
        "events": report.events,
        "values": report.values,
        "known": [
            {"defect": _words(name), "where": where, "times": count}
            for (name, where), count in sorted(report.known.items())
        ],
        "unexplained": report.unknown,
        "first_unexplained": [
            {name: value for name, value in asdict(one).items() if name not in hidden} for one in report.unexplained
        ],
    }


def _words(name: str) -> str:
    return KNOWN[name][1] if name in KNOWN else EVENTS[name]


def _unexplained(report: Report, values: bool) -> Table:
    columns = ("unexplained", "where", "what", *(("ours", "mysql-replication's") if values else ()))
    table = Table(*columns, box=None, pad_edge=False)
    for one in report.unexplained:
        row = (one.gtid, one.where, one.what, *((one.ours, one.theirs) if values else ()))
        table.add_row(*map(escape, row))
    return table
