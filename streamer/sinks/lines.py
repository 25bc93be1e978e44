"""A record as a line of JSON: `{"topic": ..., "key": ..., "value": ...}`, key and value as they go to Kafka."""

from __future__ import annotations

import json
from collections.abc import Sequence

NULL = b"null"


def lines(topic: str, keys: Sequence[bytes | None], values: Sequence[bytes | None]) -> bytes:
    """One line a record, each with its end."""
    begin = b'{"topic":' + json.dumps(topic, ensure_ascii=False).encode() + b',"key":'
    return b"".join(
        [
            b"".join((begin, NULL if key is None else key, b',"value":', NULL if value is None else value, b"}\n"))
            for key, value in zip(keys, values, strict=True)
        ]
    )
