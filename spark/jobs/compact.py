"""The compaction job: Kafka -> `_changes` -> the current tables, for all tables of a pipeline."""

from __future__ import annotations

from spark.compaction.catching_up import catch_up
from spark.job import run

if __name__ == "__main__":
    run("compact", catch_up, tables=False)
