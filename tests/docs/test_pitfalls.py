"""docs/pitfalls.md names tests that are there, and that run on the servers it says."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "pitfalls.md"
SOAK = " (soak)"
SERVERS = {"9.7": "mysql", "8.0": "mysql80", "MariaDB": "mariadb"}
# Fixtures by which a test runs on every server, or on MySQL 9.7.
EACH, NEWEST = (
    {"server", "another", "pair", "own", "site", "waiting", "kinds"},
    {"mysql", "mysql_server", "make", "shop", "pipeline"},
)


class Line(NamedTuple):
    pitfall: str
    tests: tuple[str, ...]
    servers: str
    why: str


def lines() -> list[Line]:
    found = re.findall(r"^\| (.+?) \| (`.+?`) \| (.+?) \| (.*?) ?\|$", PAGE.read_text(), re.MULTILINE)
    return [Line(pitfall, tuple(re.findall(r"`(.+?)`", tests)), *rest) for pitfall, tests, *rest in found]


@cache
def module(name: str) -> ast.Module:
    path = ROOT / (name if "/" in name else f"tests/integration/{name}")
    return ast.parse(path.read_text()) if path.exists() else ast.Module([], [])


def named(name: str) -> list[ast.FunctionDef]:
    """The one that is named, or all of a file."""
    file, _, chosen = name.partition("::")
    found = [one for one in module(file).body if isinstance(one, ast.FunctionDef) and one.name.startswith("test_")]
    return [one for one in found if chosen in ("", one.name)]


def marks_of(name: str, test: ast.FunctionDef) -> list[ast.expr]:
    """Of the test and of its file; those of single parameters are of no server."""
    body = module(name.partition("::")[0]).body
    marks = [one.value for one in body if isinstance(one, ast.Assign) and ast.unparse(one.targets[0]) == "pytestmark"]
    return [mark for mark in [*test.decorator_list, *marks] if "parametrize" not in ast.unparse(mark)]


def left_out(marks: list[ast.expr], kinds: set[str]) -> set[str]:
    """The servers that marks of these kinds name."""
    calls = [one for mark in marks for one in ast.walk(mark) if isinstance(one, ast.Call)]
    ours = [call for call in calls if ast.unparse(call.func).removeprefix("pytest.mark.") in kinds]
    found = {argument.value for call in ours for argument in call.args if isinstance(argument, ast.Constant)}
    return found & set(SERVERS.values())


def runs_on(name: str, soaks: bool) -> set[str]:
    """With `soaks` also those on which it runs in `make soaks` alone."""
    found: set[str] = set()
    for test in named(name):
        asked = {argument.arg for argument in test.args.args}
        marks = marks_of(name, test)
        if not soaks and any(ast.unparse(one) == "pytest.mark.soak" for mark in marks for one in ast.walk(mark)):
            continue
        here = asked & set(SERVERS.values())
        here |= {"mysql"} if asked & NEWEST else set()
        here |= set(SERVERS.values()) if asked & EACH else set()
        found |= here - left_out(marks, {"lacks"} if soaks else {"lacks", "soak_on"})
    return found


@pytest.mark.parametrize("line", lines(), ids=lambda line: line.pitfall)
def test_a_line_names_named_its_servers(line: Line) -> None:
    assert all(named(name) for name in line.tests), "a test of the page is gone"
    wanted = set(SERVERS) if line.servers == "all" else set(line.servers.split(", ")) - {"none"}
    soaks = {server.removesuffix(SOAK) for server in wanted if server.endswith(SOAK)}
    always = {server for server in wanted if not server.endswith(SOAK)}
    assert always | soaks <= set(SERVERS)
    assert {SERVERS[server] for server in always} <= {server for name in line.tests for server in runs_on(name, False)}
    assert {SERVERS[server] for server in soaks} <= {server for name in line.tests for server in runs_on(name, True)}
    assert bool(line.why) == (line.servers != "all")


def test_the_page_has_its_lines() -> None:
    """Each row of its tables is one that the test above has looked at."""
    rows = [row for row in PAGE.read_text().splitlines() if row.startswith("|")]
    heads = [row for row in rows if row.startswith("| pitfall |")]
    pitfalls = [line.pitfall for line in lines()]
    assert len(pitfalls) == len(rows) - 2 * len(heads), "a row is not of the form"
    assert len(set(pitfalls)) == len(pitfalls)
    assert len(pitfalls) >= 49, "a pitfall that was met may not be forgotten"
