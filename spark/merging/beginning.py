"""Where the merge's query begins: behind its last batch, or anew where it cannot go on there."""

from __future__ import annotations

from spark.failpoints import reached
from spark.lake.lake import Lake
from spark.lake.merged import followed, in_log, merged_to
from spark.landing.foreign import Looked

FILE = "_merge.json"  # there while it begins anew behind what was merged: the first version that was not


def begins_at(lake: Lake, looked: Looked) -> dict[str, str] | None:
    """Options of the query's reader; None where it would begin behind all that there is, so that nothing is to be
    merged. Where its checkpoint is gone it reads all of `_changes`; so it does where what somebody else wrote there
    was taken back, since it cannot pass by those commits."""
    if looked.undone:
        _anew(lake)
        return {}
    known = lake.read(lake.at(FILE))
    if known is None and looked.merged is not None and _cleaned(lake):
        print("Delta has no log any more of what was merged last: the merge begins anew behind that", flush=True)
        known = {"version": looked.merged + 1}
        lake.write(lake.at(FILE), known)
        reached("merge's beginning noted")
    if known is None:
        return {}
    if looked.version is None or known["version"] > looked.version:
        return None
    _anew(lake)
    return {"startingVersion": str(known["version"])} if in_log(lake, known["version"]) else {}


def begun(lake: Lake) -> None:
    """Behind the query's first batch."""
    if lake.exists(lake.at(FILE)):
        lake.delete(lake.at(FILE))
        reached("merge's beginning forgotten")


def _cleaned(lake: Lake) -> bool:
    """Whether Delta has removed the log of what the last batch had, as it does where nothing was merged for longer than
    it keeps the log (delta_log.py), or its clock went on by as much: without that Spark does not start the query
    again."""
    needed = followed(lake) or merged_to(lake)  # of a first batch alone Spark asks for the whole table behind it
    return needed is not None and not in_log(lake, needed)


def _anew(lake: Lake) -> None:
    lake.delete(lake.checkpoint("tables"))
    reached("merge begun anew")
