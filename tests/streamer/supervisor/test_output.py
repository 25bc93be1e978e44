"""What a process writes is handed on with its pipeline, and read to the end whatever it is."""

from __future__ import annotations

import io
import logging
import sys
from collections.abc import Iterator

import pytest
import structlog
from structlog.testing import capture_logs

from streamer.control import logs
from streamer.supervisor.output import LONGEST, Errors, Output, Reader


@pytest.fixture(autouse=True)
def logging_as_it_was() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    structlog.reset_defaults()
    root.handlers[:] = handlers
    root.setLevel(level)


def read(text: bytes, for_people: bool = False) -> tuple[Reader, Errors, list[str]]:
    errors = Errors()
    reader = Reader("shop", io.BytesIO(text), Output(for_people), errors)
    with capture_logs() as logs:
        reader.run()
    return reader, errors, [str(line.get("text", line["event"])) for line in logs]


def test_lines_of_the_streamer_go_on_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    line = b'{"event": "streaming", "level": "info", "pipeline": "shop"}\n'
    reader, errors, _ = read(line)
    assert capsys.readouterr().err.encode() == line
    assert (reader.failed, errors.all()) == (None, [])


@pytest.mark.parametrize(("terminal", "no_color", "coloured"), [(1, "", 1), (1, "1", 0), (0, "", 0)])
def test_colours_are_for_a_terminal_whose_user_did_not_say_no(
    terminal: int, no_color: str, coloured: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: bool(terminal))
    monkeypatch.setenv("NO_COLOR", no_color)
    read(b'{"event": "streaming", "level": "info"}\n', for_people=True)
    logs.configure("console")
    logging.getLogger("other").warning("of a library")
    for line in capsys.readouterr().err.splitlines():
        assert ("\x1b[" in line) == bool(coloured), line


def test_last_words_that_are_no_log_are_marked_and_cut() -> None:
    _, _, said = read(b"Fatal: \xff\n[1]\n{}\n" + b"x" * 100_000)
    assert said == ["Fatal: \N{REPLACEMENT CHARACTER}", "[1]", "{}", "x" * LONGEST]


def test_warnings_and_errors_are_kept_the_newest_first() -> None:
    reader, errors, _ = read(
        b'{"event": "waiting", "level": "warning", "error": "away", "timestamp": "2026-01-01T00:00:00Z"}\n'
        b'{"event": "failed", "level": "error", "kind": "purged", "error": "gone", "next_step": "begin anew"}\n',
        for_people=True,
    )
    newest, oldest = errors.all()
    assert (newest["kind"], newest["message"], newest["next_step"]) == ("purged", "gone", "begin anew")
    assert (oldest["at"], oldest["message"]) == (1767225600.0, "waiting: away")
    assert reader.failed is not None
    assert reader.failed["kind"] == "purged"


def test_a_line_that_cannot_be_handed_on_does_not_end_the_reading() -> None:
    reader, errors, _ = read(
        b'{"event": [], "level": "error", "timestamp": {}}\n{"event": 7, "level": {}}\n'
        b'{"event": "failed", "level": "error", "kind": "purged"}\n',
        for_people=True,
    )
    assert reader.failed is not None
    assert errors.all()
