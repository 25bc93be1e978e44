"""What keeps a crosscheck from beginning."""

from __future__ import annotations

from streamer.errors import HeadraceError


class MissingPackageError(HeadraceError):
    """An optional package that is not installed."""

    kind = "missing_package"


class PlaceError(HeadraceError):
    """No place in the server's binlog from which a check could begin."""

    kind = "place"
