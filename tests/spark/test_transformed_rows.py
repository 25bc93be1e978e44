"""The rows of a snapshot as a transform leaves them, without Spark."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from contract import transforms
from contract.pipeline_archive import Archive
from contract.pipeline_http import Http
from contract.pipeline_records import Oversized, Records
from contract.pipeline_sinks import ObjectsOutput
from spark.snapshot.transformed_rows import RowTransform
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


def test_a_worker_gets_no_secret(tmp_path: Path) -> None:
    given = pipeline(tmp_path, body("return event"))
    secrets = {
        "kafka": given.kafka.model_copy(update={"properties": {"sasl.password": "hidden-1"}}),
        "records": Records(oversized=Oversized(target="s3://b", options={"secret": "hidden-2"})),
        "sinks": (ObjectsOutput(type="objects", url="s3://b", options={"secret": "hidden-3"}),),
        "archive": Archive(target="s3://b", spool=tmp_path, options={"secret": "hidden-4"}),
        "streamer": given.streamer.model_copy(update={"http": Http(token=SecretStr("hidden-5-and-long"))}),
        "source": given.source.model_copy(update={"password": SecretStr("hidden-6")}),
    }
    work = RowTransform(given.model_copy(update=secrets), SCHEMA, transforms.steps(given), {"gtid": None})
    assert b"hidden" not in pickle.dumps(work)
    [made] = work([('{"id":1}', '{"id":1,"v":null,"s":"a"}')])
    assert made[2] == '{"id":1,"v":null,"s":"a"}'
