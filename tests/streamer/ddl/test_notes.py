"""DDL on the pipeline's tables is noted; on others it is not."""

from __future__ import annotations

import json
from io import StringIO

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from contract.ddl_record import DdlRecord
from contract.gtid import GtidSet
from contract.schema import TableSchema
from contract.sequence import Sequence
from streamer import VERSION
from streamer.control.report import Report
from streamer.control.tables import show_status
from streamer.ddl.notes import DdlNotes
from streamer.ddl.records import Outgoing
from streamer.envelope import Envelope
from streamer.protocol.filters import Filters
from streamer.protocol.model import Ddl, RowsBatch
from streamer.protocol.server import server
from streamer.routes import Router
from streamer.schemas import Schemas
from streamer.source import Facts
from tests.streamer.fakes import FILE, SOURCE, Binlog, pipeline, rig, transaction

FACTS = Facts(1, SOURCE, "9.7.4", GtidSet(), GtidSet(), FILE, 4, FILE)


def item(statement: str, db: str = "shop") -> Ddl:
    return Ddl(db, statement, f"{SOURCE}:1", FILE, 100, 1_000_000, 5, 9)


def sent(notes: DdlNotes, ddl: Ddl, schemas: Schemas | None = None) -> list[Outgoing]:
    router = Router(notes.pipeline, schemas or Schemas(), lambda wanted: [], lambda schema: None)
    return list(notes.records(ddl, 3, router))


@pytest.mark.parametrize(
    ("statement", "db", "tables"),
    [
        ("DROP TABLE t", "shop", ["shop.t"]),
        ("DROP TABLE t", "other", None),
        ("DROP TABLE shop.t", "other", ["shop.t"]),
        ("RENAME TABLE other.a TO shop.t, other.b TO other.c", "other", ["shop.t"]),
        ("DROP DATABASE shop", "", ["shop.*"]),
        ("DROP DATABASE other", "shop", None),
        ("FROBNICATE t", "other", []),
        ("CREATE TABLE t (id INT)", "shop", None),
    ],
)
def test_whose_ddl_is_noted(statement: str, db: str, tables: list[str] | None) -> None:
    notes = DdlNotes(pipeline())
    with structlog.testing.capture_logs() as lines:
        sent(notes, item(statement, db))
    assert [note["tables"] for note in notes.last] == ([] if tables is None else [tables])
    assert sum(notes.counts.values()) == len(lines) == (tables is not None)
    if tables is not None:
        assert lines[0]["log_level"] == "warning"
        assert (lines[0]["file"], lines[0]["pos"], lines[0]["gtid"]) == (FILE, 100, f"{SOURCE}:1")
        assert "sales.snapshot" in lines[0]["next_step"]


def test_renamed_columns_are_told_to_the_lake_and_a_snapshot_is_not_the_first_advice() -> None:
    notes = DdlNotes(pipeline())
    with structlog.testing.capture_logs() as lines:
        told = [
            json.loads(one.value)
            for text in ("RENAME COLUMN a TO b", "RENAME COLUMN a TO b, ADD c INT NOT NULL", "MODIFY a INT")
            for one in sent(notes, item(f"ALTER TABLE t {text}"))
        ]
    assert [(one.get("renamed"), one.get("only_renamed")) for one in told] == [
        ([["a", "b"]], True), ([["a", "b"]], False), (None, None),
    ]  # fmt: skip
    assert [DdlRecord.model_validate(one).only_renamed for one in told] == [True, False, False]
    assert ["if the lake's status says" in line["next_step"] for line in lines] == [True, True, True]


def test_a_server_that_keeps_names_in_lower_case_is_taken_at_its_rows_names() -> None:
    notes = DdlNotes(pipeline())
    assert sent(notes, item("TRUNCATE TABLE SHOP.T", "Other")) == []
    notes.lower_case = True
    told, emptied = sent(notes, item("TRUNCATE TABLE SHOP.T", "Other"))
    assert json.loads(told.key or b"") == {"db": "shop", "table": "t"}
    assert emptied.topic == "sales.shop.t"
    [both] = sent(notes, item("RENAME TABLE T TO t", "Shop"))
    assert json.loads(both.key or b"") == {"db": "shop", "table": "t"}


