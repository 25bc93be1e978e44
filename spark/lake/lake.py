"""Where everything of a pipeline's lake is, and its few small files (marks, manifests, status).

The files go through Hadoop's file systems, as Spark's own do, so a lake may be a folder or any URI that Spark
knows. A write is a new file renamed over the old one: a reader sees the old text or the new, never half. Where a
rename does not replace, the old file goes first; a run that dies just then leaves the new one beside its name,
and readers take that. On S3 a file is written by one request, which replaces it as a whole, or does not.

In a folder a write, and all that the lake got before it, is on the disk before the rename is: no note says what a power
cut has taken away. Delta and Spark do not see to that, their own files are there some seconds later. A note that is
broken all the same is told with its path and what mends it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, SparkSession

from contract import names
from contract.durable import sync_all, sync_folder
from contract.pipeline import Pipeline
from contract.status import FILE as STATUS
from contract.steps import snapshot
from contract.whole_files import broken, whole
from spark.errors import LakeError, reason
from spark.failpoints import reached
from spark.lake.store import configure

UNFINISHED = "_running.json"  # there while a compaction is under way: its counts are not in the status yet
NEW = ".new-"  # between a file's name and the process that writes it
ASIDE = ".before"  # behind the name of staged rows: the table that they take the place of
JSON = ".json"  # how the names of Headrace's own files end; Spark's, that are read here too, have another form
NONE_MATCH, MATCH = "fs.option.create.conditional.overwrite", "fs.option.create.conditional.overwrite.etag"


class Lake:
    """Paths are absolute. Raises LakeError where the lake's folder cannot be made or written."""

    def __init__(self, spark: SparkSession, pipeline: Pipeline) -> None:
        self.spark = spark
        self.pipeline = pipeline
        root = names.lake_root(pipeline)
        self.root = root if "://" in root else os.path.abspath(root)
        configure(spark, pipeline)
        jvm: Any = spark._jvm
        self._path = jvm.org.apache.hadoop.fs.Path
        configuration = spark._jsc.hadoopConfiguration()
        # An instance of our own: without the checksum files that a rename would leave behind for a moment.
        self._files = jvm.org.apache.hadoop.fs.FileSystem.newInstance(self._path(self.root).toUri(), configuration)
        self._files.setWriteChecksum(False)
        self._files.setVerifyChecksum(False)

    def close(self) -> None:
        """Where a session goes on without it; Hadoop keeps a file system until then."""
        self._files.close()

    @property
    def deletion_vectors(self) -> bool:
        """Whether tables that are made now have them."""
        return self.pipeline.lake.readers != "compatible"

    @property
    def changes(self) -> str:
        return self.at(names.CHANGES)

    @property
    def status(self) -> str:
        return self.at(STATUS)

    def table(self, db: str, table: str) -> str:
        """The current table; of one of which the lake keeps the changes alone an empty one, which has its columns."""
        shapes = (names.SHAPES,) if self.pipeline.changes_only(db, table) else ()
        return self.at(*shapes, names.escape(db), names.escape(table))

    def at(self, *parts: str) -> str:
        return "/".join((self.root, *parts))

    def checkpoint(self, query: str) -> str:
        return self.at(names.CHECKPOINTS, query)

    def prove_writable(self) -> None:
        """Raises LakeError also where the folder is a part of another pipeline's lake."""
        above = self.root.rpartition("/")[0]
        if found := self.read(f"{above}/{STATUS}"):
            raise LakeError(
                f"lake.path in {self.pipeline.path} is {above}, which is itself the lake of the pipeline "
                f"{found['pipeline']}: tables of the two would meet. Write the folder above it. Nothing was written"
            )
        probe = self.at(f".probe-{os.getpid()}")
        try:
            self._files.mkdirs(self._path(self.root))
            self.write(probe, {}, vouches=False)
            self.delete(probe)
        except Exception as error:
            if self.pipeline.lake.bucket:
                raise  # there are other reasons, and other fixes: failures.py
            raise LakeError(
                f"the lake's folder {self.root} cannot be written: {reason(error)}. "
                "Give it to the user that runs Spark, free some space, or change lake.path in "
                f"{self.pipeline.path}"
            ) from error

    def exists(self, path: str) -> bool:
        return self._there(path) or self._beside(path) is not None or self._there(path)

    def _there(self, path: str) -> bool:
        return bool(self._files.exists(self._path(path)))

    def is_table(self, path: str) -> bool:
        return self.version(path) is not None

    def version(self, path: str, known: int | None = None) -> int | None:
        """The version of the Delta table at the path, None where there is no table. The log's newest commit is
        a file of this number; to ask Delta would cost a query. From the log's last checkpoint on each is looked for,
        since to list a log of weeks takes seconds. `known`: the version that it had: to see that it has that one
        still takes two looks."""
        if known is not None and not self.goes_on(path, known) and self._there(commit_file(path, known)):
            return known
        log = f"{path}/_delta_log"
        at = self._checkpointed(log)
        if at is None or not self._there(commit_file(path, at)):
            return max(self.commits(path), default=None)
        while self._there(commit_file(path, at + 1)):
            at += 1
        return at

    def goes_on(self, path: str, behind: int) -> bool:
        """Whether the log of the table at the path has the commit behind the version."""
        return self._there(commit_file(path, behind + 1))

    def commits(self, path: str) -> list[int]:
        """The versions whose commits the log of the table at the path has."""
        found = (name.removesuffix(".json") for name in self.list(f"{path}/_delta_log") if name.endswith(".json"))
        return sorted(int(name) for name in found if name.isdigit())

    def _checkpointed(self, log: str) -> int | None:
        """None where there is no checkpoint, or it cannot be told."""
        file = f"{log}/_last_checkpoint"
        if not self._there(file):  # to find it out by opening it would take Java 20 ms, for an exception
            return None
        with suppress(ValueError, KeyError, TypeError):
            text = self._found(file)
            return int(json.loads(text)["version"]) if text else None
        return None

    def frame(self, path: str, version: int | None = None) -> DataFrame:
        """The table at the path as it is, or as it was in a version."""
        reader = self.spark.read.format("delta")
        return (reader if version is None else reader.option("versionAsOf", str(version))).load(path)

    def read(self, path: str) -> Any | None:
        """The JSON of a file, or None where there is none. Raises LakeError where it is broken."""
        text = self.text(path)
        return None if text is None else json.loads(text)

    def text(self, path: str) -> str | None:
        """None where there is no file. Raises LakeError where one that is to be JSON is none."""
        if not self._there(path):
            new = self._beside(path)
            # A write that ended between the two looks was at neither place, where a rename does not replace.
            if new is not None or not self._there(path):
                return new
        if (text := self._found(path)) is None:
            return self.text(path)  # it is being replaced
        if not path.endswith(JSON) or whole(text):
            return text
        # One that is older may be of any run before.
        if (later := self._beside(path, self._changed_at(path))) is not None:
            return later
        raise LakeError(broken(path, text, self.root, snapshot(self.pipeline)))

    def lines(self, path: str) -> list[str] | None:
        """Of a file of Spark's or Delta's, each of which is JSON; None where there is no such file."""
        text = self._found(path)
        return None if text is None else text.split("\n")  # JSON may have in it what else counts as the end of a line

    def _text(self, path: str) -> str:
        stream = self._files.open(self._path(path))
        try:
            jvm: Any = self.spark._jvm
            return str(jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def _beside(self, path: str, since: int = 0) -> str | None:
        """The text of the last write that got no further than a whole new file; None where there is none that is not
        older than `since`, or a rename replaces: there a write that got no further is none."""
        if "://" not in self.root:
            return None
        for new in self._new(path):
            text = self._found(str(new.getPath().toString())) if new.getModificationTime() >= since else None
            if text is not None and whole(text):
                return text
        return None

    def _found(self, path: str) -> str | None:
        """None where it has gone, or has its own name by now."""
        try:
            return self._text(path)
        except Py4JJavaError as error:
            if "FileNotFoundException" not in str(error.java_exception.getClass().getName()):
                raise
            return None

    def _changed_at(self, path: str) -> int:
        return int(self._files.getFileStatus(self._path(path)).getModificationTime())

    def _new(self, path: str) -> Sequence[Any]:
        """The new files beside a path, the newest first."""
        if self.pipeline.lake.bucket:
            return []
        folder, _, name = path.rpartition("/")
        found = [entry for entry in self._entries(folder) if entry.getPath().getName().startswith(f"{name}{NEW}")]
        return sorted(found, key=lambda entry: entry.getModificationTime(), reverse=True)

    def write(self, path: str, value: Any, vouches: bool = True) -> None:
        """`vouches`: whether it says anything of what else is in the lake."""
        at_once = bool(self.pipeline.lake.bucket)  # an object is there as a whole, or not
        target, beside = self._path(path), self._path(path if at_once else f"{path}{NEW}{os.getpid()}")
        _fill(self._files.create(beside, True), value)
        reached("file written")
        if at_once:
            return
        if vouches:
            self.settle()
        if not self._files.rename(beside, target):  # a file system whose rename does not replace
            self._files.delete(target, False)
            if not self._files.rename(beside, target):
                raise LakeError(f"{beside} could not be renamed to {target}: rename it by hand, then run the job again")
        if "://" not in self.root:
            sync_folder(os.path.dirname(path))

    def settle(self) -> None:
        """What the lake got until now is on the disk then, where it is a folder; elsewhere it is so by itself."""
        if "://" not in self.root:
            sync_all(self.root)

    def create(self, path: str, value: Any, over: str | None) -> None:
        """Writes the file on S3 where its etag is `over`; None: where there is none. Else the store refuses."""
        builder = self._files.createFile(self._path(path)).recursive().overwrite(over is not None)
        _fill((builder.must(NONE_MATCH, "true") if over is None else builder.must(MATCH, over)).build(), value)

    def etag(self, path: str) -> str | None:
        """Which text of the file is there, on S3; None where there is none."""
        return str(self._files.getFileStatus(self._path(path)).getEtag()) if self._there(path) else None

    def list(self, folder: str) -> list[str]:
        """The names in a folder, sorted; empty where there is none."""
        return sorted(entry.getPath().getName() for entry in self._entries(folder))

    def _entries(self, folder: str) -> Sequence[Any]:
        return [*self._files.listStatus(self._path(folder))] if self._there(folder) else []

    def size(self, folder: str) -> int:
        """The bytes of all files below a folder that is there."""
        return int(self._files.getContentSummary(self._path(folder)).getLength())

    def replace(self, path: str, by: str) -> None:
        """Moves the folder of a table to the place of another's. Not on S3, where to rename is to copy every file. The
        other one is put aside as a whole first: a run that dies while it deletes thousands of files would leave a table
        with a part of its log, which nothing can read."""
        self.settle()  # it may have what the other one alone had
        aside = f"{by}{ASIDE}"
        if self._there(path):
            self._files.delete(self._path(aside), True)
            self._rename(path, aside)
        self.forget_logs()
        reached("table made way")
        self._files.mkdirs(self._path(path).getParent())
        self._rename(by, path)
        self.forget_logs()
        self.settle()  # nothing goes before what stands for it is on the disk
        self._files.delete(self._path(aside), True)

    def _rename(self, path: str, to: str) -> None:
        if not self._files.rename(self._path(path), self._path(to)):
            raise LakeError(f"{path} could not be renamed to {to}: give {self.root} to the user that runs Spark")

    def forget_logs(self) -> None:
        """What Delta has in memory may be made of files that went."""
        jvm: Any = self.spark._jvm
        jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()

    def remove(self, path: str) -> None:
        """A file beside which no write can have left a new one, such as one of Delta's. `delete` looks for those in the
        whole folder: for each of a log's thousands of files again, that takes hours."""
        self._files.delete(self._path(path), False)

    def delete(self, path: str) -> None:
        for wanted in (path, *(str(new.getPath().toString()) for new in self._new(path))):
            self._files.delete(self._path(wanted), True)


def commit_file(path: str, version: int) -> str:
    """Of the Delta table at the path."""
    return f"{path}/_delta_log/{version:020d}.json"


def _fill(stream: Any, value: Any) -> None:
    """Where the write fails the stream is not closed: that would send to a store what there is of it."""
    stream.write(bytearray(json.dumps(value, separators=(",", ":")).encode()))
    if stream.hasCapability("hsync"):  # not on an object store, where to close it is to write it
        stream.hsync()
    stream.close()
