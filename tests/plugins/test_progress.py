"""What the last task of a snapshot waits for, and what it says is missing."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
from airflow.sdk.exceptions import AirflowFailException

from contract.status import AppliedSnapshot, LakeStatus, PartStatus, TableStatus
from headrace import progress
from headrace.waiting import SnapshotApplied
from tests.checkpoints import checkpoint

UUID = "11111111-1111-1111-1111-111111111111"
REPORT: dict[str, Any] = {"snapshot": "s2", "p1": f"{UUID}:1-50", "tables": {"shop.a": {}, "shop.b": {}}}


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "shop.yaml"
    path.write_text(
        "format: 1\nname: shop\nsource: {host: localhost, user: u, password_file: p, server_id: 7}\n"
        "tables: {include: ['shop.*']}\nkafka: {bootstrap: '127.0.0.1:9'}\n"
        f"lake: {{path: {tmp_path}/lake}}\n"
    )
    return str(path)


def status_of(tmp_path: Path) -> Path:
    return tmp_path / "lake" / "shop" / "_status.json"


def write_status(
    tmp_path: Path, last: int, snapshots: dict[str, str | None], parts: dict[str, str | None] | None = None
) -> None:
    """`parts`: why each was refused."""
    end = checkpoint(pipeline="shop", server_uuid=UUID, epoch=1, gtid_set=f"{UUID}:1-{last}")
    tables = {
        f"shop.{name}": TableStatus(
            db="shop", table=name, rows=1, changes=1,
            snapshot=AppliedSnapshot(id=id, p0="", p1="", rows=1, applied_at=1) if id else None,
        )
        for name, id in snapshots.items()
    }  # fmt: skip
    told = {id: PartStatus(db="shop", table="a", job="repair", at=1, refused=why) for id, why in (parts or {}).items()}
    status = LakeStatus(
        pipeline="shop", run=3, written_at=1, seconds=1.0, checkpoint=end, changes_version=1, tables=tables,
        parts=told,
    )  # fmt: skip
    path = status_of(tmp_path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(status.model_dump_json())


def test_of_a_lake_that_spark_alone_can_read_the_wait_ends_at_once(file: str) -> None:
    path = Path(file)
    path.write_text(re.sub(r"lake: .*", "lake: {path: 'hdfs://h:9000/lake'}", path.read_text()))
    ti = MagicMock()
    ti.xcom_pull.return_value = REPORT
    with pytest.raises(AirflowFailException, match=r"neither in a folder nor on S3.*`headrace snapshot --compact`"):
        SnapshotApplied(task_id="t", pipeline_file=file, stage="stage").execute({"ti": ti})


def test_it_waits_for_a_first_run_then_for_the_tables_then_for_the_position(tmp_path: Path, file: str) -> None:
    assert "no compaction has run yet" in str(progress.snapshot_applied(file, REPORT))
    write_status(tmp_path, 50, {"a": "s2", "b": "s1"})
    assert "has not applied the snapshot to shop.b" in str(progress.snapshot_applied(file, REPORT))
    written = json.loads(status_of(tmp_path).read_text())
    written["tables"]["shop.b"]["stopped"] = "shop.b: no key"
    status_of(tmp_path).write_text(json.dumps(written))
    assert str(progress.snapshot_applied(file, REPORT)).endswith("to shop.b: shop.b: no key")
    write_status(tmp_path, 49, {"a": "s2", "b": "s2"})
    assert "not yet complete up to" in str(progress.snapshot_applied(file, REPORT))
    write_status(tmp_path, 50, {"a": "s2", "b": "s2"})
    assert progress.snapshot_applied(file, REPORT) is None
    write_status(tmp_path, 50, {"a": "s2", "b": "s3"})
    assert progress.snapshot_applied(file, REPORT) is None, "somebody has taken another one of it since"


def test_it_waits_for_every_part_that_was_staged(tmp_path: Path, file: str) -> None:
    report = {"p1": f"{UUID}:1-50", "parts": {"one": "shop.a", "two": "shop.b"}}
    assert "has not taken the rows of shop.a, shop.b" in str(progress.parts_applied(file, report))
    write_status(tmp_path, 49, {"a": "s1"}, {"one": None, "older": None})
    assert f"rows of shop.b, which is complete up to {UUID}:1-49" in str(progress.parts_applied(file, report))
    write_status(tmp_path, 50, {"a": "s1"}, {"one": None})
    complete = "the lake has not taken the rows of shop.b: does shop.compaction run?"
    assert progress.parts_applied(file, report) == complete
    assert progress.parts_applied(file, {**report, "p1": ""}) == complete  # a backfill from history
    written = json.loads(status_of(tmp_path).read_text())
    written["tables"]["shop.b"] = {**written["tables"]["shop.a"], "table": "b", "stopped": "shop.b: no key"}
    status_of(tmp_path).write_text(json.dumps(written))
    assert progress.parts_applied(file, report) == "the lake has not taken the rows of shop.b: shop.b: no key"
    write_status(tmp_path, 50, {"a": "s1"}, {"one": None, "two": "read anew"})
    assert progress.parts_applied(file, report) is None
    assert [part.refused for part in progress.parts(file, report)] == [None, "read anew"]


def test_what_cannot_be_told_is_asked_again_not_taken_for_done(tmp_path: Path, file: str) -> None:
    (tmp_path / "lake" / "shop").mkdir(parents=True)
    (tmp_path / "lake" / "shop" / "_status.json").write_text("{")
    with pytest.raises(progress.CannotTellError, match="status cannot be read"):
        progress.snapshot_applied(file, REPORT)
