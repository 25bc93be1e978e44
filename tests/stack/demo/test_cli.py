"""What `make demo` says where it fails."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
import typer
from rich.console import Console

from stack.demo import cli
from stack.errors import StackError
from stack.platform import NAMES, Platform


@pytest.mark.parametrize("up", [True, False])
def test_a_failed_demo_says_what_is_still_up_and_what_to_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, up: bool
) -> None:
    class Failing:
        def __init__(self, *_: Any) -> None: ...

        def run(self) -> None:
            raise StackError("Airflow did not answer", "Read its log.")

    platform, out = Platform(tmp_path), io.StringIO()
    console = Console(file=out, width=120)
    servers = platform.servers(NAMES)
    for server in servers:
        monkeypatch.setattr(server, "running", lambda: up)
    monkeypatch.setattr(platform, "servers", lambda: servers)
    monkeypatch.setattr(cli, "described", lambda _: None)
    monkeypatch.setattr(cli, "Journey", Failing)
    with pytest.raises(StackError) as failure:
        cli.journey(console, platform, 1.0)
    with pytest.raises(typer.Exit):
        cli.failed(console, str(failure.value))
    told = out.getvalue().splitlines()[-1]
    assert told.startswith("demo: failed, Airflow did not answer. Read its log.")
    way_on = "Still up: mysql, kafka, airflow, streamer. `make demo` goes on from here, `make demo-down` stops them."
    assert told.endswith(way_on) is up


def test_anew_begins_the_demo_and_no_other_pipeline(tmp_path: Path) -> None:
    platform = Platform(tmp_path)
    for kept in ("lake/flights/_changes", "lake/shop/_changes", "kafka/data", "mine"):
        (tmp_path / kept).mkdir(parents=True)
    cli.forget(platform)
    assert sorted(str(one.relative_to(tmp_path)) for one in tmp_path.glob("**/*")) == [
        "lake", "lake/shop", "lake/shop/_changes", "mine",
    ]  # fmt: skip
