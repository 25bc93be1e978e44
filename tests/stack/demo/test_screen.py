"""Without a terminal the demo's progress is plain lines, and a failed stage says so."""

from __future__ import annotations

import io
import logging

import pytest
from rich.console import Console

from stack.demo import screen as screens
from stack.demo.screen import Screen


def plain() -> tuple[Screen, io.StringIO]:
    out = io.StringIO()
    return Screen(Console(file=out, width=60)), out


def test_a_stage_tells_its_begin_its_end_and_its_last_word() -> None:
    screen, out = plain()
    with screen, screen.stage("Topics") as stage:
        stage.say("7 made")
    first, last = out.getvalue().splitlines()
    assert first.endswith("Topics ...")
    assert "Topics: done in " in last
    assert last.endswith(" s. 7 made")


def test_a_failed_stage_says_so_and_the_error_goes_on() -> None:
    screen, out = plain()
    with pytest.raises(ValueError, match="no"), screen, screen.stage("Topics"):
        raise ValueError("no")
    assert "Topics: failed in" in out.getvalue()


def test_what_servers_log_is_the_stages_detail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(screens, "SECONDS_BETWEEN_LINES", 0.0)
    screen, out = plain()
    with screen, screen.stage("Servers", servers=True):
        logging.getLogger("stack").info("kafka: ready")
    assert "Servers: kafka: ready" in out.getvalue()


def test_on_a_terminal_every_stage_is_a_row() -> None:
    out = io.StringIO()
    with Screen(Console(file=out, force_terminal=True, width=80)) as screen, screen.stage("Topics") as stage:
        stage.say("7 made")
    assert "Topics" in out.getvalue()
    assert "7 made" in out.getvalue()
