"""The lake's own tables beside `_changes`: what is forgotten with one that is moved away since a file of it is lost,
and what makes up for it. Nothing else of the lake points into one of them, so each job goes on without it: the first
that has a row for it makes it anew.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from urllib.parse import unquote

from contract import names, steps
from contract.pipeline import Pipeline

SECTION = '"A file of the lake\'s own tables that is lost" in docs/operations.md'
FORGOTTEN: Mapping[str, str] = {
    names.REPAIRS: (
        "which rows were mended from the source, of which no change tells. Until a snapshot that began behind that is "
        "applied, one that was read before a repair, or a backfill from changes or Kafka, may take back what was "
        "mended: {snapshot}, for the tables that were repaired since their last one"
    ),
    names.CHECKS: (
        "the results of all checks, and with them which differences are open, and since when: {check}, which finds "
        "anew what there is"
    ),
    names.DIFFERENCES: "which differences are open, and since when: {check}, which finds anew what there is",
    names.SCHEMA_CHANGES: (
        "the list of statements and of what they changed. No row and no mark of a table goes by it; a backfill of a "
        "table that has no snapshot, and was made before, asks for one"
    ),
    names.DEAD_LETTERS: (
        "the records that were put aside, as they came; Kafka may have them still. Their tables count as unequal until "
        "a snapshot all the same"
    ),
    names.ERASURES: (
        "what was erased when, and what remained then: the record for people. What was erased does not come back all "
        "the same"
    ),
}


def own_back(pipeline: Pipeline, told: Iterable[str]) -> str | None:
    """Which of these tables the texts name a file of, and its way back; None where they name none."""
    root = names.lake_root(pipeline)
    file = re.compile(rf"{re.escape(root)}/({'|'.join(FORGOTTEN)})/([^\s'\"`]+?\.(?:parquet|bin))\b")
    found = next(filter(None, (file.search(unquote(text)) for text in told)), None)
    if found is None:
        return None
    words = {"snapshot": steps.snapshot(pipeline), "check": steps.check(pipeline)}
    return (
        f"It is {found[2]} of the lake's own table {root}/{found[1]}. Put it back from a copy. Without one, while no "
        f"job of the pipeline runs, move that folder away as a whole, and run this again; see {SECTION}. Forgotten "
        f"is then {FORGOTTEN[found[1]].format(**words)}"
    )