HIDES = "ALTER TABLE t ADD FOREIGN KEY (p) REFERENCES u (id) ON DELETE CASCADE"


@pytest.mark.parametrize(
    ("statement", "version", "kind"),
    [
        (HIDES, "8.0.15", "cascade"),
        (HIDES, "11.4.5-MariaDB-log", "cascade"),
        (HIDES, "9.7.4", None),
        ("CREATE TABLE t (p INT, FOREIGN KEY (p) REFERENCES u (id) ON UPDATE SET NULL)", "9.5.0", "cascade"),
        ("CREATE TABLE t (p INT REFERENCES u (id) ON DELETE CASCADE)", "9.0.0", "cascade"),
        ("CREATE TABLE t (p INT REFERENCES u (id) ON DELETE CASCADE)", "8.4.0", None),
        (HIDES + ", ADD x INT NOT NULL", "8.0.15", "cascade"),
        (HIDES + ", RENAME other.t", "8.0.15", "rename"),
        (HIDES.replace(" ON DELETE CASCADE", ""), "8.0.15", None),
        (HIDES.replace("TABLE t", "TABLE other.t"), "8.0.15", None),
    ],
)
def test_a_key_that_changes_rows_in_silence_is_told_where_the_server_hides_them(
    statement: str, version: str, kind: str | None
) -> None:
    """By the server that wrote the statement: its rows are from then on."""
    notes = DdlNotes(pipeline())
    told = item(statement)
    told.written_by = server(version)
    with structlog.testing.capture_logs() as lines:
        sent(notes, told)
    assert [(note["kind"], note["tables"]) for note in notes.last] == ([(kind, ["shop.t"])] if kind else [])
    for line in lines:
        assert "a foreign key changes its rows" in line["meaning"]
        assert line["next_step"].startswith("Run the DAG sales.snapshot, or `headrace snapshot .`, for shop.t, ")
        assert "tables.cascades" in line["next_step"]
    assert len(lines) == (kind is not None)


def test_a_server_that_was_told_to_hide_them_is_taken_at_its_word() -> None:
    notes = DdlNotes(pipeline())
    notes.logs_cascades = False
    told, *_ = sent(notes, item(HIDES))
    assert json.loads(told.value)["kind"] == "cascade"


def test_a_listed_table_that_an_application_makes_where_there_is_none_is_no_news() -> None:
    made = "CREATE TABLE IF NOT EXISTS t (p INT, FOREIGN KEY (p) REFERENCES u (id) ON DELETE CASCADE)"
    listed = pipeline()
    listed = listed.model_copy(update={"tables": listed.tables.model_copy(update={"cascades": ("shop.t",)})})
    kinds = []
    for one, statement in ((pipeline(), made), (listed, made), (listed, made.replace("IF NOT EXISTS ", ""))):
        notes, told = DdlNotes(one), item(statement)
        told.written_by = server("8.0.15")
        sent(notes, told)
        kinds.append([note["kind"] for note in notes.last])
    assert kinds == [["cascade"], [], ["cascade"]]


def test_a_server_that_begins_to_hide_them_is_told_of_when_it_is_connected_to_again() -> None:
    notes = DdlNotes(pipeline())
    with structlog.testing.capture_logs() as lines:
        notes.reads(lower_case=False, logs_cascades=True)
        assert lines == []
        notes.reads(lower_case=False, logs_cascades=False)
        notes.reads(lower_case=False, logs_cascades=False)
    [line] = lines
    assert "headrace check" in line["next_step"]


