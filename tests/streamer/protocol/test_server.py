from __future__ import annotations

import pytest

from streamer.protocol.server import server


@pytest.mark.parametrize(
    ("version", "mariadb", "known"),
    [
        ("8.0.15", False, False),
        ("8.0.16", False, None),
        ("8.0.28-log", False, None),
        ("8.0.29", False, True),
        ("9.7.4-2", False, True),
        ("11.4.5-MariaDB-log", True, True),
        ("10.5.3-MariaDB", True, True),
    ],
)
def test_what_a_version_means(version: str, mariadb: bool, known: bool | None) -> None:
    found = server(version)
    assert (found.mariadb, found.year_has_sign) == (mariadb, known)
