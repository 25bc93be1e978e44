"""What a person is told where a file of the lake is not there any more when it is read."""

from __future__ import annotations

import re

GONE = re.compile(r"Object at location (?P<file>\S+) not found|does not exist or you don't have access")


def told(message: str) -> str | None:
    """In place of what delta-rs says of it; None of another failure."""
    if (found := GONE.search(message)) is None:
        return None
    named = f" ({found['file']})" if found["file"] else ""
    return (
        f"a file of the lake is not there{named}: a snapshot that was taken in "
        "meanwhile puts others in the place of a table's files, and maintenance removes old ones. Run it again; where "
        "it says the same, the file is lost: a snapshot of its table makes it anew; of the lake's own tables, whose "
        "names begin with _, docs/operations.md tells the way back"
    )
