"""The server's texts of dates and times -> the numbers and ISO texts that Debezium makes of them.

Each function gives None where there is none: of a zero or partial date, of a day that no calendar has, of a TIME that
is no time of a day.
"""

from __future__ import annotations

from datetime import date

EPOCH = date(1970, 1, 1).toordinal()
DAY = 86_400_000_000  # microseconds
CYCLE = 400, 146_097  # years after which the calendar comes again, and their days


def days(text: str) -> int | None:
    """`2024-02-29` -> days since 1970."""
    year, month, day = int(text[:4]), int(text[5:7]), int(text[8:10])
    try:
        if year:
            return date(year, month, day).toordinal() - EPOCH
        return date(CYCLE[0], month, day).toordinal() - CYCLE[1] - EPOCH  # Python's calendar begins with the year 1
    except ValueError:
        return None


def of_time(text: str) -> int:
    """`-838:59:59.000001` -> microseconds."""
    hours, minutes, rest = text.lstrip("-").split(":")
    seconds, _, fraction = rest.partition(".")
    micros = (int(hours) * 3600 + int(minutes) * 60 + int(seconds)) * 1_000_000 + int(fraction.ljust(6, "0"))
    return -micros if text.startswith("-") else micros


def micros(text: str) -> int | None:
    """`2026-01-01 10:00:00.5` -> microseconds since 1970, as if it were UTC."""
    day = days(text)
    return None if day is None else day * DAY + of_time(text[11:])


def millis(text: str) -> int | None:
    """What is below a millisecond is lost."""
    found = micros(text)
    return None if found is None else found // 1000


def millis_of_day(text: str) -> int | None:
    """`24:00:00` is the end of one."""
    found = of_time(text)
    return found // 1000 if 0 <= found <= DAY else None


def iso_date(text: str) -> str | None:
    return None if days(text) is None else f"{text}Z"


def iso_time(text: str) -> str | None:
    return _short(text) + "Z" if 0 <= of_time(text) < DAY else None


def iso_datetime(text: str) -> str | None:
    return None if days(text) is None else _short(text.replace(" ", "T")) + "Z"


def zoned(text: str) -> str | None:
    """Of a TIMESTAMP, which is ISO 8601 already."""
    return None if days(text) is None else text


def _short(text: str) -> str:
    """Without zeros at the fraction's end."""
    whole, _, fraction = text.partition(".")
    kept = fraction.rstrip("0")
    return f"{whole}.{kept}" if kept else whole
