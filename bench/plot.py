"""The figures as a picture, bench/out/streamer.svg, which the README shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot as plt

PANELS = (
    ("bulk_per_second", "bulk inserts, rows a second"),
    ("single_per_second", "single-row transactions a second"),
    ("bulk_cpu_seconds_per_million", "CPU seconds per million bulk rows"),
    ("peak_resident_mb", "peak memory, MB"),
)
OURS, OTHERS = "#1f6f8b", "#b9c4c9"


def draw(programs: dict[str, dict[str, Any]], file: Path) -> None:
    """One panel a figure, one bar a program."""
    plt.rcParams.update({"font.size": 9, "svg.hashsalt": "headrace", "svg.fonttype": "none"})
    names = list(programs)[::-1]
    figure, axes = plt.subplots(2, 2, figsize=(10, 1.6 + 0.5 * len(names)), sharey=True, layout="constrained")
    colours = [OURS if name.startswith("headrace") else OTHERS for name in names]
    for axis, (key, title) in zip(axes.flat, PANELS, strict=True):
        bars = axis.barh(names, [programs[name][key] for name in names], color=colours)
        axis.bar_label(bars, fmt="{:,.0f}", padding=3)
        axis.set_title(title, loc="left", fontsize=9)
        axis.margins(x=0.18)
        axis.xaxis.set_visible(False)
        axis.spines[["top", "right", "bottom"]].set_visible(False)
    figure.savefig(file, metadata={"Date": None})
    plt.close(figure)
