"""The pipeline file's section `maintenance`: when the lake's files are looked after, and how much is kept."""

from __future__ import annotations

from pydantic import Field

from contract.cron import Schedule
from contract.pipeline_kafka import Section

STEPS = {
    "history": "removes changes that are older than maintenance.history_days, where the file has that",
    "optimize": "makes many small files few, and takes rows out that are marked as gone",
    "vacuum": "removes the files of versions that were replaced long enough ago",
}
DAY_HOURS = 24
MOST_HOURS = 7 * DAY_HOURS  # Delta's own: older versions' files may be out of its log, so nothing could keep them


class Maintenance(Section):
    schedule: Schedule | None = Field("@daily", description="cron; null: only when triggered")
    small_files: int = Field(8, ge=2, description="so many in one table, or one day of `_changes`, are made few")
    file_mb: int = Field(128, ge=1, le=4096, description="how large they become; one of less than half of it is small")
    deleted_percent: int = Field(
        20, ge=1, le=100, description="so many of a table's rows marked as gone are taken out of its files"
    )
    history_days: int | None = Field(None, ge=2, description="changes are kept for so long; left out: for ever")
    vacuum_hours: int = Field(
        MOST_HOURS, ge=DAY_HOURS, le=MOST_HOURS, description="what was replaced for so long is removed"
    )
