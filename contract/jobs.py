"""What a Spark job tells the one who started it: its last word, one JSON line on standard output.

A job calls `report(...)` once, before it ends; a job that fails calls it with `error=` (one paragraph: what,
where, what to do) and ends with a status other than 0; with `again=True` where another run may well do better, nothing
mended: what was waited for in vain, or was away, may be there by then. The line passes through spark-submit's output,
so it needs no folder that both sides can reach. A reader asks `read(line)` of every line.
"""

from __future__ import annotations

import json
import sys
from typing import Any

MARK = "headrace-result: "
WAITS = "headrace-waits-for: "


def report(*, job: str, pipeline: str, error: str | None = None, **facts: Any) -> None:
    """Prints the result. `facts` must be JSON: `tables` maps `db.table` to what the job did with it."""
    result = {"job": job, "pipeline": pipeline, "ok": error is None, "error": error, **facts}
    sys.stdout.flush()
    print(MARK + json.dumps(result, separators=(",", ":"), default=str), flush=True)


def read(line: str) -> dict[str, Any] | None:
    """The result that the line carries (`job`, `pipeline`, `ok`, `error`, facts), or None."""
    _, mark, text = line.partition(MARK)
    if not mark:
        return None
    try:
        result = json.loads(text)
    except ValueError:
        return None
    return result if isinstance(result, dict) else None


def waits_for(gtid_set: str) -> None:
    """Says that the job waits until the lake is complete up to the GTID set, so that compaction can be started."""
    print(WAITS + gtid_set, flush=True)


def wait_of(line: str) -> str | None:
    """The GTID set that a job waits for, where the line says so."""
    return line.partition(WAITS)[2].strip() or None
