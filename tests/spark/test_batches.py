"""A query's batches: their errors come out as they were raised, and none is written under no name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from spark.errors import LakeError
from spark.landing.batches import run_batches


class Query:
    """A streaming query with one batch that comes before `start` has given the query's id (`early`) or after it."""

    id = "a-query"

    def __init__(self, early: bool) -> None:
        self.early, self.options = early, {}
        self.batch: Callable[[Any, int], None]

    @property
    def writeStream(self) -> Query:
        return self

    def foreachBatch(self, batch: Callable[[Any, int], None]) -> Query:
        self.batch = batch
        return self

    def trigger(self, **_: Any) -> Query:
        return self

    def option(self, key: str, value: str) -> Query:
        self.options[key] = value
        return self

    def start(self) -> Query:
        if self.early:
            self._run()
        return self

    def awaitTermination(self) -> None:
        if not self.early:
            self._run()
        if self.failure:
            raise RuntimeError("a text of Spark's around it") from None

    def _run(self) -> None:
        self.failure = False
        try:
            self.batch("rows", 7)
        except Exception:
            self.failure = True


def test_a_batch_gets_its_number_and_its_query() -> None:
    seen: list[Any] = []
    query: Any = Query(early=False)
    run_batches(query, "somewhere", lambda *given: seen.append(given), lambda: seen.append("on the disk"))
    assert seen == ["on the disk", "on the disk", ("rows", 7, "a-query"), "on the disk"]
    assert query.options == {"checkpointLocation": "somewhere"}


def test_a_query_without_a_name_writes_nothing() -> None:
    written: list[Any] = []
    query: Any = Query(early=True)
    with pytest.raises(LakeError, match=r"did not name the query within 0\.05 s; run the job again"):
        run_batches(query, "somewhere", lambda *given: written.append(given), lambda: None, wait=0.05)
    assert written == []


def test_a_batchs_own_error_comes_out() -> None:
    def fails(*_: Any) -> None:
        raise LakeError("the very words")

    query: Any = Query(early=False)
    with pytest.raises(LakeError, match=r"^the very words$"):
        run_batches(query, "somewhere", fails, lambda: None)
