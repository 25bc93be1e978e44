"""The order of the rooms of `spark/` in docs/architecture.md is that of the code: no folder imports one below it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
TABLE = (ROOT / "docs" / "architecture.md").read_text().split("## The rooms of the jobs")[1].split("\n## ")[0]
ROOMS = [line.split("`")[1].rstrip("/") for line in TABLE.splitlines() if line.startswith("| `")]
SPARK = ROOT / "spark"


def imported(file: Path) -> Iterator[str]:
    """The rooms that a file takes something from."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "spark":
            room = (node.module or "").split(".")[1:2]
            yield from room or (name.name for name in node.names)


def test_the_table_has_each_room_once() -> None:
    assert sorted(ROOMS) == sorted(one.parent.name for one in SPARK.glob("*/__init__.py"))


def test_no_room_imports_one_below_it() -> None:
    back = [
        f"{file.relative_to(ROOT)} imports spark.{room}"
        for place, name in enumerate(ROOMS)
        for file in (SPARK / name).glob("*.py")
        for room in imported(file)
        if room in ROOMS[place + 1 :]
    ]
    assert back == []
