"""Where everything of a pipeline's lake is, and its few small files (marks, manifests, status).

The files go through Hadoop's file systems, as Spark's own do, so a lake may be a folder or any URI that Spark
knows. A write is a new file renamed over the old one: a reader sees the old text or the new, never half. Where a
rename does not replace, the old file goes first; a run that dies just then leaves the new one beside its name,
and readers take that.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from pyspark.sql import SparkSession

from contract import names
from contract.pipeline import Pipeline
from contract.status import FILE as STATUS
from spark.errors import LakeError, reason

NEW = ".new-"  # between a file's name and the process that writes it


class Lake:
    """Paths are absolute. Raises LakeError where the lake's folder cannot be made or written."""

    def __init__(self, spark: SparkSession, pipeline: Pipeline) -> None:
        self.spark = spark
        self.pipeline = pipeline
        root = names.lake_root(pipeline)
        self.root = root if "://" in root else os.path.abspath(root)
        jvm: Any = spark._jvm
        self._path = jvm.org.apache.hadoop.fs.Path
        configuration = spark._jsc.hadoopConfiguration()
        # An instance of our own: without the checksum files that a rename would leave behind for a moment.
        self._files = jvm.org.apache.hadoop.fs.FileSystem.newInstance(self._path(self.root).toUri(), configuration)
        self._files.setWriteChecksum(False)
        self._files.setVerifyChecksum(False)

    @property
    def changes(self) -> str:
        return self.at(names.CHANGES)

    @property
    def status(self) -> str:
        return self.at(STATUS)

    def table(self, db: str, table: str) -> str:
        return self.at(names.escape(db), names.escape(table))

    def at(self, *parts: str) -> str:
        return "/".join((self.root, *parts))

    def checkpoint(self, query: str) -> str:
        return self.at("_checkpoints", query)

    def prove_writable(self) -> None:
        probe = self.at(f".probe-{os.getpid()}")
        try:
            self._files.mkdirs(self._path(self.root))
            self.write(probe, {})
            self.delete(probe)
        except Exception as error:
            raise LakeError(
                f"the lake's folder {self.root} cannot be written: {reason(error)}. "
                "Give it to the user that runs Spark, free some space, or change lake.path in "
                f"{self.pipeline.path}"
            ) from error

    def exists(self, path: str) -> bool:
        return self._there(path) or self._beside(path) is not None

    def _there(self, path: str) -> bool:
        return bool(self._files.exists(self._path(path)))

    def is_table(self, path: str) -> bool:
        return self.version(path) is not None

    def version(self, path: str) -> int | None:
        """The version of the Delta table at the path, None where there is no table. The log's newest commit is
        a file of this number; to ask Delta would cost a query."""
        commits = [name.removesuffix(".json") for name in self.list(f"{path}/_delta_log") if name.endswith(".json")]
        return max((int(name) for name in commits if name.isdigit()), default=None)

    def read(self, path: str) -> Any | None:
        """The JSON of a file, or None where there is none."""
        text = self.text(path)
        return None if text is None else json.loads(text)

    def text(self, path: str) -> str | None:
        return self._text(path) if self._there(path) else self._beside(path)

    def _text(self, path: str) -> str:
        stream = self._files.open(self._path(path))
        try:
            jvm: Any = self.spark._jvm
            return str(jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def _beside(self, path: str) -> str | None:
        """The text of the last write that got no further than a whole new file; None where there is none."""
        for new in self._new(path):
            text = self._text(new)
            with suppress(ValueError):
                json.loads(text)
                return text
        return None

    def _new(self, path: str) -> Sequence[str]:
        """The new files beside a path, the newest first."""
        folder, _, name = path.rpartition("/")
        found = [entry for entry in self._entries(folder) if entry.getPath().getName().startswith(f"{name}{NEW}")]
        found.sort(key=lambda entry: entry.getModificationTime(), reverse=True)
        return [f"{folder}/{entry.getPath().getName()}" for entry in found]

    def write(self, path: str, value: Any) -> None:
        target, beside = self._path(path), self._path(f"{path}{NEW}{os.getpid()}")
        stream = self._files.create(beside, True)
        try:
            stream.write(bytearray(json.dumps(value, separators=(",", ":")).encode()))
        finally:
            stream.close()
        if not self._files.rename(beside, target):  # a file system whose rename does not replace
            self._files.delete(target, False)
            if not self._files.rename(beside, target):
                raise LakeError(f"{beside} could not be renamed to {target}: rename it by hand, then run the job again")

    def list(self, folder: str) -> list[str]:
        """The names in a folder, sorted; empty where there is none."""
        return sorted(entry.getPath().getName() for entry in self._entries(folder))

    def _entries(self, folder: str) -> Sequence[Any]:
        return [*self._files.listStatus(self._path(folder))] if self._there(folder) else []

    def delete(self, path: str) -> None:
        for wanted in (path, *self._new(path)):
            self._files.delete(self._path(wanted), True)