def test_columns_that_are_renamed_beside_such_a_key_are_told() -> None:
    told = item(HIDES + ", RENAME COLUMN a TO b")
    told.written_by = server("8.0.15")
    [one] = sent(DdlNotes(pipeline()), told)
    value = json.loads(one.value)
    assert (value["kind"], value["renamed"], value["only_renamed"]) == ("cascade", [["a", "b"]], False)


@pytest.mark.parametrize("computes", [True, False])
def test_of_a_table_that_is_altered_it_is_told_whether_it_has_computed_columns(computes: bool) -> None:
    notes = DdlNotes(pipeline())
    notes.computes = lambda db, table: computes and (db, table) == ("shop", "t")
    [one] = sent(notes, item("ALTER TABLE t MODIFY a ENUM('y', 'x')"))
    assert DdlRecord.model_validate_json(one.value).computed == computes


def test_the_last_five_are_kept() -> None:
    notes = DdlNotes(pipeline())
    for n in range(7):
        sent(notes, item(f"DROP TABLE t{n}"))
    assert [note["tables"] for note in notes.last] == [[f"shop.t{n}"] for n in range(2, 7)]
    assert notes.counts["drop"] == 7


def test_a_table_that_is_truncated_again_and_again_crowds_out_nothing_that_asks_for_a_step() -> None:
    notes = DdlNotes(pipeline())
    sent(notes, item("DROP TABLE t"))
    for _ in range(9):
        sent(notes, item("TRUNCATE TABLE u"))
    sent(notes, item("DROP TABLE v"))
    assert [note["kind"] for note in notes.last] == ["drop", *["truncate"] * 5, "drop"]


def test_a_truncation_is_a_record_in_the_tables_topic_and_needs_no_step() -> None:
    schema = TableSchema(db="shop", table="t", columns=(), key=("id",))
    schemas = Schemas([schema.model_copy(update={"version": 4, "since": Sequence(1, 1, 1)})])
    notes = DdlNotes(pipeline())
    with structlog.testing.capture_logs() as lines:
        told, emptied = sent(notes, item("TRUNCATE TABLE t"), schemas)
    assert (notes.counts["truncate"], [note["kind"] for note in notes.last]) == (1, ["truncate"])
    assert [line["log_level"] for line in lines] == ["info"]
    assert (told.topic, told.everywhere, json.loads(told.key or b"")) == (
        "sales.ddl",
        False,
        {"db": "shop", "table": "t"},
    )
    assert (emptied.topic, emptied.key, emptied.everywhere) == ("sales.shop.t", None, True)
    value = json.loads(emptied.value)
    assert (value["op"], value["before"], value["after"]) == ("t", None, None)
    assert value["source"]["seq"] == [3, 1, 100, 0, 0]
    assert value["source"]["schema"] == 4
    [_, unknown] = sent(notes, item("TRUNCATE TABLE u"), schemas)
    assert json.loads(unknown.value)["source"]["schema"] is None
    batch = transaction(1, [1])[0]
    assert isinstance(batch, RowsBatch)
    rows = Envelope(VERSION, "sales", b'"shop"', b'"t"', 4, 3).records(batch)[1]
    assert list(value) == list(json.loads(rows[0]))
    assert list(value["source"]) == list(json.loads(rows[0])["source"]), "the same fields in the same order"


def test_ddl_of_the_pipelines_tables_is_told_in_its_topic() -> None:
    notes = DdlNotes(pipeline())
    [told] = sent(notes, item("ALTER TABLE t ADD INDEX (v) COMMENT 'é'"))
    assert json.loads(told.value) == {
        "db": "shop", "table": "t", "kind": "harmless", "statement": "ALTER TABLE t ADD INDEX (v) COMMENT 'é'",
        "database": "shop", "gtid": f"{SOURCE}:1", "file": FILE, "pos": 100, "seq": [3, 1, 100], "ts_ms": 1_000,
    }  # fmt: skip
    both = sent(notes, item("RENAME TABLE t TO _t_del, _t_gho TO t"))
    assert [json.loads(one.key or b"")["table"] for one in both] == ["t", "_t_del", "_t_gho"]
    assert sent(notes, item("GRANT ALL ON shop.t TO x IDENTIFIED BY 's3cret'")) == []
    assert sent(notes, item("ALTER TABLE t ADD a INT", "other")) == []
    [unknown] = sent(notes, item("FROBNICATE USER x PASSWORD 's3cret'", ""))
    assert b"s3cret" not in unknown.value
    assert json.loads(unknown.key or b"") == {"db": "", "table": None}


