"""Spark's classes as Java has them in memory once they are loaded and checked, which each driver maps instead of
loading them again: a third of a short job's work. `make spark-jars` writes them (Java's class data sharing, JEP 350).

Java takes such an archive for the very program and jars only that wrote it, so its folder's name is made of both;
where there is none for these, or it is damaged, drivers start as if nobody had made any.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from contract import cache
from contract.java import java_program
from contract.spark_jars import folder_of_spark

FILE = "spark.jsa"
MANIFEST = "manifest.json"
# Should it not fit after all, Java goes on without; what it says of that would be in the way of the job's words.
QUIET = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off", "-Xlog:class+path=off")


def archive_name() -> str | None:
    """The name of the archive's folder in the cache; None where it is not known here which Java or Spark runs."""
    program, spark = java_program(), folder_of_spark()
    if program is None or spark is None or not spark.is_dir():
        return None
    written = [(str(path), path.stat().st_mtime_ns) for path in (Path(program).resolve(), spark)]
    return f"spark-classes-{hashlib.sha256(repr(written).encode()).hexdigest()[:12]}"


def shared_classes() -> list[str]:
    """Options of a driver's JVM; none where there is no whole archive for it."""
    name = archive_name()
    folder = cache() / name if name else None
    if folder is None or not _whole(folder):
        return []
    return [f"-XX:SharedArchiveFile={folder / FILE}", *QUIET]


def _whole(folder: Path) -> bool:
    """Of one that was cut short Java dies."""
    try:
        size: int = json.loads((folder / MANIFEST).read_text())["files"][FILE]
        return (folder / FILE).stat().st_size == size
    except (OSError, ValueError, KeyError, TypeError):
        return False
