"""What fsspec's file systems raise, whichever library is behind them."""

from __future__ import annotations

import errno

NO_WAY = (
    PermissionError,
    FileNotFoundError,
    NotADirectoryError,
    NotImplementedError,
    ValueError,
    TypeError,
    ImportError,
)
NO_WAY_NUMBERS = (errno.ENOSYS,)  # as which s3fs tells that a store does not know a header
NO_WAY_NAMES = ("NoCredentialsError", "PartialCredentialsError")  # of a library that need not be there


def final(error: Exception) -> bool:
    """Whether no retry mends it."""
    number = getattr(error, "errno", None)
    return isinstance(error, NO_WAY) or number in NO_WAY_NUMBERS or type(error).__name__ in NO_WAY_NAMES


def words(error: Exception) -> str:
    return str(error).strip() or type(error).__name__
