from __future__ import annotations

import contextlib
import json
from struct import error as StructError  # noqa: N812

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamer.protocol.values.document import document, double


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_doubles_read_back(value: float) -> None:
    assert float(double(value)) == value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1.0"),
        (1e14, "100000000000000.0"),
        (1e15, "1e15"),
        (1234567890123456.8, "1234567890123456.8"),
        (1e-15, "0.000000000000001"),
        (1e-16, "1e-16"),
        (-0.0, "-0.0"),
        (1.5e300, "1.5e300"),
        (12345678901234568.0, "1.2345678901234568e16"),
    ],
)
def test_doubles_are_laid_out_as_mysql_does(value: float, text: str) -> None:
    assert double(value).decode() == text


def test_no_bytes_are_a_json_null() -> None:
    assert document(b"") == b"null"


@given(st.binary(min_size=1, max_size=120))
def test_broken_documents_raise_what_the_decoder_expects(raw: bytes) -> None:
    with contextlib.suppress(ValueError, IndexError, StructError):
        document(raw)


def test_a_document_of_every_kind() -> None:
    # {"a": [1, -2, null, true], "b": "x"}: a small object, its array, keys by length then bytes
    array = b"\x04\x00\x10\x00" + b"\x05\x01\x00" + b"\x05\xfe\xff" + b"\x04\x00\x00" + b"\x04\x01\x00"
    keys, values = b"\x12\x00\x01\x00" + b"\x13\x00\x01\x00", b"\x02\x14\x00" + b"\x0c\x24\x00"
    raw = b"\x00\x02\x00\x26\x00" + keys + values + b"ab" + array + b"\x01x"
    assert document(raw) == b'{"a": [1, -2, null, true], "b": "x"}'
    assert json.loads(document(raw)) == {"a": [1, -2, None, True], "b": "x"}


def test_a_document_whose_offsets_lead_in_circles_ends() -> None:
    array = b"\x02" + (2).to_bytes(2, "little") + (10).to_bytes(2, "little") + 2 * (b"\x02" + bytes(2))
    with pytest.raises(ValueError, match="more in it than it has bytes"):
        document(array + bytes(400))
