"""The one error of this package: what, where, and what to do, in one paragraph."""

from __future__ import annotations

from pathlib import Path


class StackError(Exception):
    """Something a person can mend. `hint` is the next step; `log` the file whose last lines are shown."""

    def __init__(self, problem: str, hint: str = "", log: Path | None = None) -> None:
        super().__init__(problem)
        self.problem, self.hint, self.log = problem, hint, log

    def __str__(self) -> str:
        parts = [self.problem.rstrip(".") + "."]
        if self.log is not None:
            parts.append(f"Read {self.log}; its last lines:\n{tail(self.log)}\n")
        if self.hint:
            parts.append(self.hint)
        return " ".join(parts).strip()


def tail(path: Path, lines: int = 15) -> str:
    """The last lines of a text file, indented; says so where it is empty or missing."""
    try:
        text = path.read_bytes()[-32768:].decode("utf-8", "replace")
    except OSError as error:
        return f"    ({error.strerror or error})"
    found = text.splitlines()[-lines:]
    return "\n".join(f"    {line}" for line in found) or "    (it is empty)"
