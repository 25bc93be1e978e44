"""The command line without servers: help, completion, lists, and the live status in a real terminal."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import typer
import typer.main
from rich.console import Console
from rich.table import Table
from typer.testing import CliRunner

from contract import pipeline as pipeline_file
from readers.errors import LakeReadError
from streamer.cli import app
from streamer.cli.console import Piped, err, out
from streamer.control import logs
from streamer.control.api import application
from streamer.control.http import serving, take_port
from streamer.control.report import Report
from streamer.control.status import Status

COMMANDS: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]
FILE = """format: 1
name: {name}
source: {{host: h, user: u, password: "${{NOT_SET_HERE}}", server_id: 7}}
tables: {{include: ["shop.*"]}}
kafka: {{bootstrap: "h:9092"}}
streamer: {{http: {{host: 127.0.0.1, port: {port}}}}}
lake: {{path: lake}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Of pipeline files: one that runs, one that does not, one with a mistake."""
    (tmp_path / "orders.yaml").write_text(FILE.format(name="orders", port=1))
    (tmp_path / "sales.yaml").write_text(FILE.format(name="sales", port=2))
    (tmp_path / "wrong.yml").write_text(FILE.format(name="wrong", port=3).replace("include", "inclde"))
    (tmp_path / "notes.txt").write_text("no pipeline")
    return tmp_path


@pytest.fixture
def status(folder: Path) -> Iterator[Status]:
    """Of the pipeline `sales`, whose streamer answers."""
    file = folder / "sales.yaml"
    found = Status("sales")
    settings = pipeline_file.load(file, secrets=False)
    listener = take_port("127.0.0.1", 0)
    file.write_text(FILE.format(name="sales", port=listener.getsockname()[1]))
    with serving(application(Report(settings, found)), listener):
        yield found


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, list(arguments))


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_says_what_it_does_with_an_example(name: str) -> None:
    found = run(name, "--help")
    assert found.exit_code == 0
    assert f"headrace {name}" in found.stdout
    assert len(COMMANDS[name].help) > 40


def test_pipelines_are_listed_with_their_mistakes_and_states(folder: Path, status: Status) -> None:
    status.enter("standby")
    found = run("pipelines", str(folder), "--json")
    assert found.exit_code == 1, "a file is not valid"
    orders, sales, wrong = json.loads(found.stdout)
    assert (orders["pipeline"], orders["valid"], orders["state"]) == ("orders", True, "not running")
    assert (sales["pipeline"], sales["valid"], sales["state"]) == ("sales", True, "standby")
    assert (wrong["pipeline"], wrong["valid"], wrong["state"]) == (None, False, None)
    assert "inclde" in "".join(wrong["mistakes"])
    told = run("pipelines", str(folder)).stdout
    for text in ("orders", "not running", "standby", "invalid", "wrong.yml", "inclde"):
        assert text in told
    (folder / "wrong.yml").unlink()
    assert run("pipelines", str(folder)).exit_code == 0


def test_files_that_share_a_name_are_mistakes_that_name_each_other(folder: Path) -> None:
    (folder / "wrong.yml").write_text(FILE.format(name="orders", port=4))
    found = run("pipelines", str(folder), "--json")
    orders, sales, second = json.loads(found.stdout)
    assert (found.exit_code, orders["valid"], sales["valid"], second["valid"]) == (1, False, True, False)
    assert f"orders.yaml:2: name: orders is the name of {folder / 'wrong.yml'}, too" in "".join(orders["mistakes"])
    assert f"wrong.yml:2: name: orders is the name of {folder / 'orders.yaml'}, too" in "".join(second["mistakes"])
    assert "give each file a name of its own" in run("pipelines", str(folder)).stdout


def test_in_a_pipe_no_line_is_broken_or_filled_up_with_blanks() -> None:
    found = io.StringIO()
    piped = Piped(file=found, highlight=False)
    table = Table("name", "what", "more", box=None, pad_edge=False)
    table.add_row("a", "x" * 5000, "1")
    table.add_row("b", "y", "")
    piped.print(table)
    piped.print("z" * 5000)
    head, long, short, line, end = found.getvalue().split("\n")
    assert (long, short, line, end) == (f"a     {'x' * 5000}  1", "b     y", "z" * 5000, "")
    assert head.split() == ["name", "what", "more"]


@pytest.mark.parametrize("console", [out, err], ids=["out", "err"])
def test_a_place_in_a_binlog_is_no_emoji(console: Console, capsys: pytest.CaptureFixture[str]) -> None:
    console.print("moving at binlog.000001:100: it is in the middle", markup=False)
    console.print("[bold]moving[/] at binlog.000001:100: it is in the middle")
    assert "".join(capsys.readouterr()).count("binlog.000001:100: it is") == 2


def test_what_is_wrong_with_a_file_as_a_whole_is_told_too(tmp_path: Path) -> None:
    (tmp_path / "empty.yaml").touch()
    [found] = json.loads(run("pipelines", str(tmp_path), "--json").stdout)
    assert found["mistakes"][0].endswith("empty.yaml: is not a mapping")
    assert "fix: start from" in found["mistakes"][1]


def test_pipelines_of_no_folder(tmp_path: Path) -> None:
    assert run("pipelines", str(tmp_path / "missing")).exit_code == 2


def test_status_asked_once_tells_a_program_by_its_exit_status(folder: Path, status: Status) -> None:
    status.enter("streaming")
    found = run("status", str(folder / "sales.yaml"), "--json")
    assert (found.exit_code, json.loads(found.stdout)["state"]) == (0, "streaming")
    status.enter("failed")
    found = run("status", str(folder / "sales.yaml"), "--once")
    assert (found.exit_code, "failed" in found.stdout) == (1, True)
    found = run("status", str(folder / "orders.yaml"))
    assert (found.exit_code, "not_running" in found.stderr) == (1, True)


@pytest.mark.parametrize(
    ("more", "status", "kind", "words"),
    [
        ("sinks: [{type: kafka}, {type: no.Sink}]", 2, "pipeline_file", "sinks[1].type: no cannot be imported"),
        ("streamer: {http: {token_file: no_such_file}}", 1, "token", "No such file or directory"),
    ],
)
def test_a_run_that_cannot_begin_says_why_to_a_supervisor(
    tmp_path: Path, more: str, status: int, kind: str, words: str
) -> None:
    """By the line that it reads: else it shows a crash, and would start the pipeline again and again."""
    text = FILE.format(name="wrong", port=1)
    (tmp_path / "wrong.yaml").write_text(f"{text[: text.index('streamer:')]}lake: {{path: lake}}\n{more}\n")
    done = subprocess.run(
        [sys.executable, "-m", "streamer.cli", "run", "--log", "json", str(tmp_path / "wrong.yaml")],
        env={**os.environ, "NOT_SET_HERE": "set"}, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == status
    [line] = map(json.loads, done.stderr.splitlines())
    assert (line["event"], line["level"], line["pipeline"], line["kind"]) == ("failed", "error", "wrong", kind)
    assert words in line["error"]
    assert line["next_step"]
    assert line["next_step"] not in line["error"], "told once"
    assert line["retryable"] is False


def test_what_is_wrong_with_a_query_is_said_in_duckdbs_words_alone(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its mark below the wrong place is the end, and the lake has no part in it."""
    marked = 'Parser Error: syntax error at or near "SELEC"\n\nLINE 1: SELEC 1\n        ^'
    for cause, told in ((marked, marked), ("lake/x has no lake yet: run it", "reading the lake of orders: lake/x has")):

        def query(*_: Any, cause: str = cause) -> Any:
            raise LakeReadError(cause)

        monkeypatch.setattr("readers.lake.query", query)
        found = run("sql", str(folder / "orders.yaml"), "SELEC 1")
        assert (found.exit_code, found.stderr.startswith(f"error (lake): {told}")) == (1, True), found.output
        assert "^." not in found.stderr


@pytest.mark.parametrize(
    "answer", [b"J\x00\x00\x00\n9.7.4\x00", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]"], ids=["mysql", "list"]
)
def test_something_else_on_the_port_is_no_streamer(folder: Path, answer: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        file = folder / "orders.yaml"
        file.write_text(FILE.format(name="orders", port=server.getsockname()[1]))

        def serve() -> None:
            with suppress(OSError):
                while True:
                    asker, _ = server.accept()
                    with asker:
                        asker.sendall(answer)
                        asker.recv(1000)

        threading.Thread(target=serve, daemon=True).start()
        found = run("status", str(file), "--once")
        assert (found.exit_code, "error (not_running)" in found.stderr) == (1, True)
        (folder / "wrong.yml").unlink()
        listed = run("pipelines", str(folder), "--json")
    assert listed.exit_code == 0
    assert json.loads(listed.stdout)[0]["state"] == "not running"


def test_a_pipeline_that_writes_nothing_to_kafka_has_nothing_to_tail(tmp_path: Path) -> None:
    text = FILE.format(name="filed", port=1)  # MySQL's password is not set, and not asked for
    more = "sinks: [{type: files, path: out}]\ncheckpoints: {type: file, path: place}\n"
    (tmp_path / "filed.yaml").write_text(text + more)
    found = run("tail", str(tmp_path / "filed.yaml"))
    assert found.exit_code == 1, found.output
    assert "none of its sinks is Kafka" in found.stderr


@pytest.mark.parametrize("command", ["check", "run", "tail", "topics"])
def test_a_wrong_setting_of_kafkas_client_is_a_mistake_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setenv("NOT_SET_HERE", "secret")
    path = tmp_path / "sales.yaml"
    text = FILE.format(name="sales", port=1).replace('"h:9092"', '"127.0.0.1:1", properties: {ssl.ca.locaton: ca.pem}')
    path.write_text(text)
    found = run(command, str(path))
    assert found.exit_code == 2, found.output
    assert f"{path}:5: kafka.properties.ssl.ca.locaton: is refused" in found.stderr


def test_a_table_that_the_file_cannot_have_is_none_to_wait_for(tmp_path: Path) -> None:
    path = tmp_path / "sales.yaml"
    path.write_text(FILE.format(name="sales", port=1).replace('"h:9092"', '"127.0.0.1:1"'))
    found = run("tail", str(path), "--table", "shop.*", "--table", "shp.oders")
    assert found.exit_code == 2, found.output
    assert "shp.oders is not one of the pipeline's tables" in " ".join(found.stderr.replace("│", "").split())


class Terminal:
    """The command in a terminal of its own."""

    def __init__(self, *arguments: str) -> None:
        self._ours, theirs = pty.openpty()
        self._read = ""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "streamer.cli", *arguments],
            stdin=theirs, stdout=theirs, stderr=theirs, env={**os.environ, "TERM": "xterm", "COLUMNS": "150"},
        )  # fmt: skip
        os.close(theirs)

    def wait_for(self, text: str, seconds: float = 20) -> None:
        until = time.monotonic() + seconds
        while text not in self._read:
            assert time.monotonic() < until, f"no {text!r} in {self._read!r}"
            if select.select([self._ours], [], [], 0.1)[0]:
                self._read += re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", os.read(self._ours, 65536).decode())

    def interrupt(self) -> int:
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(10)


