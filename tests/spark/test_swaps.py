"""A file that a store lets one of several writers replace; a store that only seems to do so is found out."""

from __future__ import annotations

from typing import Any, cast

import pytest

from contract.pipeline import Pipeline
from spark.errors import LakeError
from spark.lake.lake import Lake
from spark.lake.swaps import Conditional


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


def test_only_its_own_text_is_removed(pipeline: Pipeline) -> None:
    lake = Careless(pipeline)
    file = Conditional(cast(Lake, lake), "_writer.json")
    tag = file.put({"by": "me"}, None)
    file.put({"by": "another"}, None)
    file.remove(str(tag))
    assert lake.file == {"by": "another"}
