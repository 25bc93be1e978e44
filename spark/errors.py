"""The failures of the Spark jobs. `str(error)` is the whole message: what failed, where, and what to do."""

from __future__ import annotations

from collections.abc import Iterator


class LakeError(Exception):
    """A job cannot go on; nothing was lost, and the same run may be started again once the cause is mended."""


class PassingError(LakeError):
    """What kept the job from its end may be over by the next run, with nothing mended. Airflow starts that itself."""


class LakeTakenError(PassingError):
    """Another job changes the lake, and did so for as long as was waited for it."""


class TableError(LakeError):
    """It is one table's alone; the others go on."""


class TableStoppedError(TableError):
    """The table cannot be merged, and its changes wait in `_changes`."""


class TableGoneError(TableError):
    """The source does not have the table."""


class TableAlteredError(TableError, PassingError):
    """The table was altered each time that it was read."""


def chain(error: BaseException) -> Iterator[str]:
    """What the error and its causes say, outermost first; Java's causes after Python's."""
    known: BaseException | None = error
    while known is not None:
        yield str(known)
        java = getattr(known, "_origin", None) or getattr(known, "java_exception", None)
        while java is not None:
            yield str(java.getMessage() or java.getClass().getSimpleName())
            java = java.getCause()
        known = known.__cause__ or known.__context__


def reason(error: BaseException) -> str:
    """The first line of the innermost cause."""
    said = [line.strip() for text in chain(error) for line in text.splitlines()[:1] if line.strip()]
    return said[-1][:300] if said else type(error).__name__
