"""How fast the streamer carries a binlog to a real Kafka, and how fast others do, side by side in one run on one binlog
and one broker: rows a second of bulk inserts, transactions a second of single-row updates, CPU seconds a million rows,
and peak memory. `make bench-streamer`.

The binlog is written first, then read by one program after the other, several times each; medians count. All may use
all cores; `headrace run` is measured pinned to one, too. mysql-event-stream and python-mysql-replication are
libraries that only decode, without Kafka. Maxwell reads no newer MySQL than 8.0, so it has a binlog of MySQL 8.0,
which headrace reads too. Results go to bench/out: streamer.json, streamer.md (a table), streamer.svg (a picture).
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import platform
import signal
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench import figures, load, readers
from bench.arrivals import PeerError
from bench.debezium import DebeziumPeer
from bench.figures import PARTS, Runs
from bench.headrace import Headrace
from bench.load import Begin
from bench.maxwell import MaxwellPeer
from contract import pipeline_kafka as settings
from stack.database import Database
from stack.errors import StackError
from stack.kafka import Kafka
from stack.mysql import MySQL
from stack.mysql80 import MySQL80
from stack.ports import free_port

OUT = Path(__file__).parents[1] / "bench" / "out" / "streamer.json"
OURS = "headrace"  # at least once, as the others
ONE_CORE = "headrace, one core"
EXACTLY_ONCE = "headrace, exactly once"
LIBRARIES = "{}, rows only"
LINGER = settings.Kafka.model_fields["linger_ms"].default
PEERS = ("debezium", "maxwell", *readers.READERS)


class Bench:
    """One server and its load. `runs`: by program and part."""

    def __init__(self, database: Database, kafka: Kafka, folder: Path, chosen: argparse.Namespace) -> None:
        self.database, self._kafka, self._folder, self._chosen = database, kafka, folder, chosen
        self.runs: dict[str, Runs] = {}

    def measure(self, running: ExitStack, peers: list[str]) -> None:
        """Each part is read right after it was written, so that a run ends at the part's end."""
        load.table(self.database)
        headrace = Headrace(self.database, self._kafka, self._folder, self._chosen.linger)
        debezium = [self._debezium(running, tuned) for tuned in (False, True)] if "debezium" in peers else []
        maxwell = self._maxwell(running) if "maxwell" in peers else None
        for part, count in zip(PARTS, (self._chosen.rows, self._chosen.updates), strict=True):
            console.print(f"{self.database.title}, {part}: writing {count:,} rows")
            start = (load.bulk if part == "bulk" else load.updates)(self.database, count)
            for _ in range(self._chosen.repeat):
                self._note(OURS, part, headrace.run(start.gtids, count))
                self._note(ONE_CORE, part, headrace.run(start.gtids, count, core=self._chosen.core))
                self._note(EXACTLY_ONCE, part, headrace.run(start.gtids, count, "exactly_once"))
                self._debezium_runs(debezium, part, start, count)
                if maxwell:
                    self._note("Maxwell, tuned, cold", part, maxwell.run(start, count))
                for name in (one for one in readers.READERS if one in peers):
                    self._note(LIBRARIES.format(name), part, readers.run(name, self.database, start, count))

    def _debezium(self, running: ExitStack, tuned: bool) -> DebeziumPeer:
        peer = DebeziumPeer(self.database, self._kafka, self._folder, tuned)
        running.callback(peer.close)
        return peer

    def _maxwell(self, running: ExitStack) -> MaxwellPeer:
        peer = MaxwellPeer(self.database, self._kafka, self._folder)
        running.callback(peer.close)
        return peer

    def _debezium_runs(self, peers: list[DebeziumPeer], part: str, start: Begin, count: int) -> None:
        for peer in peers:
            for state, run in zip(("cold", "warm"), peer.runs(start, count), strict=True):
                self._note(f"Debezium, {peer.name}, {state}", part, run)

    def _note(self, program: str, part: str, run: figures.Run) -> None:
        console.print(f"  {program}: {run.events / run.seconds:,.0f} a second, {run.cpu_seconds:.2f} CPU s")
        name = program if self.database.name == "mysql" else f"{program}, MySQL 8.0"
        self.runs.setdefault(name, {}).setdefault(part, []).append(run)


def show(programs: dict[str, Any]) -> None:
    table = Table("program", box=None)
    for title in figures.COLUMNS.values():
        table.add_column(title, justify="right")
    for name, found in programs.items():
        table.add_row(name, *figures.cells(found))
    console.print(table)
    for figure, name, ratio, wanted in figures.goals(programs, OURS):
        mark = "[green]reached[/]" if ratio >= wanted else "[red]missed[/]"
        console.print(f"{figure}: {ratio:.1f} times {name}, the goal {wanted:g}: {mark}")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.streamer", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--rows", type=int, default=600_000, help="bulk rows, a multiple of 500")
    parser.add_argument("--updates", type=int, default=100_000, help="single-row transactions")
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)), help="of the streamer that is pinned")
    parser.add_argument("--repeat", type=int, default=5, help="runs of each part; medians count")
    parser.add_argument("--linger", type=float, default=LINGER, help="kafka.linger_ms of headrace")
    parser.add_argument("--peers", default=",".join(PEERS), help="of these, by commas; none: headrace alone")
    parser.add_argument("--plot", type=Path, default=OUT.with_suffix(".svg"), help="where the picture goes")
    return parser.parse_args()


def measured(chosen: argparse.Namespace) -> dict[str, Runs]:
    peers = [name for name in PEERS if name in chosen.peers.split(",")]
    runs: dict[str, Runs] = {}
    with ExitStack() as running:
        folder = Path(running.enter_context(tempfile.TemporaryDirectory(prefix="headrace-bench-")))
        kafka = Kafka(folder / "kafka", free_port(), free_port())
        kafka.start()
        running.callback(kafka.stop)
        for kind in (MySQL, MySQL80):
            here = [name for name in peers if (name == "maxwell") is (kind is MySQL80)]
            if kind is MySQL or here:
                with ExitStack() as serving:
                    server = kind(folder / kind.name, free_port())
                    server.start()
                    serving.callback(server.kill)
                    bench = Bench(server, kafka, folder, chosen)
                    try:
                        bench.measure(serving, here)
                    except (PeerError, StackError) as error:
                        console.print(f"[red]the rest on {server.title} is left out:[/] {error}")
                    runs |= bench.runs
    return {name: found for name, found in runs.items() if len(found) == len(PARTS)}


def main() -> None:
    chosen = arguments()
    logging.basicConfig(level=logging.WARNING)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the servers stop, too
    programs = figures.result(measured(chosen))
    show(programs)
    machine = {"cores": os.cpu_count(), "python": platform.python_version(), "load": os.getloadavg()}
    settings = {"rows": chosen.rows, "updates": chosen.updates, "repeat": chosen.repeat}
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text(json.dumps({"programs": programs, "machine": machine, **settings}, indent=1) + "\n")
    OUT.with_suffix(".md").write_text(figures.markdown(programs))
    from bench.plot import draw

    draw(programs, chosen.plot)
    console.print(f"[dim]{OUT}, {OUT.stem}.md\n{chosen.plot}[/]")


console = Console(highlight=False, width=None if sys.stdout.isatty() else 160)

if __name__ == "__main__":
    main()