def test_status_on_a_terminal_goes_on_until_it_is_interrupted(folder: Path, status: Status) -> None:
    terminal = Terminal("status", str(folder / "sales.yaml"), "--every", "0.1")
    steps: list[Callable[[], object]] = [
        lambda: status.enter("streaming"),
        lambda: status.wait_for("Kafka"),
        lambda: status.came_back("Kafka"),
        lambda: status.enter("failed"),
    ]
    for step, text in zip(steps, ("streaming", "waiting for Kafka", "streaming", "failed"), strict=True):
        step()
        terminal.wait_for(text)
    assert terminal.interrupt() == 0


def test_status_on_a_terminal_waits_for_a_streamer_that_does_not_run(folder: Path) -> None:
    terminal = Terminal("status", str(folder / "orders.yaml"))
    terminal.wait_for("headrace run")
    assert terminal.interrupt() == 0


def test_a_shell_completes_commands_and_options() -> None:
    def completed(line: str) -> str:
        words = {"COMP_WORDS": line, "COMP_CWORD": str(line.count(" ")), "_HEADRACE_COMPLETE": "complete_bash"}
        code = "from streamer.cli import app; app(prog_name='headrace')"
        found = subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, **words}, capture_output=True, text=True, timeout=30
        )
        return found.stdout

    assert {"tail", "topics"} <= set(completed("headrace t").split())
    assert "--from-beginning" in completed("headrace tail --")


@pytest.mark.parametrize("given", ["debug", "Debug", "DEBUG"])
def test_the_logs_level_is_taken_in_any_case(folder: Path, monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    levels: list[str] = []

    def configure(form: str, level: str, **_: Any) -> bool:
        levels.append(level)
        raise typer.Exit(7)

    monkeypatch.setenv("NOT_SET_HERE", "p")
    monkeypatch.setattr(logs, "configure", configure)
    assert run("run", str(folder / "orders.yaml"), "--log-level", given).exit_code == 7
    assert levels == ["DEBUG"]
