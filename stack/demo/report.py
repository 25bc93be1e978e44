"""The demo's last page: is the lake equal to MySQL, how fast was it, and where to look now."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from contract.names import lake_root
from contract.status import LakeStatus
from stack.demo import lake_query
from stack.demo.journey import Facts, Journey, position
from stack.platform import Platform, Ports

NAMES = ("insert", "update", "delete")
ASKED = ("streamer", "mysql", "kafka")  # ports of servers


def show(console: Console, journey: Journey, peak_memory: int, seconds: float) -> bool:
    """Prints the page. Whether every table is equal and meets its expectations; the last line says the same."""
    status = journey.lake()
    checks: dict[str, Any] = journey.facts.checks.get("tables", {})
    console.print()
    console.print(_tables(journey, status, checks))
    _lake(console, journey)
    console.print()
    _rates(console, journey, peak_memory, seconds)
    _addresses(console, journey)
    rows = sum(table["lake_count"] or 0 for table in checks.values())
    changes = sum(table.changes for table in status.tables.values())
    equal = [name for name, table in checks.items() if table["equal"]]
    good = len(equal) == len(status.tables) > 0 and bool(_expectations(journey.facts).get("ok"))
    if good:
        words = f"ok, {len(equal)} tables equal{_when(checks.values())}, {rows:,} rows; {changes:,} changes by now"
    else:
        words = f"failed, {len(equal)} of {len(status.tables)} tables equal; see {journey.airflow.url}"
    console.print(f"demo: {words}", highlight=False, soft_wrap=True)
    return good


def _tables(journey: Journey, status: LakeStatus, checks: dict[str, Any]) -> Table:
    page = Table(title="MySQL and the lake", title_style="bold", caption=_caption(journey), caption_justify="left")
    page.add_column("table", style="bold")
    for name in ("rows", "changes", "replayed +", "~", "-", "fresh"):
        page.add_column(name, justify="right")
    page.add_column(f"equal to MySQL{_when(checks.values())}")
    for name, table in sorted(status.tables.items()):
        replayed = [f"{journey.replay.changes[table.table, op]:,}" for op in NAMES]
        page.add_row(
            name,
            f"{table.rows:,}",
            f"{table.changes:,}",
            *replayed,
            _age(table.freshness_ms),
            _verdict(checks.get(name)),
        )
    return page


def _caption(journey: Journey) -> str:
    checks = journey.facts.checks.get("tables", {})
    boundaries = {table.get("boundary") for table in checks.values()}
    where = f" at the commit boundary {boundaries.pop()}" if len(boundaries) == 1 else ", each at a commit boundary"
    suite = _expectations(journey.facts)
    evaluated = sum(table["evaluated"] for table in suite.get("tables", {}).values())
    met = "all met" if suite.get("ok") else "NOT all met"
    return (
        f"Equal: same count and same sum of row hashes{where}, while changes went on.\n"
        f"Great Expectations: {evaluated} expectations, {met}. Changes: merged into the lake so far.\n"
        f"Rows: in the lake now; compared were {sum(table['lake_count'] or 0 for table in checks.values()):,}."
    )


def _when(checks: Iterable[dict[str, Any]]) -> str:
    """Of when the rows are that were compared: MySQL is read once, and written to all the while."""
    read = min((table["oldest_read"] for table in checks if table.get("oldest_read")), default="")
    return f" as of {read[11:19]} UTC" if read else ""


def _expectations(facts: Facts) -> dict[str, Any]:
    return facts.checks.get("expectations") or {}


def _age(freshness_ms: int | None) -> str:
    return "-" if freshness_ms is None else f"{max(0.0, time.time() - freshness_ms / 1000):.0f} s ago"


def _verdict(check: dict[str, Any] | None) -> str:
    if check is None:
        return "[red]not checked[/]"
    return "[green]yes[/]" if check["equal"] else f"[red]no[/]: {check.get('reason') or 'counts or checksums differ'}"


def _lake(console: Console, journey: Journey) -> None:
    answer = lake_query.ask(journey.pipeline, journey.replay.days)
    page = Table(
        title=lake_query.QUESTION,
        caption=f"Polars, over {answer.flights:,} flights in the lake's own files, in {answer.seconds:.2f} s",
        title_style="bold",
        caption_justify="left",
    )
    console.print()
    page.add_column("airline")
    for name in ("flights", "minutes late", "planes"):
        page.add_column(name, justify="right")
    for airline, flights, late, planes in answer.rows:
        page.add_row(airline, f"{flights:,}", "-" if late is None else f"{late:.1f}", f"{planes:,}")
    console.print(page)


def _rates(console: Console, journey: Journey, peak_memory: int, seconds: float) -> None:
    replay, facts = journey.replay, journey.facts
    total: Counter[str] = Counter()
    for (_, op), count in replay.changes.items():
        total[op] += count
    kinds = ", ".join(f"{total[op]:,} {op}s" for op in NAMES)
    staged = sum(table["rows"] for table in facts.snapshot.get("tables", {}).values())
    reading, checking = (float(job.get("seconds") or 0) for job in (facts.snapshot, facts.checks))
    merges = ", ".join(f"{changes:,} changes in {seconds:.0f} s" for changes, seconds in facts.merges)
    facing = [
        ("replay", f"{replay.total / max(replay.seconds, 0.1):.0f} changes/s: {kinds}"),
        ("", f"{replay.transactions:,} transactions, {replay.rolled_back} rolled back, column `{replay.column}` added"),
        ("snapshot", f"{staged:,} rows read in {reading:.0f} s, {staged / max(reading, 0.1):,.0f} rows/s"),
        ("streamer", f"killed, resumed from its checkpoint {position(facts.resumed)}"),
        ("compactions", merges),
        ("check", f"{checking:.0f} s, the wait for the merge of what MySQL had included"),
        ("memory", f"{peak_memory / 2**30:.1f} GiB at most, all servers and jobs together"),
        ("time", f"{seconds // 60:.0f} min {seconds % 60:.0f} s"),
    ]
    _pairs(console, facing)


def _addresses(console: Console, journey: Journey) -> None:
    platform = journey.platform
    lake = Path(lake_root(journey.pipeline)).absolute()
    _pairs(
        console,
        [
            ("Airflow", f"{platform.airflow.url}, no login; its page Headrace shows the pipelines"),
            ("streamer", platform.streamer.url),
            ("lake", str(lake)),
            ("MySQL", f"{platform.mysql.address}, user root, password in {platform.mysql.home}/root.password"),
            ("headrace", _exports(platform)),
            ("", ".venv/bin/headrace status pipelines/flights.yaml"),
            ("stop", "make demo-down (data stays; `make demo` goes on with it)"),
        ],
    )


def _exports(platform: Platform) -> str:
    """What the pipeline file asks of the environment; of the ports those that are not its own."""
    ports, usual = platform.ports._asdict(), Ports()._asdict()
    others = [f"HEADRACE_{name.upper()}_PORT={ports[name]}" for name in ASKED if ports[name] != usual[name]]
    return " ".join(["export", f"HEADRACE_MYSQL_PASSWORD=$(cat {platform.mysql.home}/headrace.password)", *others])


def _pairs(console: Console, pairs: list[tuple[str, str]]) -> None:
    """Each in one line, however long: some are there to be copied."""
    width = max(len(name) for name, _ in pairs)
    for name, text in pairs:
        console.print(f"[bold]{name:<{width}}[/]  {text}", soft_wrap=True)
    console.print()
