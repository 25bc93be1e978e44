"""A real server of the S3 protocol, for as long as a test needs it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from stack.ports import free_port
from stack.s3 import S3


@contextmanager
def s3_server(home: Path, bucket: str) -> Iterator[S3]:
    """With a bucket of that name, its data in `home`."""
    server = S3(home, free_port())
    server.start()
    try:
        server.make_bucket(bucket)
        yield server
    finally:
        server.kill()
