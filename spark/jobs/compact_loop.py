"""The compaction job that goes on until it is told to end: the same as `compact`, round after round."""

from __future__ import annotations

from spark.compaction.looping import loop
from spark.job import run

if __name__ == "__main__":
    run("compact-loop", loop, tables=False)
