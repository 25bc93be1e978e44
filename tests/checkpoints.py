"""Checkpoints for tests: one of a pipeline's beginning, of which a test names what it is about."""

from __future__ import annotations

from typing import Any

from contract.checkpoint import Checkpoint

SOURCE = "3e11fa47-71ca-11e1-9e33-c80aa9429562"  # a server's UUID


def checkpoint(**changes: Any) -> Checkpoint:
    given = {
        "pipeline": "sales", "connector_id": "headrace-sales", "server_id": 1, "server_uuid": SOURCE, "epoch": 0,
        "file": "binlog.000001", "pos": 4, "gtid_set": "", "ts_ms": 0, "events": 0, "written_at": 0,
    }  # fmt: skip
    return Checkpoint(**(given | changes))
