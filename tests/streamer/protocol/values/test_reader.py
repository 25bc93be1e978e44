"""Pieces that readers share."""

from __future__ import annotations

import pytest

from streamer.protocol.values.reader import prefixed


def test_a_length_of_no_bytes_is_a_broken_table_map() -> None:
    """No source that does not compile is written for it."""
    with pytest.raises(ValueError, match="no bytes"):
        prefixed(0)
