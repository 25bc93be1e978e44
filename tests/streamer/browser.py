"""A page as a browser shows it: headless Chromium runs its script against a real port, and gives what it has made."""

from __future__ import annotations

import re
import shutil
import subprocess
from html import unescape
from pathlib import Path

import pytest

FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run")
PROGRAMS = ("chromium", "chromium-browser", "google-chrome")


def chromium() -> str:
    """Its program. Skips the test where there is none."""
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        pytest.skip("no Chromium here: install the package chromium to look at the pages in a browser")
    return program


def shown(folder: Path, url: str, seconds: int = 6) -> str:
    """The document after so many seconds of the page's own clock. Skips the test where there is no Chromium."""
    program = chromium()
    options = [*FLAGS, f"--user-data-dir={folder / 'browser'}", f"--virtual-time-budget={seconds * 1000}", "--dump-dom"]
    done = subprocess.run([program, *options, url], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def text(part: str) -> str:
    """What a person reads of it."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", part)).split())


def points(path: str) -> int:
    """Of a chart's line."""
    return len(re.findall(r"[ML]", path))
