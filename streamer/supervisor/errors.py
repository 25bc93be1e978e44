"""What the supervisor and its API refuse."""

from __future__ import annotations

from streamer.errors import HeadraceError


class ServeError(HeadraceError):
    """What `headrace serve` was started with cannot be served."""

    kind = "serve"


class UnknownPipelineError(HeadraceError):
    kind = "unknown_pipeline"


class ConflictError(HeadraceError):
    """What is asked does not go with the pipeline's present state."""

    kind = "conflict"


class StoppedHardError(HeadraceError):
    """A streamer did not end within its time, and was killed."""

    kind = "killed"


class CrashedError(HeadraceError):
    """A streamer ended without an error of its own."""

    kind = "crashed"
