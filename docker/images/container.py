"""A running container, whichever engine runs it: a child process whose end is the container's end."""

from __future__ import annotations

import abc
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from stack.errors import StackError


class Container(abc.ABC):
    """On the machine's own network, output to `log`. A subclass starts it; `close()` ends it in any case."""

    def __init__(self, name: str, command: Sequence[str], log: Path) -> None:
        self.name, self.log = name, log
        with log.open("ab") as out:
            # A session of its own: Ctrl-C reaches this program alone, which then ends the container in order.
            self.child = subprocess.Popen(
                list(command), stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
            )

    def status(self) -> int | None:
        """The exit status; None while it runs."""
        return self.child.poll()

    def execute(self, words: Sequence[str]) -> tuple[int, str]:
        """Runs a command inside: exit status and output."""
        done = subprocess.run(self.inside(words), stdin=subprocess.DEVNULL, capture_output=True, text=True)
        return done.returncode, (done.stdout + done.stderr).strip()

    def stop(self, seconds: float, number: signal.Signals = signal.SIGTERM) -> int:
        """Sends the signal to the container's first process; its exit status. Raises StackError after `seconds`."""
        self.send(number)
        try:
            return self.child.wait(seconds)
        except subprocess.TimeoutExpired:
            raise StackError(
                f"{self.name} did not stop within {seconds:.0f} s of {number.name}", log=self.log
            ) from None

    def close(self) -> None:
        """Kills what still runs and removes the container."""
        if self.child.poll() is None:
            self.send(signal.SIGKILL)
            self.child.wait(30)
        self.remove()

    # What a subclass says
    @abc.abstractmethod
    def inside(self, words: Sequence[str]) -> list[str]: ...

    @abc.abstractmethod
    def send(self, number: signal.Signals) -> None: ...

    @abc.abstractmethod
    def remove(self) -> None: ...


def volumes(mounts: Sequence[tuple[Path, str]]) -> list[str]:
    """`--volume` options; a mount is (path on the machine, path in the container[:ro])."""
    return [part for path, at in mounts for part in ("--volume", f"{path}:{at}")]
