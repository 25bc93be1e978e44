"""A difference is a known defect's where it follows from the bytes, and unexplained where it does not."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pytest
from pymysqlreplication.constants.CHARSET import Charset as Reference

from contract.schema import Column
from streamer.crosscheck.values import verdict
from streamer.protocol.charsets import BY_NAME, Charset, NoTextError

TEXT = Column(name="c", type="varchar", length=9, charset="gbk")
TIME = Column(name="c", type="time", fsp=3)
JSON = Column(name="c", type="json")


def codes(charset: Charset) -> Iterator[bytes]:
    """Of one byte, and a part of those of two."""
    singles = [bytes((code,)) for code in range(256)]
    yield from singles
    if charset.width > 1:
        yield from (first + second for first in singles[::7] for second in singles)


def reads(name: str, raw: bytes) -> str | bytes:
    """As mysql-replication does. Raises UnicodeDecodeError where it fails."""
    try:
        return raw.decode(Reference(0, name, "").encoding)
    except LookupError:
        return raw


@pytest.mark.parametrize("name", sorted(set(BY_NAME) - {"binary", "utf8mb3", "utf8mb4"}))
def test_every_code_that_it_reads_otherwise_is_explained(name: str) -> None:
    charset, column = BY_NAME[name], TEXT.model_copy(update={"charset": name})
    for raw in codes(charset):
        try:
            ours, theirs = charset.text(raw), reads(name, raw)
        except (ValueError, NoTextError):
            continue
        if raw in (b"\xfe\xff", b"\xff\xfe"):
            continue  # alone, it stands for the order of bytes to it
        assert verdict(column, ours, theirs) in (None, "character set"), raw
        assert verdict(column, ours + "x", theirs) == "", raw


def test_a_wrong_text_of_a_character_set_is_unexplained() -> None:
    latin = TEXT.model_copy(update={"charset": "latin1"})
    assert verdict(latin, "wrong", "right") == ""
    assert verdict(latin, "é", "é") is None
    assert verdict(latin, "é", None) == ""


def test_members_are_explained_one_by_one() -> None:
    """They are read as UTF-8, without what is none."""
    members = TEXT.model_copy(update={"type": "set", "charset": "latin1", "members": ("é", "ü", "b")})
    assert verdict(members, "é,ü,b", {"", "b"}) == "character set"
    assert verdict(members, "é,b", {"", "c"}) == ""
    assert verdict(members, "é,ü", {"", "c"}) == ""
    member = members.model_copy(update={"type": "enum", "charset": "swe7"})
    assert verdict(member, "å", "}") == "character set"
    assert verdict(member, "b", "}") == ""


def test_bytes_of_an_address_are_explained_without_their_zeros() -> None:
    column = Column(name="c", type="inet4")
    assert verdict(column, "10.0.0.0", b"\n") == "UUID and INET"
    assert verdict(column, "0.0.0.0", "") == "UUID and INET"
    assert verdict(column, "10.0.0.1", b"\n") == ""


def test_a_negative_time_is_explained_by_its_two_halves_alone() -> None:
    # Two bytes hold the fraction, a digit more than there is: 65,536 less 2,500, which it takes for -2,500.
    wrong = -timedelta(hours=1, minutes=2, seconds=4, milliseconds=-250)
    assert verdict(TIME, "-01:02:03.250", timedelta(hours=-1, minutes=-2, seconds=-3, milliseconds=-250)) is None
    assert verdict(TIME, "-01:02:03.250", wrong) == "fraction of a negative time"
    assert verdict(TIME, "-01:02:03.250", wrong + timedelta(microseconds=100)) == ""
    assert verdict(TIME, "01:02:03.250", wrong) == ""


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("[1.50]", [Decimal("1.50")]),
        ('["2024-02-29"]', [datetime(2024, 2, 29)]),
        ('["2024-02-29 01:02:03.500000"]', [datetime(2024, 2, 29, 1, 2, 3, 500_000)]),
        ('["-01:02:03.500000"]', [time(1, 2, 3, 500_000)]),
        ('["base64:type15:AP9h"]', ["\0a"]),
        ('{"a": ["x", "base64:type16:BQ=="]}', {b"a": [b"x", "\5"]}),
    ],
)
def test_a_leaf_of_json_is_explained_by_its_own_text(ours: str, theirs: Any) -> None:
    assert verdict(JSON, ours, theirs) == "JSON's opaque values"
    assert verdict(JSON, ours.replace("0", "1").replace("AP", "aP").replace("BQ", "BA"), theirs) == ""


def test_plain_values_beside_an_opaque_one_must_be_equal() -> None:
    assert verdict(JSON, '[1.5, "a", 7]', [Decimal("1.5"), b"a", 7]) == "JSON's opaque values"
    assert verdict(JSON, '[1.5, "a", 7]', [Decimal("1.5"), b"a", 8]) == ""
    assert verdict(JSON, "[18446744073709551615]", [18446744073709551614]) == "", "not only as floats"
