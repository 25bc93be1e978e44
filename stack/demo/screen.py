"""What a person sees while the demo runs: one row a stage with its elapsed time; plain lines without a terminal."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from rich.console import Console
from rich.progress import Progress, ProgressColumn, SpinnerColumn, Task, TaskID, TextColumn
from rich.text import Text

SECONDS_BETWEEN_LINES = 10.0


class Elapsed(ProgressColumn):
    def render(self, task: Task) -> Text:
        seconds = task.finished_time if task.finished else task.elapsed
        return Text(f"{seconds or 0:6.1f} s", style="cyan")


class Stage:
    """One row. `say` replaces what stands behind its title."""

    def __init__(self, screen: Screen, title: str) -> None:
        self.screen, self.title = screen, title
        self.detail = ""
        self.began = time.monotonic()
        self._told_at = self.began
        self._row: TaskID | None = None
        if screen.rows is not None:
            self._row = screen.rows.add_task(title, total=1, detail="")
        else:
            screen.line(f"{title} ...")

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began

    def say(self, detail: str) -> None:
        """Without a terminal: a line, when the last one is some seconds old."""
        changed, self.detail = detail != self.detail, detail
        if self.screen.rows is not None and self._row is not None:
            self.screen.rows.update(self._row, detail=detail)
        elif changed and time.monotonic() - self._told_at > SECONDS_BETWEEN_LINES:
            self._told_at = time.monotonic()
            self.screen.line(f"{self.title}: {detail}")

    def end(self, failed: bool = False) -> None:
        if self.screen.rows is not None and self._row is not None:
            mark = "[red]failed[/] " if failed else ""
            self.screen.rows.update(self._row, completed=1, detail=mark + self.detail)
        else:
            self.screen.line(f"{self.title}: {'failed' if failed else 'done'} in {self.seconds:.1f} s. {self.detail}")


class Screen:
    """`with Screen(console) as screen:`, then `with screen.stage("Servers") as stage:`."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.began = time.monotonic()
        self.rows: Progress | None = None
        if console.is_terminal:
            self.rows = Progress(
                SpinnerColumn(finished_text="[green]✓[/]"),
                Elapsed(),
                TextColumn("[bold]{task.description}"),
                TextColumn("{task.fields[detail]}"),
                console=console,
            )

    def __enter__(self) -> Screen:
        if self.rows is not None:
            self.rows.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.rows is not None:
            self.rows.stop()

    def line(self, text: str) -> None:
        """One line with the time since the demo began."""
        words = f"[{time.monotonic() - self.began:6.1f} s] {text}"
        self.console.print(words, markup=False, highlight=False, soft_wrap=True)

    @contextmanager
    def stage(self, title: str, *, servers: bool = False) -> Iterator[Stage]:
        """`servers`: what stack/ logs meanwhile is the stage's detail."""
        stage = Stage(self, title)
        try:
            with said_by_servers(stage) if servers else nullcontext():
                yield stage
        except BaseException:
            stage.end(failed=True)
            raise
        stage.end()


@contextmanager
def said_by_servers(stage: Stage) -> Iterator[None]:
    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            stage.say(record.getMessage())

    logger, handler = logging.getLogger("stack"), Handler()
    before = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before[0])
        logger.propagate = before[1]
