"""What operators want of each pipeline, kept in a file so that it outlives the supervisor."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

from streamer import disk
from streamer.supervisor.errors import ServeError

Wanted = Literal["running", "paused", "stopped"]


class WantedStates:
    """A pipeline of which nothing was said is to run. Raises ServeError where the file cannot be read or written."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._states: dict[str, Wanted] = {}
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            self._states = {str(name): _known(state) for name, state in found.items()}
        except FileNotFoundError:
            return
        except (OSError, ValueError, AttributeError) as error:
            raise self._error("reading", error) from None

    def of(self, name: str) -> Wanted:
        return self._states.get(name, "running")

    def set(self, name: str, wanted: Wanted) -> None:
        """Durable when it returns."""
        states = {key: state for key, state in self._states.items() if key != name}
        if wanted != "running":
            states[name] = wanted
        if states == self._states:
            return
        try:
            disk.replace(self._path, (json.dumps(states, indent=1, sort_keys=True) + "\n").encode())
        except OSError as error:
            raise self._error("writing", error) from None
        self._states = states

    def _error(self, operation: str, error: Exception) -> ServeError:
        cause = getattr(error, "strerror", None) or "it is not what this program writes there"
        hint = "Mend it or its rights, or name another file with --state; without it all pipelines run."
        return ServeError(operation, f"the file of wanted states, {self._path}", cause, hint)


def _known(state: object) -> Wanted:
    if state in ("running", "paused", "stopped"):
        return state
    raise ValueError(state)