@given(st.text(), st.sampled_from(["", "TRUNCATE ", "ALTER TABLE t ", "DROP TABLE t,", "/* x */ CREATE TABLE t "]))
def test_no_statement_stops_the_stream(text: str, start: str) -> None:
    small = pipeline().model_copy(update={"kafka": pipeline().kafka.model_copy(update={"max_message_bytes": 4096})})
    for one in sent(DdlNotes(small), item(start + text)):
        assert len(one.value) <= 4096


def test_a_statement_too_long_for_a_record_is_cut() -> None:
    small = pipeline().model_copy(update={"kafka": pipeline().kafka.model_copy(update={"max_message_bytes": 4096})})
    [one] = sent(DdlNotes(small), item("ALTER TABLE t ADD a INT COMMENT '" + "\x01" * 5000 + "'"))
    assert len(one.value) <= 4096
    assert json.loads(one.value)["cut"] is True
    assert json.loads(one.value)["statement"].startswith("ALTER TABLE t ADD a INT")


def test_the_status_shows_each_of_them() -> None:
    what = rig(Binlog([]))
    for statement in ("ALTER TABLE t DROP a", "DROP TABLE t", "FROBNICATE"):
        sent(what.stream.ddl, item(statement))
    report = Report(pipeline(), what.status)
    report.attach(FACTS, what.stream, what.ledger, what.watcher, what.checkpoints, what.sink)  # type: ignore[arg-type]
    out = Console(file=StringIO(), width=120, highlight=False)
    show_status(out, report.as_dict())
    shown = out.file.getvalue()  # type: ignore[attr-defined]
    assert [line.split()[3:] for line in shown.splitlines() if line.startswith("DDL")] == [
        ["alter", "shop.t"],
        ["drop", "shop.t"],
        ["unknown", "?"],
    ]


def test_no_secret_of_a_table_reaches_its_topic() -> None:
    made = "CREATE TABLE t (id INT, e ENUM('a','b')) ENGINE=FEDERATED CONNECTION='mysql://u:s3cret@h/db/t'"
    [record] = sent(DdlNotes(pipeline()), item(made))
    hidden = "CREATE TABLE t (id INT, e ENUM('a','b')) ENGINE=FEDERATED CONNECTION='...'"
    assert json.loads(record.value)["statement"] == hidden


def test_ddl_and_truncations_that_the_pipeline_leaves_out_are_counted_and_not_sent() -> None:
    """The operator still hears of what changed rows; and so does the lake, of what no event tells of."""
    filters = Filters(drops=lambda db, table: frozenset({"t": ["truncate"], "u": ["ddl"]}.get(table, [])))
    notes = DdlNotes(pipeline(), filters.drop)
    assert [one.topic for one in sent(notes, item("TRUNCATE TABLE t"))] == ["sales.ddl"]
    assert [one.topic for one in sent(notes, item("TRUNCATE TABLE u"))] == ["sales.shop.u"]
    assert sent(notes, item("ALTER TABLE u ADD INDEX (id)")) == []
    assert [one.topic for one in sent(notes, item("DROP TABLE u"))] == ["sales.ddl"]
    assert notes.last[-1]["tables"] == ["shop.u"]
    assert filters.as_dict()["tables"] == {"shop.t": {"truncate": 1}, "shop.u": {"ddl": 2}}
