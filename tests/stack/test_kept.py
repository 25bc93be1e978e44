"""A server that is up is told of, where it was started with other settings than this shell has: it would keep them."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest

from stack.airflow import Airflow
from stack.errors import StackError
from stack.paths import CHECKOUT
from stack.ports import free_port
from stack.process import Server
from stack.streamer import StreamerService

SLEEP = "import time; time.sleep(1000)"
FILE = "source: {password: '${SHOP_PASSWORD}'}\n"


def begun(server: Server) -> bool:
    """A process that was made just now has no environment for a moment."""
    return bool(psutil.Process(server.pid).environ())


class StandInAirflow(Airflow):
    """Its settings are Airflow's; nothing of it is loaded."""

    def command(self) -> Sequence[str]:
        return [sys.executable, "-c", SLEEP]

    def healthy(self) -> bool:
        return begun(self)


class StandInStreamer(StreamerService):
    def command(self) -> Sequence[str]:
        return [sys.executable, "-c", SLEEP, "run", str(self.pipeline)]

    def healthy(self) -> bool:
        return begun(self)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With two folders of pipeline files; the shell names none."""
    for folder in ("ours", "theirs"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "shop.yaml").write_text(FILE)
    for name in ("HEADRACE_PIPELINES", "HEADRACE_SPARK_MEMORY", "SHOP_PASSWORD"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def airflow(place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Another object for the same server, as a second command has one."""
    monkeypatch.setattr("stack.maven.spark_jars_folder", lambda: place / "jars")
    monkeypatch.setattr("stack.airflow.spark_classes", lambda: None)
    yield from again(StandInAirflow, place / "airflow", free_port())


@pytest.fixture
def streamer(place: Path) -> Iterator[Any]:
    port = free_port()
    yield from again(lambda home, file: StandInStreamer(home, place / file, port), place / "streamer")


def again(make: Any, home: Path, *fixed: Any) -> Iterator[Any]:
    made: list[Server] = []

    def start(*more: Any) -> bool:
        made.append(make(home, *fixed, *more))
        return made[-1].start()

    yield start
    made[0].kill()


def refused(start: Any, *more: Any) -> str:
    with pytest.raises(StackError) as caught:
        start(*more)
    return str(caught.value)


def test_airflow_with_another_folder_of_pipelines_says_which_it_has_and_what_to_do(
    airflow: Any, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADRACE_PIPELINES", f"{place}/ours")
    assert airflow() is True
    assert airflow() is False
    monkeypatch.setenv("HEADRACE_PIPELINES", f"{place}/theirs")
    assert refused(airflow) == (
        f"Airflow of {place}/airflow runs already, with the pipelines of {place}/ours and not of {place}/theirs. "
        "Stop it first (`python -m stack down airflow`), then start it again."
    )
    monkeypatch.delenv("HEADRACE_PIPELINES")
    assert f"with the pipelines of {place}/ours and not of {CHECKOUT}/pipelines" in refused(airflow)


def test_a_folder_is_the_same_however_it_is_written(airflow: Any, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    monkeypatch.setenv("HEADRACE_PIPELINES", "ours/")
    airflow()
    monkeypatch.setenv("HEADRACE_PIPELINES", f"{place}/theirs/../ours")
    assert airflow() is False


def test_a_variable_that_came_or_changed_since_is_named_without_its_value(
    airflow: Any, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADRACE_PIPELINES", f"{place}/ours")
    monkeypatch.setenv("HEADRACE_SPARK_MEMORY", "1g")
    airflow()
    monkeypatch.setenv("SHOP_PASSWORD", "hunter2secret")
    monkeypatch.setenv("HEADRACE_SPARK_MEMORY", "4g")
    told = refused(airflow)
    assert "runs already, with another HEADRACE_SPARK_MEMORY and no SHOP_PASSWORD. Stop it first" in told
    assert "hunter2secret" not in told


def test_a_shell_that_lacks_a_variable_or_has_one_that_nobody_reads_changes_nothing(
    airflow: Any, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADRACE_PIPELINES", f"{place}/ours")
    monkeypatch.setenv("SHOP_PASSWORD", "hunter2secret")
    airflow()
    monkeypatch.delenv("SHOP_PASSWORD")
    monkeypatch.setenv("CRM_PASSWORD", "another")
    assert airflow() is False


def test_a_streamer_of_another_file_is_told_of(streamer: Any, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    streamer("ours/shop.yaml")
    assert streamer("ours/shop.yaml") is False
    told = refused(streamer, "theirs/shop.yaml")
    assert f"runs already, with {place}/ours/shop.yaml and not with {place}/theirs/shop.yaml" in told
    assert "`python -m stack down streamer`" in told
    monkeypatch.setenv("SHOP_PASSWORD", "hunter2secret")
    assert "runs already, with no SHOP_PASSWORD" in refused(streamer, "ours/shop.yaml")
