"""The lake's small files that a power cut may break: what keeps them whole, and what mends one that is not."""

from __future__ import annotations

import json

from contract import names
from contract.status import FILE as STATUS
from contract.status import WAY_BACK


def whole(text: str) -> bool:
    """Whether it is JSON to its end."""
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def broken(path: str, text: str, root: str, snapshot: str) -> str:
    """What is said of a file of the lake in `root` that is not whole, with what mends it. `snapshot`: how one is
    run."""
    found, mends = "broken" if text else "empty", _mends(path, root, snapshot)
    return f"the file {path} is {found}, as a power cut may leave it. {mends}"


def _mends(path: str, root: str, snapshot: str) -> str:
    within = path.removeprefix(f"{root}/").split("/")
    folder = "/".join((root, *within[:2]))
    if within == [STATUS]:
        return WAY_BACK
    if within in (["_topics.json"], ["_merge.json"]) or within[-1] == "topic-ids.json":
        return "Remove it: the next compaction notes anew what it has read"
    if within[0] == names.QUALITY:
        return "Remove it: it is a record of a check alone"
    if within[0] == names.STAGING:
        return f"Remove the folder {folder}, and {snapshot} for its tables"
    if within[0] == names.PARTS:
        return f"Remove the folder {folder}, and run the repair or backfill again that staged it"
    return (
        f"Put it back from a copy. Without one, move the folder {root} away and {snapshot}, which makes the lake anew"
    )
