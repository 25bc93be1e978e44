"""What the page shows: every pipeline with its tables, their freshness, the last proof, the last alerts.

Read from the lake's status (contract/status.py) and the quality records (quality/folder.py), never from Spark or
MySQL, so that looking costs nothing. What cannot be read is said in the pipeline's `note`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from contract import status
from contract.names import lake_root
from contract.pipeline import Pipeline
from contract.status import LakeStatus, TableStatus
from headrace import guides, pipeline_files, settings
from quality import folder
from quality.report import differences, unjudged
from readers.status import read

ALERTS = 5
SINCE = ". A snapshot was applied since that check: the next one tells what it mended"


def overview() -> dict[str, Any]:
    """`{"pipelines": [...], "mistakes": [...]}`, JSON-ready; times are Unix milliseconds UTC or ISO 8601."""
    pipelines, mistakes = pipeline_files.load_folder(settings.pipelines_folder())
    return {"pipelines": [_pipeline(pipeline) for pipeline in pipelines], "mistakes": mistakes}


def _pipeline(pipeline: Pipeline) -> dict[str, Any]:
    lake, note = _lake(pipeline)
    check, alerts, trouble = _quality(pipeline)
    return {
        "name": pipeline.name,
        "source": guides.source(pipeline),
        "lake": lake_root(pipeline),
        "dags": [f"{pipeline.name}.{purpose}" for purpose in guides.LINES],
        "note": note or (lake.refused if lake else None) or trouble,
        "run": {"number": lake.run, "at_ms": lake.written_at, "seconds": lake.seconds} if lake else None,
        "complete_to_ms": lake.checkpoint.ts_ms if lake and lake.checkpoint else None,
        "tables": _tables(lake, check),
        "check": _check(pipeline, check),
        "alerts": alerts,
    }


def _lake(pipeline: Pipeline) -> tuple[LakeStatus | None, str | None]:
    try:
        found = read(pipeline)
    except (status.StatusFormatError, OSError, ValueError) as error:
        return None, str(error)
    return found, None if found else f"No compaction has run yet: start {pipeline.name}.compaction."


def _quality(pipeline: Pipeline) -> tuple[dict[str, Any] | None, list[dict[str, Any]], str | None]:
    try:
        return folder.read_last(pipeline), folder.read_alerts(pipeline, ALERTS), None
    except (OSError, ValueError) as error:
        return None, [], f"the quality records cannot be read: {error}"


def _tables(lake: LakeStatus | None, check: dict[str, Any] | None) -> list[dict[str, Any]]:
    known = lake.tables if lake else {}
    proofs = (check or {}).get("tables", {})
    faults, left_out = differences(check or {}), unjudged(check or {})
    rows = []
    for name in sorted({*known, *proofs}):
        table, proof = known.get(name), proofs.get(name, {})
        only = table is not None and table.changes_only
        if only:  # a check of before is of rows that the lake had then
            proof, fault, left = {}, None, None
        else:
            fault, left = faults.get(name), left_out.get(name)
            if fault and _snapshot_since(table, check):
                fault += SINCE
        rows.append(
            {
                "name": name,
                "rows": table.rows if table and not only else None,
                "changes": table.changes if table else None,
                "fresh_to_ms": table.freshness_ms if table else None,
                "snapshot": bool(table and table.snapshot),
                "changes_only": only,
                "stopped": table.stopped if table else None,
                "unequal": table.unequal if table else None,
                "stale": table.stale.reason if table and table.stale else None,
                "outdated": table.outdated if table else None,
                "unread": table.unread if table else None,
                "ahead": table.ahead if table else None,
                "foreign": table.foreign.reason if table and table.foreign else None,
                "equal": proof.get("equal"),
                "not_compared": proof.get("reason") if proof.get("equal") is None else None,
                "checked_at": proof.get("at") or (check or {}).get("at") if proof else None,
                "sample": _sample(proof),
                "fault": fault,
                "unjudged": left,
            }
        )
    return rows


def _sample(proof: dict[str, Any]) -> str | None:
    """What a check looked at that took some of the chunks alone."""
    compared, of = proof.get("chunks_compared"), proof.get("chunks")
    return f"{compared} of {of} chunks" if compared is not None and of is not None and compared < of else None


def _snapshot_since(table: TableStatus | None, check: dict[str, Any] | None) -> bool:
    at = datetime.fromisoformat(check["at"]).timestamp() * 1000 if check and check.get("at") else None
    return bool(at and table and table.snapshot and table.snapshot.applied_at > at)


def _check(pipeline: Pipeline, check: dict[str, Any] | None) -> dict[str, Any] | None:
    if check is None:
        return None
    has_docs = (folder.docs(pipeline) / "index.html").exists()
    return {
        "at": check.get("at"),
        "ok": False if differences(check) else None if unjudged(check) else True,
        "docs": f"docs/{pipeline.name}/index.html" if has_docs else None,
    }
