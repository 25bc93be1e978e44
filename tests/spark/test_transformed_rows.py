"""The rows of a snapshot as a transform leaves them, without Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from contract import transforms
from spark.transformed_rows import RowTransform
from tests.contract.test_transforms import SCHEMA, body, pipeline


def made(folder: Path, script: str, *rows: dict[str, Any]) -> list[tuple[Any, ...]]:
    given = pipeline(folder, script)
    work = RowTransform(given, SCHEMA, transforms.steps(given), {"gtid": None})
    return list(work((json.dumps({"id": row["id"]}), json.dumps(row)) for row in rows))


def test_a_row_has_the_key_that_its_changes_have(tmp_path: Path) -> None:
    script = body("event.after['id'] += 100", "event.key = {'id': event.after['id']}", "return event")
    [(key, _, after, *_)] = made(tmp_path, script, {"id": 1, "v": None, "s": "a"})
    assert (key, json.loads(after)["id"]) == ('{"id":101}', 101)


def test_a_key_that_stays_has_its_very_bytes(tmp_path: Path) -> None:
    script = body("event.after['v'] = 1", "return event")
    [(key, *_)] = made(tmp_path, script, {"id": 1, "v": None, "s": "a"})
    assert key == '{"id": 1}'
