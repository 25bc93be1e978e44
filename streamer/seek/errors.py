"""Why a pipeline is not moved."""

from __future__ import annotations

from streamer.errors import HeadraceError


class SeekError(HeadraceError):
    """The place asked for is none at which the pipeline could go on."""

    kind = "seek"


class SkipsChangesError(HeadraceError):
    """Between here and the place asked for are changes that were not delivered, and nobody agreed to lose them."""

    kind = "skips_changes"


class StillRunningError(HeadraceError):
    """A streamer of the pipeline runs, which must not be moved under way."""

    kind = "still_running"
