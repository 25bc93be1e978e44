"""Checkpoints kept as documents: in files, or in a place of the user's."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

from contract.checkpoint import Checkpoint, CheckpointFormatError
from contract.names import escape
from contract.schema import TableSchema
from streamer.checkpoints.port import Documents
from streamer.delivery_errors import CheckpointError
from streamer.errors import HeadraceError

CHECKPOINT = "checkpoint"
SCHEMA = "schema"  # of whose key it is the beginning
RETRY_SECONDS = 1.0
DAMAGED = (
    "Bring it back from a backup of this place; an older one is sent again from. Without any give the pipeline a new "
    "name, with a new snapshot."
)
Result = TypeVar("Result")


class DocumentCheckpoints:
    """The port over `documents`; `title` names their place. One that is away is tried again, at a look after
    `retry_seconds` or more."""

    def __init__(self, pipeline: str, title: str, documents: Documents, retry_seconds: float = RETRY_SECONDS) -> None:
        self.title = title
        self.durable: Checkpoint | None = None
        self.failure: HeadraceError | None = None
        self.last_error = ""
        self._pipeline = pipeline
        self._documents = documents
        self._retry = retry_seconds
        self._waiting: Checkpoint | None = None
        self._again = 0.0  # monotonic seconds: when it is tried next

    def load(self, stopping: Callable[[], bool] | None = None) -> Checkpoint | None:
        text = self._read().get(CHECKPOINT)
        self.durable = None if text is None else self._parsed(text)
        return self.durable

    def offer(self, checkpoint: Checkpoint) -> None:
        self._waiting = checkpoint
        self._try()

    def settled(self) -> bool:
        self._try()
        return self._waiting is None

    def schemas(self, stopping: Callable[[], bool] | None = None) -> list[TableSchema]:
        found = [text for key, text in self._read().items() if key.startswith(f"{SCHEMA} ")]
        try:
            return [TableSchema.model_validate_json(text) for text in found]
        except ValueError:
            raise self._wrong("a schema in it is none", DAMAGED) from None

    def keep(self, schema: TableSchema) -> None:
        key = f"{SCHEMA} {escape(schema.db)}.{escape(schema.table)} {schema.version}"
        with self._said("keeping a schema in"):
            self._documents.write(key, schema.model_dump_json())

    def close(self) -> None:
        self._documents.close()

    def _try(self) -> None:
        if self._waiting is None or self.failure is not None or (now := time.monotonic()) < self._again:
            return
        try:
            with self._said("keeping the position in"):
                self._documents.write(CHECKPOINT, self._waiting.model_dump_json())
        except HeadraceError as error:
            self.last_error = str(error)
            self._again = now + self._retry
            if not error.retryable:
                self.failure = error
            return
        self.durable, self._waiting, self.last_error = self._waiting, None, ""

    def _read(self) -> Mapping[str, str]:
        with self._said("reading the position in"):
            return self._documents.read()

    def _parsed(self, text: str) -> Checkpoint:
        try:
            found = Checkpoint.read(text)
        except CheckpointFormatError as error:
            raise self._wrong(str(error), "Nothing was sent.") from None
        except ValueError:
            raise self._wrong("it is no checkpoint: it was damaged, or something else writes there", DAMAGED) from None
        if found.pipeline != self._pipeline:
            hint = "Give each pipeline a place of its own (checkpoints in the pipeline file)."
            raise self._wrong(f"it is the checkpoint of pipeline {found.pipeline}", hint)
        return found

    def _wrong(self, cause: str, hint: str) -> CheckpointError:
        return CheckpointError("reading the position in", self.title, cause, hint)

    @contextmanager
    def _said(self, doing: str) -> Iterator[None]:
        try:
            yield
        except HeadraceError:
            raise
        except Exception as error:  # of a class of the user's
            hint = "Mend that, then start again. A class of yours raises AwayError for what a retry mends."
            raise CheckpointError(doing, self.title, f"{type(error).__name__}: {error}", hint) from None
