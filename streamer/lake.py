"""The lake's status as the streamer sees it: of a lake in a folder, or on S3, which is asked by fsspec.

A lake that cannot be read from here (on another machine, in another store) says nothing.
"""

from __future__ import annotations

import threading
import time
from typing import Any

import fsspec
import structlog

from contract import names, status
from contract.pipeline import Pipeline
from contract.pipeline_lake import S3A
from streamer.object_stores import words

log = structlog.get_logger("streamer")
PATIENCE = 10.0  # seconds of one question to S3, and of its one repetition
EVERY_SECONDS = 30.0
NEXT_STEP = "See to lake.s3 in the pipeline file, and to a right to read there. Until then tables stay marked."


class Lake:
    """Raises nothing."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._known: status.LakeStatus | None = None
        self._asking: threading.Thread | None = None
        self._due = 0.0  # monotonic seconds
        self._told = False  # that it cannot be read
        self._store: Any = None  # its connections are kept from one question to the next

    def read(self) -> status.LakeStatus | None:
        """None where no compaction has run yet, or what it wrote cannot be read. Of S3 what was known last, then."""
        if not self._pipeline.feeds_lake:
            return None
        if self._pipeline.lake.bucket is not None:
            return self._read_s3()
        try:
            return status.read(self._pipeline)
        except (status.StatusFormatError, OSError, ValueError):
            return None

    def latest(self) -> status.LakeStatus | None:
        """At once: S3 is asked meanwhile, at most every EVERY_SECONDS, for the next call."""
        if self._pipeline.lake.bucket is None:
            return self.read()
        now = time.monotonic()
        if now >= self._due and (self._asking is None or not self._asking.is_alive()):
            self._due = now + EVERY_SECONDS
            self._asking = threading.Thread(target=self.read, name="lake status", daemon=True)
            self._asking.start()
        return self._known

    def _read_s3(self) -> status.LakeStatus | None:
        path = f"{names.lake_root(self._pipeline)}/{status.FILE}".removeprefix(S3A)
        try:
            self._store = self._store or fsspec.filesystem("s3", **settings(self._pipeline))
            self._known = status.parse(self._store.cat_file(path).decode())
        except FileNotFoundError:
            self._known = None
        except Exception as error:  # of whichever library
            if not self._told:
                self._told = True
                log.warning("the lake's status cannot be read", lake=path, cause=words(error), next_step=NEXT_STEP)
        return self._known


def settings(pipeline: Pipeline) -> dict[str, Any]:
    """Of fsspec's file system for S3. What is not in the pipeline file is looked for in the environment."""
    s3 = pipeline.lake.s3
    return {
        "key": s3.key,
        "secret": s3.secret,
        "token": s3.token,
        "endpoint_url": s3.endpoint_url,
        "client_kwargs": {"region_name": s3.of_region},
        "config_kwargs": {
            "connect_timeout": PATIENCE,
            "read_timeout": PATIENCE,
            "retries": {"max_attempts": 1},
            "s3": {"addressing_style": "path" if s3.in_path else "virtual"},
            "response_checksum_validation": "when_required",
        },
        "skip_instance_cache": True,
        "use_listings_cache": False,
    }
