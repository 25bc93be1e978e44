"""`headrace seek`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from contract import pipeline as pipeline_file
from contract import steps
from contract.mistake import MistakeError
from contract.start_at import EXPECTED, parse
from streamer.cli.console import File, explained, out
from streamer.control import logs

if TYPE_CHECKING:
    from streamer.seek.plan import Plan

EXAMPLE = """Examples: [cyan]headrace seek pipelines/flights.yaml --to 2026-11-21T17:00:00Z --dry-run[/],
[cyan]headrace seek pipelines/flights.yaml --to binlog.000012:4[/]"""


def seek(
    pipeline: File,
    to: Annotated[str, typer.Option(help=EXPECTED)],
    skip_changes: Annotated[
        bool, typer.Option("--skip-changes", help="changes that were not delivered may be left out for good")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="only say what it would mean")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="that as JSON")] = False,
) -> None:
    """Let a paused or stopped pipeline go on from another place of its server's binlog.

    Back: changes are sent again, in a new epoch. Forward: changes are lost, which --skip-changes allows. In both cases
    the lake's tables want a snapshot.
    """
    try:
        parse(to)
    except MistakeError as error:
        raise typer.BadParameter(f"{error}: {error.fix}", param_hint="--to") from None
    from streamer.seek import command

    logs.configure("auto", "WARNING")
    with explained():
        loaded = pipeline_file.load(pipeline)
        planned = command.seek(loaded, to, skip_changes, dry_run)
    if as_json:
        out.print_json(json.dumps(planned.facts()))
    else:
        _show(planned, dry_run, steps.snapshot(loaded))


def _show(planned: Plan, dry_run: bool, snapshot: str) -> None:
    place = planned.checkpoint
    if not planned.moves:
        out.print("It stands there already; nothing was moved.")
        return
    out.print(
        f"{'It would go on' if dry_run else 'It goes on'} at {planned.told}, in epoch {place.epoch}.", markup=False
    )
    if planned.again:
        out.print(f"sent again: {planned.again}", markup=False)
    if planned.skipped:
        out.print(f"never sent: {planned.skipped}", markup=False)
    out.print(
        f"When it has passed {planned.snapshot_behind}, {snapshot}: until then the lake's tables count as not "
        "snapshotted.",
        markup=False,
    )
