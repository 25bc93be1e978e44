"""Downloads into the cache: retried, unpacked beside and renamed into place, checked at each use.

`install(name, fill)` gives the folder `<cache>/<name>`, filled at most once even when several processes
ask at the same moment. A folder counts as whole when every file that its manifest lists has its size.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential

from contract import cache
from stack.errors import StackError
from stack.paths import writable_folder
from stack.process import CancelledError, cancelled

log = logging.getLogger("stack")
MANIFEST = "manifest.json"
WAIT_SECONDS = 2.0


class DownloadError(StackError):
    """A download that failed for now: it is tried again before anyone hears of it."""


def install(name: str, fill: Callable[[Path], Mapping[str, str]]) -> Path:
    """The whole folder `<cache>/<name>`; `fill(folder)` downloads into an empty one and returns its facts.

    The facts (versions) are kept in the manifest. Raises StackError after three tries.
    """
    root = writable_folder(cache(), "HEADRACE_CACHE")
    target = root / name
    if not damage(target):
        return target
    with locked(root / f".{name}.lock"):
        found = damage(target)
        if not found:
            return target
        if target.exists():
            log.warning("%s is damaged (%s): fetching it again", target, found)
        for attempt in retries():
            with attempt:
                fill_beside(target, fill)
    return target


def retries() -> Retrying:
    return Retrying(
        stop=stop_after_attempt(3),
        wait=wait_exponential(multiplier=WAIT_SECONDS, max=20),
        retry=retry_if_exception_type(DownloadError),
        before_sleep=lambda state: log.warning("trying again: %s", state.outcome and state.outcome.exception()),
        reraise=True,
    )


def fill_beside(target: Path, fill: Callable[[Path], Mapping[str, str]]) -> None:
    """Fills a temporary folder, then renames it: nobody ever sees half of it."""
    with tempfile.TemporaryDirectory(prefix=f".{target.name}-", dir=target.parent) as folder:
        fresh = Path(folder) / "new"
        fresh.mkdir()
        try:
            facts = dict(fill(fresh))
        except OSError as error:
            raise DownloadError(f"{target.name} could not be put into {target.parent}: {error}") from error
        files = {path.relative_to(fresh).as_posix(): path.stat().st_size for path in regular_files(fresh)}
        (fresh / MANIFEST).write_text(json.dumps({"facts": facts, "files": files}, indent=1, sort_keys=True))
        if target.exists():
            target.rename(Path(folder) / "old")
        fresh.rename(target)


def regular_files(folder: Path) -> Iterator[Path]:
    for parent, _, names in os.walk(folder):
        for name in names:
            path = Path(parent) / name
            if not path.is_symlink():
                yield path


def damage(folder: Path) -> str:
    """What is wrong with an installed folder, in words; the empty string where it is whole."""
    try:
        sizes = json.loads((folder / MANIFEST).read_text())["files"]
        for name, size in sizes.items():
            if (folder / name).lstat().st_size != size:
                return f"{name} has another size than when it was fetched"
    except FileNotFoundError as error:
        return f"{error.filename} is missing"
    except (ValueError, KeyError, TypeError):
        return f"{MANIFEST} cannot be read"
    return ""


def facts(folder: Path) -> dict[str, str]:
    """What `fill` reported of an installed folder, such as the version found."""
    found: dict[str, str] = json.loads((folder / MANIFEST).read_text())["facts"]
    return found


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Holds a lock file; another process that asks waits until this one is done or gone."""
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def run_client(what: str, command: list[str], hint: str) -> str:
    """Runs a package client; its output. Raises DownloadError with its last lines, or StackError where missing."""
    if shutil.which(command[0]) is None:
        raise StackError(f"{what} needs the program {command[0]}, which is not installed", hint)
    with tempfile.TemporaryFile() as out:
        client = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
        wait_for(client)
        out.seek(0)
        said = out.read().decode("utf-8", "replace")
    if client.returncode:
        lines = "\n".join(f"    {line}" for line in said.splitlines()[-12:])
        raise DownloadError(f"{what}: {command[0]} failed with status {client.returncode}:\n{lines}\n", hint)
    return said


def wait_for(client: subprocess.Popen[bytes]) -> None:
    """Waits for the process's end; ends it where the user gives up."""
    try:
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                client.wait(0.2)
                return
            if cancelled.is_set():
                raise CancelledError
    finally:
        if client.poll() is None:
            client.terminate()
            client.wait()
