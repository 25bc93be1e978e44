"""DECIMAL's packed digits -> the text MySQL prints.

Source: MySQL's source documentation, strings/decimal.cc: nine digits in four bytes, leftovers in fewer, the first
bit inverted, all bits inverted below zero.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from struct import calcsize

from streamer.protocol.values.reader import Field, Reader

BYTES = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)  # that so many digits take
CODES = {1: "B", 2: "H", 3: "BH", 4: "I"}  # struct codes by bytes


def decimal(field: Field) -> Reader:
    """Each group of digits is a big-endian field or, of three bytes, two; below zero all their bits are inverted."""
    precision, scale = field.column.precision or 0, field.column.scale or 0
    before, behind = _groups(precision, scale)
    sizes = [BYTES[group] for group in before + behind]
    layout = "".join(CODES[size] for size in sizes)
    widths = [8 * calcsize(">" + code) for code in layout]
    sign = 1 << widths[0] - 1
    inverted = "; ".join(f"{{{n}}} ^= {(1 << width) - 1}" for n, width in enumerate(widths))
    first = (f'if {{0}} & {sign}: {{v}} = b""', f'else: {{v}} = b"-"; {inverted}')
    terms = _terms(sizes, sign)
    whole, fraction = _sum(before, terms[: len(before)]), _sum(behind, terms[len(before) :])
    form, args = (f'"%b%d.%0{scale}d"', (whole, fraction)) if scale else ('"%b%d"', (whole,))
    return Reader(form, ("{v}", *args), layout, big=True, first=first)


def _terms(sizes: list[int], sign: int) -> list[str]:
    """Each group's number, as an expression over its fields; the sign bit is taken off the first."""
    terms, field = [], 0
    for size in sizes:
        high = f"({{{field}}} ^ {sign})" if field == 0 else f"{{{field}}}"
        terms.append(f"({high} << 16 | {{{field + 1}}})" if size == 3 else high)
        field += len(CODES[size])
    return terms


def _sum(groups: list[int], terms: list[str]) -> str:
    """The groups' digits as one number."""
    weights = [10 ** sum(groups[n + 1 :]) for n in range(len(groups))]
    return (
        " + ".join(f"{term} * {weight}" if weight > 1 else term for term, weight in zip(terms, weights, strict=True))
        or "0"
    )


def size_of(precision: int, scale: int) -> int:
    """Bytes of a packed DECIMAL(precision, scale)."""
    return sum(BYTES[digits] for digits in _groups(precision, scale)[0] + _groups(precision, scale)[1])


def _groups(precision: int, scale: int) -> tuple[list[int], list[int]]:
    """Digits of each group before and behind the point."""
    whole, fraction = precision - scale, scale
    before = ([whole % 9] if whole % 9 else []) + [9] * (whole // 9)
    return before, [9] * (fraction // 9) + ([fraction % 9] if fraction % 9 else [])


@cache
def unpacker(precision: int, scale: int) -> Callable[[bytes], bytes]:
    before, behind = _groups(precision, scale)
    bits = 8 * size_of(precision, scale)
    sign, ones = 1 << (bits - 1), (1 << bits) - 1
    # (shift, mask, value of the group's last digit), from the right
    shift, places, digits = 0, [], 0
    for group in reversed(before + behind):
        places.append((shift, (1 << 8 * BYTES[group]) - 1, 10**digits))
        shift += 8 * BYTES[group]
        digits += group
    first, others = places[0] if places else (0, 0, 1), places[1:]
    template = f"%d.%0{scale}d".encode()
    power = 10**scale

    def unpack(raw: bytes) -> bytes:
        packed = int.from_bytes(raw, "big") ^ sign
        negative = packed & sign
        if negative:
            packed ^= ones
        number = packed & first[1]
        for shift, mask, worth in others:
            number += (packed >> shift & mask) * worth
        text = template % divmod(number, power) if scale else b"%d" % number
        return b"-" + text if negative else text

    return unpack
