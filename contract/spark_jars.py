"""Which jars a Spark job is started with: those of the folders that HEADRACE_SPARK_JARS names, else those that
`make spark-jars` fetched, and for a lake on S3 `make spark-s3-jars`.

The folders' names have versions that the checkout's `stack/` pins, which an image does not have: so the newest folder
of Spark's version is taken.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from contract import cache

VARIABLE = "HEADRACE_SPARK_JARS"
# Each kind of jars: how its folder begins, the jar that shows it, what fetches it.
DELTA = ("spark-jars-", "delta-spark*.jar", "make spark-jars")
S3 = ("spark-s3-jars-", "hadoop-aws-*.jar", "make spark-s3-jars")


def spark_jars(on_s3: bool = False) -> str | None:
    """`--jars`, by comma; None where Spark has what it needs among its own. Raises FileNotFoundError where a folder of
    the variable's has no jar, or where without it there are none."""
    if folders := [folder for folder in os.environ.get(VARIABLE, "").split(os.pathsep) if folder]:
        return ",".join(jar for folder in folders for jar in _named(folder))
    wanted = [DELTA, S3] if on_s3 else [DELTA]
    return ",".join(jar for kind in wanted for jar in _fetched(*kind)) or None


def _named(folder: str) -> list[str]:
    if found := _jars(Path(folder)):
        return found
    make = f"`{DELTA[2]}`, for a lake on S3 `{S3[2]}` too"
    raise FileNotFoundError(
        f"{VARIABLE} is {folder}, which holds no .jar file: let it name a folder that has them, or unset it, and those "
        f"are taken that came by {make}"
    )


def _fetched(prefix: str, shown_by: str, make: str) -> list[str]:
    own = folder_of_spark()
    if own is not None and any(own.glob(shown_by)):
        return []
    folders = sorted(_folders(prefix), key=lambda folder: folder.stat().st_mtime)
    if folders and (found := _jars(folders[-1])):
        return found
    if own is None:  # of a Spark elsewhere nobody knows here
        return []
    raise FileNotFoundError(
        f"Spark lacks jars ({shown_by}): {VARIABLE} is not set, {cache()} has no folder {prefix}..., and {own} none. "
        f"Run `{make}`, or name their folder in {VARIABLE}"
    )


def _folders(prefix: str) -> Iterator[Path]:
    of_spark = ""
    if prefix == DELTA[0] and importlib.util.find_spec("pyspark"):
        of_spark = f"{metadata.version('pyspark')}-"
    return cache().glob(f"{prefix}{of_spark}*")


def _jars(folder: Path) -> list[str]:
    return sorted(str(jar) for jar in folder.glob("*.jar"))


def folder_of_spark() -> Path | None:
    """The folder of the jars that Spark comes with; None where the jobs run with another Python than this one's."""
    if home := os.environ.get("SPARK_HOME"):
        return Path(home) / "jars"
    given = os.environ.get("HEADRACE_SPARK_PYTHON") or sys.executable
    found = importlib.util.find_spec("pyspark") if given == sys.executable else None
    return Path(found.origin).parent / "jars" if found and found.origin else None
