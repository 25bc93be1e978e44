"""A file of the lake that one of several writers at a time gets to replace.

`Conditional` has the store decide, by S3's conditional writes. `Settled` is for file systems that have no such thing:
the last of two that write at once is the one whose text is there SETTLED seconds later.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

from spark.errors import LakeError
from spark.lake.lake import Lake

SETTLED = 2.0  # seconds
CHANGED = (404, 409, 412)  # HTTP's status where the file is not what it was
NOT_KNOWN = (400, 405, 501)


class Known(NamedTuple):
    """`tag` says which text of the file it is."""

    value: dict[str, Any]
    tag: str


class Swap(Protocol):
    """`known`: what the file has, None where there is none. `put` writes it in place of the text of the tag `over`,
    None: where there is no file; it gives the new tag, and None where something else is there by now. `remove` deletes
    the file where its text still has the tag."""

    def known(self) -> Known | None: ...

    def put(self, value: dict[str, Any], over: str | None) -> str | None: ...

    def remove(self, tag: str) -> None: ...

    def prove(self, tag: str) -> None:
        """Raises LakeError where the file, which has the tag, is not kept from another writer."""


def swap(lake: Lake, path: str) -> Swap:
    s3 = lake.pipeline.lake.bucket is not None and lake.pipeline.lake.s3.conditional_writes
    return Conditional(lake, path) if s3 else Settled(lake, path)


class Settled:
    def __init__(self, lake: Lake, path: str) -> None:
        self.lake, self.path = lake, path

    def known(self) -> Known | None:
        found = self.lake.read(self.path)
        return None if found is None else Known(dict(found), _text(found))

    def put(self, value: dict[str, Any], over: str | None) -> str | None:
        known = self.known()
        if (known.tag if known else None) != over:
            return None
        self.lake.write(self.path, value)
        time.sleep(SETTLED)
        known = self.known()
        return known.tag if known and known.tag == _text(value) else None

    def remove(self, tag: str) -> None:
        if (known := self.known()) and known.tag == tag:
            self.lake.delete(self.path)

    def prove(self, tag: str) -> None:
        return None


class Conditional:
    def __init__(self, lake: Lake, path: str) -> None:
        self.lake, self.path = lake, path

    def known(self) -> Known | None:
        # The tag first: where the text is replaced in between, the tag is an older one's, and no longer good.
        tag = self.lake.etag(self.path)
        found = self.lake.read(self.path) if tag else None
        return Known(dict(found), tag) if tag and found is not None else None

    def put(self, value: dict[str, Any], over: str | None) -> str | None:
        try:
            self.lake.create(self.path, value, over)
        except Exception as error:
            status = _status(error)
            if status in NOT_KNOWN:
                raise self._unknown() from error
            if status not in CHANGED:
                raise
        # A refusal may be that of a second attempt, whose first had come through.
        known = self.known()
        return known.tag if known and known.value == value else None

    def remove(self, tag: str) -> None:
        if self.lake.etag(self.path) == tag:
            self.lake.delete(self.path)

    def prove(self, tag: str) -> None:
        """Of both conditions: that there is no file, and that it has a text which it has not."""
        for over in (None, re.sub(r"[0-9a-f]", "0", tag)):
            if self.put({"probe": time.time_ns()}, over) is not None:
                self.lake.delete(self.path)
                raise self._unknown()

    def _unknown(self) -> LakeError:
        pipeline = self.lake.pipeline
        return LakeError(
            f"the store of the lake {self.lake.root} takes no conditional writes (If-None-Match, If-Match), by which "
            f"two jobs are kept from writing at once. Write conditional_writes: false in lake.s3 of {pipeline.path}; "
            "then see that a job that was cut off from the store for a minute is ended before another one starts"
        )


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _status(error: Exception) -> int | None:
    """HTTP's status of a refused request; None of what is none."""
    for cause in _causes(getattr(error, "java_exception", None)):
        if found := re.search(r"Status Code: (\d{3})", str(cause.getMessage())):
            return int(found[1])
        if str(cause.getClass().getSimpleName()) == "FileAlreadyExistsException":
            return 412
    return None


def _causes(java: Any) -> Iterator[Any]:
    while java is not None:
        yield java
        java = java.getCause()
