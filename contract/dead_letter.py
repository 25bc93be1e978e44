"""The value of a record in `<pipeline>.dead-letter`: what was wrong, with which change, and the change itself."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

LEFT_OUT = "; the change is too large for Kafka, and left out of this letter"
PLACE = ("db", "table", "gtid", "file", "pos", "row", "seq", "ts_ms", "schema")


def letter(
    pipeline: str, kind: str, cause: str, by: str, topic: str, envelope: Mapping[str, Any], **more: Any
) -> bytes:
    """`kind`, `cause`: of the error; `by`: what failed; `topic`: where the record should have gone; `envelope`: of the
    record, of which op and place are told; `more`: `value`, or what stands for it."""
    told = {
        "pipeline": pipeline,
        "error": {"kind": kind, "cause": cause, "by": by},
        "source": {name: envelope["source"][name] for name in PLACE},
        "op": envelope["op"],
        "topic": topic,
        "ts_ms": time.time_ns() // 1_000_000,
        **more,
    }
    return _json(told)


def without_value(letter: bytes, **instead: Any) -> bytes:
    """One that is too large for Kafka: with the size of the change in place of it, and `instead`, which says where that
    is, if it is anywhere."""
    told = json.loads(letter)
    size = len(_json(told.pop("value", None)))
    if not instead:
        told["error"]["cause"] += LEFT_OUT
    return _json(told | {"value_bytes": size, **instead})


def _json(told: Any) -> bytes:
    return json.dumps(told, separators=(",", ":"), ensure_ascii=False).encode()
