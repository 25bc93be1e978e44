"""A long command with its output in a log file, and the lines that show progress on the terminal."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from stack.errors import StackError

# `STEP 3/9: RUN ...` as buildah prints it, `#8 [packages 3/3] RUN ...` as Docker does.
STEP = re.compile(r"^(?:\[\d+/\d+\] STEP \d|STEP \d|#\d+ \[)")


def run_logged(title: str, command: Sequence[str], log: Path, hint: str = "") -> None:
    """Runs to the end. Raises StackError with the log's last lines where the status is not 0."""
    with (
        log.open("a") as out,
        subprocess.Popen(
            list(command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as child,
    ):
        assert child.stdout is not None
        try:
            for line in child.stdout:
                out.write(line)
                if STEP.match(line):
                    print(f"  {title}: {line.strip()[:110]}", flush=True)
        except BaseException:
            child.terminate()
            raise
    status = child.returncode
    if status:
        raise StackError(f"{title}: {command[0]} failed with status {status}", hint, log)


def output(command: Sequence[str], hint: str = "") -> str:
    """What a short command prints. Raises StackError with its own words where it fails."""
    done = subprocess.run(list(command), stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        words = (done.stderr or done.stdout).strip()[-600:]
        raise StackError(f"`{' '.join(command[:6])} ...` failed with status {done.returncode}: {words}", hint)
    return done.stdout.strip()
