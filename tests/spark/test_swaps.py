"""A file that a store lets one of several writers replace; a store that only seems to do so is found out."""

from __future__ import annotations

import json
import time
from typing import Any, cast

import pytest

from contract.pipeline import Pipeline
from spark.errors import LakeError
from spark.lake import lease, swaps
from spark.lake.lake import Lake
from spark.lake.lease import Lease
from spark.lake.swaps import Conditional, Settled
from tests.spark.away import Away


class Careless:
    """A lake whose store takes every write, whatever its condition."""

    root = "s3a://lakes/shop"

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline, self.file, self.number = pipeline, cast(Any, None), 0

    def etag(self, path: str) -> str | None:
        return str(self.number) if self.file is not None else None

    def read(self, path: str) -> Any:
        return self.file

    def create(self, path: str, value: Any, over: str | None) -> None:
        self.file, self.number = value, self.number + 1

    def delete(self, path: str) -> None:
        self.file = None


def test_a_store_without_conditional_writes_is_told_and_what_to_do(pipeline: Pipeline) -> None:
    lake = Careless(pipeline)
    file = Conditional(cast(Lake, lake), "_writer.json")
    tag = file.put({"by": "me"}, None)
    assert tag is not None
    with pytest.raises(
        LakeError, match=r"takes no conditional writes .* conditional_writes: false in lake\.s3 of .*yaml"
    ):
        file.prove(tag)
    assert lake.file is None, "nobody is to wait for it"


def test_a_store_that_looks_for_no_tag_is_found_out_too(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two that wait for one that was killed would both have its place, and so would each next beat."""
    lake = Careless(pipeline)
    refused = type("Refused", (Exception,), {})

    def create(path: str, value: Any, over: str | None) -> None:
        if over is None and lake.file is not None:
            raise refused
        Careless.create(lake, path, value, over)

    monkeypatch.setattr(lake, "create", create)
    monkeypatch.setattr(swaps, "_status", lambda error: 412 if isinstance(error, refused) else None)
    file = Conditional(cast(Lake, lake), "_writer.json")
    tag = file.put({"by": "me"}, None)
    assert tag is not None
    with pytest.raises(LakeError, match=r"takes no conditional writes \(If-None-Match, If-Match\)"):
        file.prove(tag)
    assert lake.file is None


def test_only_its_own_text_is_removed(pipeline: Pipeline) -> None:
    lake = Careless(pipeline)
    file = Conditional(cast(Lake, lake), "_writer.json")
    tag = file.put({"by": "me"}, None)
    file.put({"by": "another"}, None)
    file.remove(str(tag))
    assert lake.file == {"by": "another"}


class Stuttering(Away):
    """One whose store answers a write, and not the next read, as often as `left` says."""

    left = 0

    def write(self, path: str, value: Any) -> None:
        super().write(path, value)
        if self.left:
            self.left, self.failing = self.left - 1, 1


def test_one_read_without_an_answer_behind_a_write_costs_no_lease(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place, name, seconds in ((lease, "BEAT", 0.02), (swaps, "SETTLED", 0.01)):
        monkeypatch.setattr(place, name, seconds)
    lake, lost = Stuttering(pipeline), list[str]()
    one = Lease(lake.root, Settled(cast(Lake, lake), "_writer.json"), lost.append)
    assert one.taken({"job": "compact"})
    lake.left = 2
    until = time.monotonic() + 5.0
    while lake.left or json.loads(lake.files["_writer.json"])["beat"] < 5:
        assert (lost, time.monotonic() < until) == ([], True)
        time.sleep(0.02)
    one.release()
    assert (lost, lake.files) == ([], {})


def test_where_no_store_decides_another_ones_text_is_left_as_it_is(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(swaps, "SETTLED", 0.01)
    lake = Away(pipeline)
    file = Settled(cast(Lake, lake), "_writer.json")
    tag = file.put({"by": "me"}, None)
    lake.write("_writer.json", {"by": "another"})
    assert file.put({"by": "me", "beat": 1}, tag) is None
    assert lake.read("_writer.json") == {"by": "another"}
