"""`python -m stack mysql`: the client that is run, at which server, and with which words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from stack import cli, mysql
from stack.errors import StackError


@pytest.fixture
def up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> mysql.MySQL:
    server = mysql.MySQL(tmp_path, 23306)
    monkeypatch.setattr(server, "running", lambda: SimpleNamespace(port=33306))
    monkeypatch.setattr(mysql, "client", lambda name: ["loader", name])
    monkeypatch.setattr(mysql, "own_mysqld", lambda: None)
    return server


def on_path(found: str | None) -> Callable[..., str | None]:
    return lambda *_, **__: found


@pytest.mark.parametrize(("found", "words"), [(None, ["loader", "mysql"]), ("/x/mysqld", ["/x/mysql"])])
def test_it_asks_the_server_that_is_up_as_root(
    up: mysql.MySQL, monkeypatch: pytest.MonkeyPatch, found: str | None, words: list[str]
) -> None:
    monkeypatch.setattr(mysql, "own_mysqld", lambda: found)
    monkeypatch.setattr(mysql.shutil, "which", on_path("/x/mysql"))
    asking = mysql.asking(up)
    assert asking.words[: len(words) + 1] == [*words, "--no-defaults"]
    assert "--port=33306" in asking.words
    assert asking.variables == {"MYSQL_PWD": up.root_password}
    assert up.root_password not in " ".join(asking.words)


def test_without_a_server_or_its_client_it_says_what_to_do(
    up: mysql.MySQL, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(mysql, "own_mysqld", lambda: Path("/usr/sbin/mysqld"))
    monkeypatch.setattr(mysql.shutil, "which", on_path(None))
    with pytest.raises(StackError, match="no program mysql on PATH"):
        mysql.asking(up)
    with pytest.raises(StackError, match="no MySQL is up"):
        mysql.asking(mysql.MySQL(tmp_path / "other", 23306))


def test_arguments_are_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[Any] = []
    monkeypatch.setattr(cli.mysql, "asking", lambda _: mysql.Asking(["client", "--x"], {"MYSQL_PWD": "secret"}))
    monkeypatch.setattr(cli.os, "execvpe", lambda *given: ran.append(given))
    given = ["-uheadrace", "nycflights", "--batch", "-e", "SELECT 1", "--help"]
    assert CliRunner().invoke(cli.app, ["mysql", *given]).exit_code == 0
    [(program, words, variables)] = ran
    assert (program, words, variables["MYSQL_PWD"]) == ("client", ["client", "--x", *given], "secret")
