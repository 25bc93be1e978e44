"""Differences that MySQL never writes end in a typed error; those that it writes are tested on servers."""

from __future__ import annotations

import struct

import pytest

from streamer.protocol.values.patch import INSERT, REMOVE, REPLACE, patched

EMPTY_OBJECT, TEN = bytes.fromhex("0000000400"), bytes.fromhex("050a00")


def difference(operation: int, path: str, value: bytes = b"") -> bytes:
    text = path.encode()
    behind = bytes((len(value),)) + value if operation != REMOVE else b""
    return bytes((operation, len(text))) + text + behind


def test_members_are_put_where_the_server_sorts_them() -> None:
    found = patched(EMPTY_OBJECT, b"".join(difference(INSERT, f"$.{name}", TEN) for name in ("bb", "c", "a", "aa")))
    assert found == b'{"a": 10, "c": 10, "aa": 10, "bb": 10}'


@pytest.mark.parametrize(
    "wrong",
    [
        difference(REPLACE, "$.none", TEN), difference(REMOVE, "$[0]"), difference(INSERT, "$.a.b", TEN),
        difference(7, "$.a", TEN), difference(REPLACE, "a", TEN), difference(REPLACE, "$.a", TEN)[:-1],
        difference(REPLACE, "$..a", TEN), difference(REPLACE, "$.a")[:-1] + b"\xff",
    ],
)  # fmt: skip
def test_a_difference_that_does_not_fit_is_an_error(wrong: bytes) -> None:
    one = patched(EMPTY_OBJECT, difference(INSERT, "$.a", TEN))
    assert one == b'{"a": 10}'
    with pytest.raises((ValueError, IndexError, KeyError, struct.error)):
        patched(EMPTY_OBJECT, difference(INSERT, "$.a", TEN) + wrong)
