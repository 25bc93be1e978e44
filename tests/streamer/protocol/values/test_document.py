"""Binary JSON whose checksum is right and whose offsets and lengths lie: an error, in no time and no memory."""

from __future__ import annotations

import time
import tracemalloc
from struct import pack

import pytest

from streamer.protocol.values.document import OPAQUE, STRING, wire

COUNT = 2_000
BYTES, SECONDS = 8 << 20, 1.0


def array(kind: int, text: bytes) -> bytes:
    """A large array whose elements all lead to one text."""
    head = 8 + 5 * COUNT
    entries = (bytes((kind,)) + pack("<I", head)) * COUNT
    return bytes((3,)) + pack("<II", COUNT, head + len(text)) + entries + text


def large_object(name: bytes) -> bytes:
    """All its names lead to one."""
    head = 8 + 6 * COUNT + 5 * COUNT
    names, values = pack("<IH", head, len(name)) * COUNT, (b"\x04" + bytes(4)) * COUNT
    return bytes((1,)) + pack("<II", COUNT, head + len(name)) + names + values + name


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(array(STRING, b"\xc0\xb8\x02" + bytes(40_000)), id="texts"),
        pytest.param(array(OPAQUE, b"\xfc\xc0\xb8\x02" + bytes(40_000)), id="opaque values"),
        pytest.param(large_object(b"n" * 60_000), id="names"),
        pytest.param(bytes((STRING,)) + b"\xff" * 1_000_000, id="a length without end"),
    ],
)
def test_a_small_document_does_not_become_a_large_one(document: bytes) -> None:
    tracemalloc.start()
    began = time.monotonic()
    try:
        with pytest.raises(ValueError, match="a JSON"):
            wire(document)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < BYTES
    assert time.monotonic() - began < SECONDS


def test_texts_that_fill_their_document() -> None:
    text = b"\xa0\x1f" + b"x" * 4_000
    head = 8 + 5 * 3
    entries = b"".join(bytes((STRING,)) + pack("<I", head + n * len(text)) for n in range(3))
    document = bytes((3,)) + pack("<II", 3, head + 3 * len(text)) + entries + 3 * text
    one = b'\\"' + b"x" * 4_000 + b'\\"'
    assert wire(document) == b"[" + b", ".join([one] * 3) + b"]"
