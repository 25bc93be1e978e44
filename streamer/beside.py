"""A step that may hang in somebody else's library, while the thread that asked for it goes on with its own duties."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")
TURN_SECONDS = 0.05


def beside(step: Callable[[], Result], turn: Callable[[], None]) -> Result:
    """What `step` gives, or raises; `turn` is called meanwhile, and ends the waiting by what it raises. A step that
    hangs then ends with the process."""
    made: list[Result] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            made.append(step())
        except BaseException as error:  # it is raised in the thread that waits
            failed.append(error)

    thread = threading.Thread(target=run, name="beside", daemon=True)
    thread.start()
    while True:
        thread.join(TURN_SECONDS)
        if failed:
            raise failed[0]
        if made:
            return made[0]
        turn()
