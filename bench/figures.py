"""What one run gives, and what is shown of several."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import psutil

PARTS = ("bulk", "single")


@dataclass(frozen=True)
class Run:
    """`events` in `seconds` of the clock. `cpu_seconds`: of the program's process, what its start costs by itself taken
    off. `resident_mb`: its peak."""

    events: int
    seconds: float
    cpu_seconds: float
    resident_mb: float


Runs = dict[str, list[Run]]  # by part


def cpu_seconds(pid: int | None) -> float:
    """What a running program has used since it began."""
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


def peak_mb(pid: int | None) -> float:
    """The most memory that a running program has had resident. What `getrusage` says of a child counts from its fork
    on: the parent's memory is in it."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def medians(runs: Runs) -> dict[str, float]:
    """Each figure's own median: other work on the machine meets one figure more than another."""
    found: dict[str, float] = {}
    for part in PARTS:
        of = runs[part]
        found[f"{part}_per_second"] = median(run.events / run.seconds for run in of)
        found[f"{part}_cpu_seconds_per_million"] = median(run.cpu_seconds / run.events * 1e6 for run in of)
    found["peak_resident_mb"] = median(run.resident_mb for part in PARTS for run in runs[part])
    return found


def result(programs: dict[str, Runs]) -> dict[str, Any]:
    return {
        name: {**medians(runs), "runs": {part: [asdict(run) for run in runs[part]] for part in PARTS}}
        for name, runs in programs.items()
    }


COLUMNS = {
    "bulk_per_second": "bulk rows/s",
    "single_per_second": "single-row tx/s",
    "bulk_cpu_seconds_per_million": "CPU s/million rows",
    "single_cpu_seconds_per_million": "CPU s/million tx",
    "peak_resident_mb": "peak MB",
}


def cells(found: dict[str, Any]) -> list[str]:
    """A program's figures, as they are printed."""
    return [f"{found[key]:,.0f}" if found[key] >= 100 else f"{found[key]:.1f}" for key in COLUMNS]


def markdown(programs: dict[str, Any]) -> str:
    """The table that the README shows."""
    lines = [f"| program | {' | '.join(COLUMNS.values())} |", "|---" + "|---:" * len(COLUMNS) + "|"]
    lines += [f"| {name} | {' | '.join(cells(found))} |" for name, found in programs.items()]
    return "\n".join(lines) + "\n"


# A figure's name, how many times better than the peer it is to be, and which peers are meant.
GOALS = (
    ("bulk_per_second", 6.0, "Debezium, tuned"),
    ("single_per_second", 3.0, "Debezium, tuned"),
    ("bulk_cpu_seconds_per_million", 8.0, "Debezium, tuned"),
    *((f"{part}_per_second", 1.0, peer) for part in PARTS for peer in ("Maxwell", "mysql-event-stream")),
)


def goals(found: dict[str, Any], ours: str) -> list[tuple[str, str, float, float]]:
    """Figure, program, how many times better ours is, how many it is to be."""
    table = []
    for figure, wanted, start in GOALS:
        for name in found:
            if name.startswith(start):
                beside = f"{ours}, MySQL 8.0" if name.endswith("MySQL 8.0") and f"{ours}, MySQL 8.0" in found else ours
                ratio = found[beside][figure] / found[name][figure]
                table.append((figure, name, 1 / ratio if "cpu" in figure else ratio, wanted))
    return table
