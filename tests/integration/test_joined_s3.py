"""A streamer hears from a lake on a real S3 server of which tables that joined a snapshot was applied."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest
from structlog.testing import capture_logs

from contract import names
from contract.pipeline import Pipeline
from contract.pipeline_lake import S3A
from contract.status import FILE, LakeStatus
from stack.ports import free_port
from stack.s3 import S3
from streamer import joined
from streamer.lake import Lake, settings
from tests.checkpoints import checkpoint
from tests.s3_server import s3_server
from tests.streamer.fakes import pipeline
from tests.streamer.test_joined import PLACE, in_lake

HERE = checkpoint(pos=200).joining({"shop.u": True}, PLACE)


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3]:
    with s3_server(tmp_path_factory.mktemp("s3"), "lakes") as server:
        yield server


def on_s3(s3: S3, folder: str, **more: Any) -> Pipeline:
    told = pipeline().model_dump(mode="json", exclude_none=True, exclude={"path"})
    store = {"endpoint_url": s3.endpoint, "key": s3.key, "secret": s3.secret} | more
    return Pipeline.model_validate(told | {"lake": {"path": f"s3a://lakes/{folder}", "s3": store}})


def write(where: Pipeline, text: str) -> None:
    root = names.lake_root(where).removeprefix(S3A)
    options = settings(where)
    options["config_kwargs"] = {**options["config_kwargs"], "request_checksum_calculation": "when_required"}
    fsspec.filesystem("s3", **options).pipe_file(f"{root}/{FILE}", text.encode())


def applied() -> str:
    return LakeStatus(
        pipeline="sales", run=1, written_at=1, seconds=1, checkpoint=HERE, changes_version=1,
        tables={"shop.u": in_lake()},
    ).model_dump_json()  # fmt: skip


def test_what_the_lake_has_read_since_is_over(s3: S3) -> None:
    where = on_s3(s3, "applied")
    lake = Lake(where)
    with capture_logs() as logs:
        assert joined.unread(HERE, lake.read) == {"shop.u": PLACE}, "no compaction has run"
        write(where, applied())
        assert joined.over(HERE, lake.read) == ["shop.u"]
    assert logs == []


def test_a_status_is_not_kept_waiting_and_hears_of_it_soon(s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamer.lake.EVERY_SECONDS", 0.1)
    where = on_s3(s3, "asked")
    write(where, applied())
    lake = Lake(where)
    assert joined.unread(HERE, lake.latest) == {"shop.u": PLACE}, "nothing was heard yet"
    until = time.monotonic() + 20
    while joined.unread(HERE, lake.latest):
        assert time.monotonic() < until
        time.sleep(0.05)
    write(where, "{")
    time.sleep(0.5)
    assert joined.unread(HERE, lake.latest) == {}, "what was known last"


@pytest.mark.parametrize("more", [{"secret": "wrong"}, {"endpoint_url": f"http://127.0.0.1:{free_port()}"}])
def test_a_store_that_does_not_answer_ends_nothing_and_is_told_once(
    s3: S3, more: dict[str, str], tmp_path: Path
) -> None:
    write(on_s3(s3, "refused"), applied())
    lake = Lake(on_s3(s3, "refused", **more))
    with capture_logs() as logs:
        assert joined.over(HERE, lake.read) == joined.over(HERE, lake.read) == []
    [told] = logs
    assert (told["log_level"], told["lake"]) == ("warning", "lakes/refused/sales/_status.json")
    assert s3.secret not in str(told)
