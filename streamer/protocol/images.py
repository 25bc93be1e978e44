"""Whether the images of a rows event hold every column of their table.

Raises MissingMetadataError where they do not, ValueError where the event and its table map do not fit together.
"""

from __future__ import annotations

import re

from streamer.errors import MissingMetadataError
from streamer.protocol.model import TableMap
from streamer.protocol.refusals import ANEW

# How MySQL 8.0 names the column of a functional index; some of its releases tell of it and leave it out of the rows.
OF_AN_INDEX = re.compile(r"[0-9a-f]{32}|!hidden!.*")


def check_images(table: TableMap, full: bytes, found: bytes) -> None:
    """Passes where only bits beyond the last column differ."""
    width = table.width
    size, every = (width + 7) // 8, (1 << width) - 1
    first = len(table.full) - size  # behind the number of columns
    if found[:first] != full[:first]:
        raise ValueError("the rows have other columns than their table map")
    images = [int.from_bytes(found[at : at + size], "little") for at in range(first, len(full), size)]
    if any(image & every != every for image in images):
        lacking = {n for n in range(width) for image in images if not image >> n & 1}
        if all(OF_AN_INDEX.fullmatch(table.columns[n].name) for n in lacking if n < len(table.columns)):
            raise _functional_index(table)
        raise _partial_image(table)


def _functional_index(table: TableMap) -> MissingMetadataError:
    cause = "the table has a functional index, whose hidden column this release of MySQL names but leaves out of rows"
    hint = f"Upgrade the server, or drop the index, then {ANEW}; or exclude the table in the pipeline file"
    return MissingMetadataError("read", f"rows of {table.db}.{table.table}", cause, hint)


def _partial_image(table: TableMap) -> MissingMetadataError:
    hint = (
        "Set binlog_row_image = 'FULL' (MySQL: SET PERSIST; MariaDB: SET GLOBAL, and in its configuration), see that "
        f"no session sets it otherwise; then {ANEW}"
    )
    cause = "they lack columns (binlog_row_image is not FULL)"
    return MissingMetadataError("read", f"rows of {table.db}.{table.table}", cause, hint)
