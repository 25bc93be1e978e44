"""The command line's tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.table import Table

from contract.start_at import since
from contract.steps import snapshot_of

if TYPE_CHECKING:
    from streamer.kafka.topics import Provisioned
    from streamer.preflight.findings import Result

MARKS = {"ok": "[green]ok[/]", "warning": "[yellow]warning[/]", "error": "[red]error[/]"}
STATES = {"created": "[green]created[/]", "as wanted": "as wanted", "differs": "[yellow]differs[/]"}
SHOWN = 20  # tables
FOLLOWED = "truncate"  # the DDL that the lake follows by itself
COLOURS = {"streaming": "green", "failed": "red", "stopped": "red"}


def show_checks(out: Console, results: Iterable[Result]) -> None:
    table = Table("", "what", "found", box=None, pad_edge=False)
    for result in results:
        text = escape(result.text) + (f"\n[bold]→[/] {escape(result.next_step)}" if result.next_step else "")
        table.add_row(MARKS[result.level], escape(result.subject), text)
    out.print(table)


def show_topics(out: Console, done: Provisioned) -> None:
    table = Table("topic", "state", "difference", box=None, pad_edge=False)
    for report in done.reports:
        table.add_row(escape(report.topic), STATES[report.state], escape(report.advice()))
    out.print(table)


SAME = 1.0  # seconds between an error and the state that it brought


def show_status(out: Console, status: dict[str, Any]) -> None:
    out.print(status_view(status))


def status_view(status: dict[str, Any]) -> Group:
    return Group(*_parts(status))


def _parts(status: dict[str, Any]) -> Iterator[RenderableType]:
    colour = COLOURS.get(status["state"], "yellow")
    reason = f" for {escape(status['waiting_for'])}" if status["waiting_for"] else ""
    since = datetime.fromtimestamp(status["since"], UTC)
    yield f"[bold]{status['pipeline']}[/]  [{colour}]{status['state']}[/]{reason}  since {since:%Y-%m-%d %H:%M:%S} UTC"
    if (error := status["last_error"]) is not None:
        at = datetime.fromtimestamp(error["at"], UTC)
        over = status["state"] in ("streaming", "waiting") and error["at"] < status["since"] - SAME
        named = "an error before this" if over else "last error"
        yield f"[dim]{named}, {at:%Y-%m-%d %H:%M:%S} UTC:[/] {escape(error['message'])}"
    if status["waiting_for"] and (told := status.get("sink", {}).get("last_error")):
        yield f"[yellow]{escape(status['sink']['title'])}:[/] {escape(told)}"
    if (reload := status["tables"]["reload"]) is not None:
        text = f"{reload['message']}\n→ {reload['next_step']}"
        yield f"[yellow]pipeline file not taken:[/] {escape(text)}"
    if "queue" not in status:
        return
    yield _facts(status)
    yield _events(status)


def _facts(status: dict[str, Any]) -> Table:
    position, queue, checkpoint = status["position"], status["queue"], status["checkpoint"]
    table = Table.grid(padding=(0, 3))
    rows = {
        "tables": _tables(status["tables"], status["pipeline"]),
        "lag": _lag(status),
        "rate": f"{status['rate_events_per_second']:,.0f} events/s",
        "read": _place(position["read"]),
        "sent": _place(position["sent"]),
        "released": _place(position["released"]),
        "queue": f"{queue['events']:,} events, {queue['bytes']:,} bytes, oldest {queue['oldest_age_seconds']:.1f} s",
        "checkpoint": f"{checkpoint['age_seconds']:.1f} s old, {checkpoint['events']:,} events" if checkpoint else "-",
        _product(status["source"]): f"{status['source']['host']}:{status['source']['port']}, "
        f"{status['source']['server_version']}"
        + ("" if status["source"]["connected"] else " [yellow](not connected)[/]"),
        **dict(_sink(sink) for sink in status["sinks"]),
        "GTID set": status["gtid_set"] or "empty",
    }
    rows |= {"put aside": _put_aside(aside, status["pipeline"])} if (aside := status.get("put_aside")) else {}
    rows |= {"no room for": _bent(bent)} if (bent := status.get("bent")) else {}
    rows |= {"transforms": _transformed(done)} if (done := status.get("transformed")) else {}
    for name, value in [*rows.items(), *(_ddl(note) for note in status["ddl"]["last"])]:
        table.add_row(f"[dim]{name}[/]", value)
    return table


def _product(source: dict[str, Any]) -> str:
    return "MariaDB" if "mariadb" in source["server_version"].lower() else "MySQL"


def _put_aside(tables: dict[str, int], pipeline: str) -> str:
    told = ", ".join(f"{escape(name)} {count:,}" for name, count in tables.items())
    return f"[yellow]{told} record(s) too large for Kafka:[/] {snapshot_of(pipeline)}, for them"


def _bent(tables: dict[str, int]) -> str:
    told = ", ".join(f"{escape(name)} {count:,}" for name, count in tables.items())
    return f"[yellow]{told} value(s) in Debezium's form of records[/]"


def _transformed(tables: dict[str, dict[str, int]]) -> str:
    """What failed is in yellow."""
    lines = []
    for name, counts in tables.items():
        told = ", ".join(f"{count:,} {outcome.replace('_', ' ')}" for outcome, count in counts.items())
        failed = counts.keys() & {"dead_letter", "passed"}
        lines.append(f"{escape(name)}: [yellow]{told}[/]" if failed else f"{escape(name)}: {told}")
    return "\n".join(lines)


def _sink(sink: dict[str, Any]) -> tuple[str, str]:
    waits = f"{sink['waiting_events']:,} events wait, the oldest for {sink['lag_seconds']:.1f} s"
    where = sink.get("bootstrap", "")
    away = "" if sink["healthy"] else " [yellow](away)[/]"
    return escape(sink["title"]), escape("; ".join(filter(None, [where, waits]))) + away


def _lag(status: dict[str, Any]) -> str:
    known = status.get("lag_bytes")  # a streamer of before says nothing of it
    return f"{status['lag_seconds']:.1f} s" + ("" if known is None else f", {known:,} bytes of binlog")


def _tables(tables: dict[str, Any], pipeline: str) -> str:
    text = escape(", ".join(tables["include"]))
    text += f"; not {escape(', '.join(tables['exclude']))}" if tables["exclude"] else ""
    if cascades := ", ".join(tables.get("cascades", ())):  # a streamer of before says nothing of it
        text += (
            f"\nchanged by foreign keys in silence: {escape(cascades)}; by a schedule, "
            f"{snapshot_of(pipeline)}, for them"
        )
    if keyless := ", ".join(tables["without_key"]):
        step = "choose columns of it in keys, or changes_only: true there, exclude it, or give it one"
        text += f"\n[yellow]joined without a key:[/] {escape(keyless)} ({step})"
    if only := ", ".join(tables.get("changes_only", ())):  # likewise
        text += f"\nchanges only, without rows in the lake: {escape(only)}"
    if joined := tables.get("not_yet_snapshotted"):  # a streamer of before says nothing of it
        text += f"\n[yellow]not yet snapshotted:[/] {escape(_joined(joined))}: {_unread(len(joined), pipeline)}"
    return text


def _joined(tables: dict[str, list[int]]) -> str:
    """The first ones, and since where each is followed."""
    told = [f"{name} (since {since(file, pos)})" for name, (_, file, pos) in sorted(tables.items())]
    more = len(told) - SHOWN
    return ", ".join(told[:SHOWN]) + (f" and {more:,} more" if more > 0 else "")


def _unread(count: int, pipeline: str) -> str:
    them = "it" if count == 1 else "them"
    return f"only changes since then are sent, and rows of before were not read; {snapshot_of(pipeline)}, for {them}"


def _ddl(note: dict[str, Any]) -> tuple[str, str]:
    at = datetime.fromtimestamp(note["ts_ms"] / 1000, UTC)
    kind = note["kind"] if note["kind"] == FOLLOWED else f"[yellow]{note['kind']}[/]"
    return f"DDL {at:%m-%d %H:%M:%S}", f"{kind} {escape(', '.join(note['tables']) or '?')}"


def _events(status: dict[str, Any]) -> Table:
    table = Table("table, since this start", box=None, pad_edge=False)
    for name in ("created", "updated", "deleted", "schema version"):
        table.add_column(name, justify="right")
    for name, counts in sorted(status["events"]["tables"].items()):
        numbers = [f"{counts[op]:,}" for op in "cud"]
        table.add_row(escape(name), *numbers, str(status["schemas"].get(name, "-")))
    return table


def _place(position: dict[str, Any] | None) -> str:
    return f"{position['file']}:{position['pos']:,}" if position else "-"
