from __future__ import annotations

import logging
import threading
import time
from pathlib import Path

import pytest

from stack import fetch
from stack.errors import StackError
from stack.fetch import DownloadError, install


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(fetch, "WAIT_SECONDS", 0.0)
    return tmp_path / "cache"


class Download:
    """Fills a folder, after failing as often as told; counts how often it was asked."""

    def __init__(self, failures: int = 0) -> None:
        self.failures, self.calls = failures, 0

    def __call__(self, folder: Path) -> dict[str, str]:
        self.calls += 1
        (folder / "part").write_text("whole")
        if self.calls <= self.failures:
            raise DownloadError("the mirror answered 503")
        return {"version": "1"}


def test_a_second_use_downloads_nothing() -> None:
    download = Download()
    folder = install("thing", download)
    assert install("thing", download) == folder
    assert (download.calls, fetch.facts(folder)) == (1, {"version": "1"})


@pytest.mark.parametrize(("name", "content"), [("part", "wh"), ("manifest.json", "{"), ("part", None)])
def test_a_damaged_cache_is_fetched_again_and_said(
    name: str, content: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    download = Download()
    victim = install("thing", download) / name
    if content is None:
        victim.unlink()
    else:
        victim.write_text(content)
    with caplog.at_level(logging.WARNING, "stack"):
        folder = install("thing", download)
    assert (folder / "part").read_text() == "whole"
    assert "is damaged" in caplog.text
    assert name in caplog.text


def test_a_failed_download_is_tried_three_times_and_leaves_nothing_behind(cache: Path) -> None:
    assert install("thing", Download(failures=2)).is_dir()
    with pytest.raises(StackError, match="the mirror answered 503"):
        install("other", Download(failures=3))
    assert [path.name for path in cache.iterdir() if not path.name.endswith(".lock")] == ["thing"]


def test_two_at_the_same_moment_download_once() -> None:
    download = Download()

    def slow(folder: Path) -> dict[str, str]:
        time.sleep(0.2)
        return download(folder)

    threads = [threading.Thread(target=install, args=("thing", slow)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert download.calls == 1


def test_a_client_that_is_not_installed_is_named_with_what_to_do() -> None:
    with pytest.raises(StackError, match=r"needs the program no-such-client, which is not installed\. Install it"):
        fetch.run_client("Kafka", ["no-such-client"], "Install it.")


def test_a_client_that_fails_shows_its_last_words() -> None:
    with pytest.raises(DownloadError, match=r"(?s)Kafka: sh failed with status 3.*no route.*Try later"):
        fetch.run_client("Kafka", ["sh", "-c", "echo no route; exit 3"], "Try later.")


def test_a_cache_that_cannot_be_written_names_its_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(StackError, match=r"cannot be written: .*HEADRACE_CACHE"):
        install("thing", Download())
