"""Names of files and objects: the time of the first record, so that their order is that of their records."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from contract.names import escape

FORM = "%Y%m%dT%H%M%S.%fZ"
STEM = re.compile(r"\.?(\d{8}T\d{6}\.\d{6}Z)\.jsonl")
PLAIN = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,200}")


def stem_of(name: str) -> str:
    """The time in a file's name; empty where it is none of ours."""
    found = STEM.match(name)
    return found[1] if found else ""


def after(last: str) -> str:
    """The present time, or the microsecond behind the last name where the clock is not past that."""
    now = datetime.now(UTC)
    if last:
        now = max(now, datetime.strptime(last, FORM).replace(tzinfo=UTC) + timedelta(microseconds=1))
    return now.strftime(FORM)


def folder_of(topic: str) -> str:
    """The topic's name, where that is a plain name of a folder."""
    return topic if PLAIN.fullmatch(topic) else escape(topic)
