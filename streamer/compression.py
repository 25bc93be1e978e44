"""Files of JSON lines, compressed on request."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

import zstandard

from contract.pipeline_sinks import Compression

SUFFIX: dict[Compression, str] = {"none": "", "gzip": ".gz", "zstd": ".zst"}
GZIP_LEVEL = 6
BLOCK = 1 << 20


def compressed(data: bytes, how: Compression) -> bytes:
    if how == "gzip":
        return gzip.compress(data, GZIP_LEVEL, mtime=0)
    return zstandard.compress(data) if how == "zstd" else data


def compress_file(source: Path, target: Path, how: Compression) -> None:
    """Writes the target anew. Raises OSError."""
    with source.open("rb") as plain, target.open("wb") as file:
        if how == "gzip":
            with gzip.GzipFile("", "wb", GZIP_LEVEL, file, mtime=0) as packed:
                shutil.copyfileobj(plain, packed, BLOCK)
        else:
            zstandard.ZstdCompressor().copy_stream(plain, file)
