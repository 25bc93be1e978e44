"""What each DAG is for, in Airflow's UI: one line for the list, a page for the DAG itself."""

from __future__ import annotations

from contract.names import lake_root
from contract.pipeline import Pipeline

TASKS = {
    "provision": "Makes the Kafka topics that are missing, and tells which differ from the pipeline file.",
    "stage": "Reads the rows and puts them beside the lake's tables. Where some tables cannot be had, it goes on with "
    "the others, and `all_staged` fails.",
    "all_staged": "Fails where `stage` left out a table that was asked for; its message says why, and what to do. The "
    "other tables are not held up by it.",
    "streamed": "Waits, without a worker, until the streamer has written all that the source had at the end of the "
    "reading: a compaction before that could not bring the lake so far.",
    "compact": "Merges the changes in Kafka, and what is staged, into the lake's tables: here, or by a run of the "
    "compaction DAG that it starts and waits for.",
    "applied": "Waits, without a worker, until a compaction has put in its place what `stage` has read.",
    "verify": "Compares the tables with the source, and checks their expectations. Its log ends with a line a table.",
    "waits": "Ends when `verify` has read the source and waits for the lake, so that a compaction can follow. Is "
    "skipped where `verify` ends without that.",
    "reread": "Starts the snapshot DAG for tables that a statement in the source has made stale.",
    "maintain": "Looks after the files of each table, one table at a time.",
    "erase": "Removes the keys' rows. Its log says what is still where, and until when.",
}
AGAIN = ("_proof_again", "_proof", "_again")  # how the names of tasks end that do the same for a check that follows

SOURCES = {"mysql": "MySQL", "mariadb": "MariaDB"}
LINES = {
    "topics": "Makes the Kafka topics of the tables that match now",
    "snapshot": "Reads the tables from {source} into the lake while changes go on",
    "compaction": "Merges the changes in Kafka into the lake's tables",
    "quality": "Proves that the lake equals {source}, and checks its expectations",
    "maintenance": "Looks after the lake's files: few instead of many, and none that nothing needs any more",
    "erase": "Removes the rows of some keys, with their history, for data-protection requests",
    "backfill": "Makes tables, or parts of them, anew from their history, Kafka or {source}",
    "repair": "Reads from {source} again what a check found to differ, and proves it",
}

PAGES = {
    "topics": """
### Topics of {name}
Makes the event topics of every table that matches `tables` of `{file}` now, the commit log and the schema topic,
with the file's partitions, replication and settings. A topic that exists is never changed: if it differs, the
task fails and its log says what differs and what to do. Safe to run again at any time.
""",
    "snapshot": """
### Snapshot of {name}
Reads tables from {source} by key ranges, without a lock and while changes go on, and stages them beside the lake
({lake}). The next compaction applies them; the last task waits until the lake has them and is complete up to the
moment the reading ended. Choose tables in the form, or leave it empty for all. Safe to run again: a second
snapshot also removes rows that should not be there. A table that cannot be had fails the task `all_staged` alone.

It needs a streamer that has written its first checkpoint (`headrace run {file}`), and the compaction DAG switched
on. {compaction}.
""",
    "compaction": """
### Compaction of {name}
Takes what is new in Kafka into the changes table, then merges it into the current tables, and applies staged
snapshots. {compaction}. One run at a time; a run that is repeated gives the same lake. The task's log ends with
what was merged for each table.
""",
    "quality": """
### Quality of {name}
Compares count and checksum of every table with {source} at one commit boundary, while changes go on, then runs the
expectations made from the table schemas and those in `quality/{name}/`. A failed check fails the task, names
table and difference, and {alerts}. Choose tables in the form, or leave it empty for all. Results and data docs:
`{quality}`.
""",
    "maintenance": """
### Maintenance of {name}
Makes many small files of the lake's tables few, takes the rows out of them that are marked as gone, and removes files
that were replaced more than {vacuum} hours ago. No row of a table changes; {history}.

What cannot be done now is held back, and the task's log ends with that and with what was done for each table. Safe to
run again, and to be killed, at any time.
""",
    "erase": """
### Erase from {name}
Removes the rows of some keys of one table: from the table, from its history (`_changes`), from records put aside and
from findings. What comes again of before is not landed any more; a row of such a key that the source gets later is data
like any. Delete the row in the source first.

Files of before go after {vacuum} hours, for readers and time travel, or at once where the form says so. Kafka removes
its records by age. What is still where, and until when, stands in the task's log and in the table `{lake}/_erasures`,
which keeps who erased what and when, without the key. This run's form and log have the key: delete the run when it is
done.
""",
    "backfill": """
### Backfill of {name}
Makes tables anew, or of one table keys, a range of keys, or the rows that changed in some time: from the lake's
changes table and the rows that its snapshot had read, from Kafka's topics in place of the changes table, or from
{source}. The rows are the same whichever it is, and only those that are not right yet are written, by the next
compaction; then the tables are verified as a whole. What cannot be (rows that a vacuum removed, records that Kafka has
deleted, a table that waits for a snapshot) is refused with the reason. `_repairs` keeps what was done. Safe to run
again. A table that cannot be had fails the task `all_staged` alone, and the others go on. {compaction}.
""",
    "repair": """
### Repair of {name}
Reads from {source} again what the last check of each table found to differ (or the keys, or the range of keys, of one
table that the form names), by the snapshot's rules: without a lock, while changes go on. The next compaction puts these
rows in place of those in the lake, then the tables are verified as a whole. The lake's table `_repairs` keeps what was
wrong, since when, and what was done. Safe to run again. A table that is stale, stopped or not snapshotted is passed by,
which fails the task `all_staged` alone: the DAG `{name}.snapshot` mends it. {compaction}.
""",
}


def source(pipeline: Pipeline) -> str:
    """What kind of server it reads, as people call it."""
    return SOURCES[pipeline.source.flavor]


def line(purpose: str, pipeline: Pipeline) -> str:
    return LINES[purpose].format(source=source(pipeline))


def of_task(task_id: str) -> str:
    """What a task of any DAG does."""
    found = next((task_id.removesuffix(end) for end in AGAIN if task_id.endswith(end)), task_id)
    told = TASKS[found]
    return told if found == task_id else f"{told} This one does so for a check of the same run that waits for it."


TRIGGERED = "when it is triggered, as the DAGs that wait for it do by themselves"


def of(purpose: str, pipeline: Pipeline) -> str:
    from quality import folder

    schedule = pipeline.compaction.schedule
    return PAGES[purpose].format(
        name=pipeline.name,
        source=source(pipeline),
        file=pipeline.path,
        lake=lake_root(pipeline),
        quality=folder.folder(pipeline),
        compaction=f"Compaction runs {f'at `{schedule}` (cron, UTC)' if schedule else TRIGGERED}",
        history=_history(pipeline),
        vacuum=pipeline.maintenance.vacuum_hours,
        alerts=_alerts(pipeline),
    )


def _alerts(pipeline: Pipeline) -> str:
    if chosen := pipeline.quality.notifier:
        return f"alerts by {chosen.type.rpartition('.')[2]}"
    return "alerts the webhook" if pipeline.quality.webhook else "alerts"


def _history(pipeline: Pipeline) -> str:
    days = pipeline.maintenance.history_days
    return f"changes of more than {days} days ago leave the history" if days else "the history is kept whole"
