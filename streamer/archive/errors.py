"""What can go wrong with an archive, beside what can go wrong with its server."""

from __future__ import annotations

from streamer.errors import HeadraceError, PurgedError


class NoArchiveError(HeadraceError):
    """The pipeline file has no section `archive`, or nothing was archived yet."""

    kind = "no_archive"


class ArchiveGapError(PurgedError):
    """The server no longer has the files that come next."""


class ArchiveDiffersError(HeadraceError):
    """Archived bytes are not the server's: nothing is overwritten."""

    kind = "archive_differs"


class ArchiveFullError(HeadraceError):
    """No room is left; there may be some again."""

    kind = "disk_full"
    retryable = True


class ArchiveStoreError(HeadraceError):
    """The folder or the object store says no."""

    kind = "archive_store"


class ArchiveAwayError(HeadraceError):
    """The object store does not answer, or fails for now."""

    kind = "archive_store_away"
    retryable = True


class ArchiveInUseError(HeadraceError):
    """Another process archives into the folder."""

    kind = "archive_in_use"
