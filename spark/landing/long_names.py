"""Names that are no folder's: `_changes` has one for each table, `tbl=db.table`, and a file system takes 255 bytes.

A table of such a name has its changes in `_changes` all the same, though the lake stops it. From its first one on new
files lie in folders of chance letters: the log says where each file is, and what it is a file of. Polars alone takes
that from the folders (docs/readers.md).
"""

from __future__ import annotations

import re
from typing import Final

from pyspark.sql import SparkSession

from contract.names import quoted
from spark.errors import chain

SPREAD: Final = "delta.randomizeFilePrefixes"
FOLDER = re.compile(r"/(tbl=[^/]+)/")
BYTES = 255


def too_long(error: BaseException) -> bool:
    """Whether a write failed at a folder whose name is too long."""
    folders = (folder for text in chain(error) for folder in FOLDER.findall(text))
    return any(len(folder.encode()) > BYTES for folder in folders)


def spread(spark: SparkSession, path: str) -> None:
    """Of a table that is there."""
    spark.sql(f"ALTER TABLE delta.{quoted(path)} SET TBLPROPERTIES ('{SPREAD}' = 'true')")
