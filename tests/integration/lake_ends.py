"""A job of the lake that ends in this process as by SIGKILL: behind an action that is drawn of its own, nothing of it
changes the lake any more, whatever the job does on its way out. Or somebody does something at that moment."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from delta.tables import DeltaMergeBuilder, DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql.readwriter import DataFrameWriter

from spark.failpoints import hooked
from spark.lake.lake import Lake

ACTIONS = {
    Lake: ("write", "delete", "remove", "replace", "create"),
    DataFrameWriter: ("save",),
    DeltaMergeBuilder: ("execute",),
    DeltaTable: ("delete", "update", "vacuum", "restoreToVersion"),
    SparkSession: ("sql",),
}  # fmt: skip
READS = re.compile(r"\s*(SELECT|DESCRIBE|SHOW|WITH)\b", re.IGNORECASE)


UNCOUNTED = re.compile(r"/\.probe-|/beat\.json")  # they change nothing, or are written as often as it takes time


class EndedError(Exception):
    pass


class Ending:
    """Ends behind the action or the point `at`, counted from 1; or, where `meanwhile` is given, does that there, and
    the job goes on. `place`: where that was."""

    def __init__(self, at: int, meanwhile: Callable[[], None] | None = None) -> None:
        self.at, self.meanwhile = at, meanwhile
        self.seen, self.place, self.lock = 0, "", threading.RLock()
        self.own = threading.local()

    def point(self, name: str) -> None:
        if getattr(self.own, "uncounted", False):
            return
        with self.lock:
            self.prove()
            self.seen += 1
            if self.seen == self.at:
                self.place = name
                self._come()

    def _come(self) -> None:
        self.own.uncounted = True
        if self.meanwhile:
            self.meanwhile()
        self.own.uncounted = False
        self.prove()

    def prove(self) -> None:
        if self.place and not self.meanwhile:
            raise EndedError(self.place)

    def wrapped(self, owner: type, method: str) -> Callable[..., Any]:
        original = getattr(owner, method)

        def call(this: Any, *given: Any, **named: Any) -> Any:
            if method == "sql" and READS.match(str(given[0])):
                return original(this, *given, **named)
            self.prove()
            if getattr(self.own, "uncounted", False):
                return original(this, *given, **named)
            uncounted = owner is Lake and UNCOUNTED.search(str(given[0])) is not None
            self.own.uncounted = uncounted
            try:
                result = original(this, *given, **named)
            finally:
                self.own.uncounted = False
            if not uncounted:
                self.point(f"{owner.__name__}.{method}")
            return result

        return call


@contextmanager
def ended(ending: Ending) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched, hooked(ending.point):
        for owner, methods in ACTIONS.items():
            for method in methods:
                patched.setattr(owner, method, ending.wrapped(owner, method))
        yield
