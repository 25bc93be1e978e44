"""The tables of what the jobs note of the lake, which belong to no database. Before the first row there are no files of
one: `headrace sql` shows it all the same, empty, with the columns that the jobs give it.
"""

from __future__ import annotations

from contract import names

TEXT, TIME, WHOLE = "VARCHAR", "TIMESTAMPTZ", "BIGINT"  # as DuckDB calls them
OF = {"db": TEXT, "tbl": TEXT}
COLUMNS: dict[str, dict[str, str]] = {
    names.DIFFERENCES: {
        "run": TEXT, "at": TIME, **OF, "kind": TEXT, "key": TEXT, "columns": "VARCHAR[]", "source_where": TEXT,
        "lake_where": TEXT, "since": TIME,
    },
    names.REPAIRS: {
        "run": TEXT, "at": TIME, "job": TEXT, "by": TEXT, "source": TEXT, "part": TEXT, **OF, "snapshot": TEXT,
        "p0": "STRUCT(epoch BIGINT, file BIGINT, pos BIGINT, event BIGINT, row BIGINT)", "kind": TEXT, "key": TEXT,
        "columns": "STRUCT(name VARCHAR, source VARCHAR, lake VARCHAR)[]", "did": TEXT, "since": TIME, "check": TEXT,
    },
    names.SCHEMA_CHANGES: {
        "id": TEXT, **OF, "at": "STRUCT(epoch BIGINT, file BIGINT, pos BIGINT)", "ts": TIME, "gtid": TEXT,
        "kind": TEXT, "column": TEXT, "before": TEXT, "after": TEXT, "rule": TEXT, "told": TEXT, "statement": TEXT,
        "version": "INTEGER", "noted": TIME,
    },
    names.ERASURES: {
        "run": TEXT, "by": TEXT, "at": TIME, **OF, "key_hashes": "VARCHAR[]", "until": TEXT, "gtid_set": TEXT,
        "removed": "MAP(VARCHAR, BIGINT)",
        "remains": 'STRUCT(place VARCHAR, "from" TIMESTAMPTZ, until TIMESTAMPTZ, why VARCHAR)[]',
    },
    names.CHECKS: {
        "run": TEXT, "at": TIME, **OF, "check": TEXT, "column": TEXT, "ok": "BOOLEAN", "observed": TEXT,
        "wanted": TEXT,
    },
    names.DEAD_LETTERS: {
        "topic": TEXT, "partition": "INTEGER", "offset": WHOLE, "record_key": "BLOB", "value": "BLOB", "batch": WHOLE,
        "query": TEXT, "noted": TIME,
    },
}  # fmt: skip
