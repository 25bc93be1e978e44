"""Checks that no server of the tests can show: older MySQL, MariaDB."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from contract.pipeline import Pipeline, Tables
from streamer.preflight import command
from streamer.preflight.checks import CHECKS, Finding, Server, _flavor
from streamer.preflight.columns import COLUMNS
from streamer.preflight.engines import ENGINES
from streamer.preflight.tables import INEXACT_KEYS, KEYLESS, ODD_TABLES, TYPES
from streamer.preflight.unmatched import NAMES, TOLD

PIPELINE = Pipeline.model_validate(
    {
        "format": 1,
        "name": "checked",
        "source": {"host": "h", "user": "u", "password": "p", "server_id": 5},
        "tables": {"include": ["shop.*"]},
        "kafka": {"bootstrap": "localhost:9092"},
        "lake": {"path": "lake"},
    }
)
GOOD = {
    "log_bin": "ON",
    "binlog_format": "ROW",
    "binlog_row_image": "FULL",
    "binlog_row_metadata": "FULL",
    "gtid_mode": "ON",
    "server_id": "1",
    "gtid_purged": "",
}
CHILDREN = [
    ("shop", "lines", "of_order", "orders", "ON UPDATE NO ACTION, ON DELETE CASCADE"),
    ("other", "lines", "of_order", "orders", "ON UPDATE NO ACTION, ON DELETE CASCADE"),
]


def findings(
    version: str,
    answers: dict[str, list[tuple[Any, ...]]] | None = None,
    followed: Tables | None = None,
    **variables: str,
) -> list[Finding]:
    def ask(sql: str, *_: Any) -> list[tuple[Any, ...]]:
        if answers and sql in answers:
            return answers[sql]
        if "referential_constraints" in sql:
            return list(CHILDREN)
        return [("GRANT ALL PRIVILEGES ON *.* TO `u`@`%`",)] if sql == "SHOW GRANTS" else []

    numbers = tuple(int(part) for part in version.partition("-")[0].split("."))
    server = Server(PIPELINE, None, None, GOOD | variables | {"version": version}, numbers, ask, followed)
    return [*_flavor(server)] or [finding for check in CHECKS for finding in check(server)]


@pytest.mark.parametrize(
    ("version", "hidden"), [("8.0.36", True), ("9.5.0", True), ("9.6.0", False), ("9.7.4-2", False)]
)
def test_cascades_that_the_binlog_does_not_hold_are_named(version: str, hidden: bool) -> None:
    found = findings(version)
    assert [(one.level, one.name) for one in found] == ([("error", "foreign_key")] if hidden else [])
    assert all("shop.lines" in one.what for one in found), "only the pipeline's own tables"


def test_cascades_are_no_error_of_what_is_followed_already_nor_of_what_the_file_allows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A stream goes on, warned; what is allowed is named with what it takes."""
    [found] = findings("8.0.36", followed=PIPELINE.tables)
    assert (found.level, found.name) == ("warning", "foreign_key")
    assert 'tables.cascades: ["shop.lines"]' in found.statement
    allowing = PIPELINE.tables.model_copy(update={"cascades": ("shop.li*",)})
    monkeypatch.setattr(f"{__name__}.PIPELINE", PIPELINE.model_copy(update={"tables": allowing}))
    [found] = findings("8.0.36")
    assert (found.level, found.name) == ("ok", "foreign_key")
    assert found.statement.startswith("For shop.lines, by a schedule, run the DAG checked.snapshot, or `headrace snap")
    assert findings("9.7.0") == []


def test_engines_that_no_server_of_the_tests_has() -> None:
    engines = [("shop", "far", "FEDERATED"), ("other", "far", "SPIDER"), ("shop", "file", "CONNECT")]
    [found] = findings("9.7.4", {ENGINES: engines})
    assert (found.level, found.name) == ("error", "engine")
    assert found.what.endswith(": shop.far (FEDERATED), shop.file (CONNECT)")
    assert found.statement.endswith('tables.exclude: ["shop.far", "shop.file"] in the pipeline file.')


def test_a_server_of_the_other_kind_is_told_with_the_line_to_write() -> None:
    [found] = findings("11.4.5-MariaDB-log")
    assert (found.level, found.name) == ("error", "flavor")
    assert found.statement == "Write flavor: mariadb under source in the pipeline file."


def test_every_finding_comes_with_its_mending() -> None:
    bad = {
        "log_bin": "OFF",
        "binlog_format": "MIXED",
        "binlog_row_image": "NOBLOB",
        "gtid_mode": "OFF",
        "server_id": "5",
    }
    found = findings("9.7.4", binlog_row_metadata="MINIMAL", **bad)
    assert {one.name for one in found} == {*bad, "binlog_row_metadata"}
    assert all(one.statement.endswith((";", ".")) for one in found)


@pytest.mark.parametrize(
    ("version", "flavor", "since"), [("5.7.44-log", "mysql", "MySQL has it since 8.0.1"),
                                     ("10.4.34-MariaDB", "mariadb", "MariaDB has it since 10.5")],
)  # fmt: skip
def test_a_server_too_old_to_name_columns_is_led_to_one_that_does(
    monkeypatch: pytest.MonkeyPatch, version: str, flavor: str, since: str
) -> None:
    """No statement would set what it has not."""
    source = PIPELINE.source.model_copy(update={"flavor": flavor})
    monkeypatch.setattr(f"{__name__}.PIPELINE", PIPELINE.model_copy(update={"source": source}))
    monkeypatch.delitem(GOOD, "binlog_row_metadata")
    [found] = [one for one in findings(version) if one.name == "binlog_row_metadata"]
    assert (found.level, found.statement) == ("error", f"Upgrade the server: {since}.")
    assert version in found.what


def test_tables_that_the_lake_cannot_take_are_all_named_with_the_line_to_write() -> None:
    keyless = [("shop", "log"), ("other", "log"), ("shop", "audit")]
    columns = [("shop", "t", "id", "int"), ("shop", "t", "at", "xmltype"), ("shop", "t", "v", "vector")]
    columns += [("shop", "t", "w", "period"), ("shop", "u", "g", "unheard"), ("other", "t", "g", "unheard")]
    key, kind = findings("9.7.4", {KEYLESS: keyless, TYPES: columns})
    assert (key.level, key.name, kind.level, kind.name) == ("error", "key", "error", "type")
    assert key.what.endswith(": shop.log, shop.audit")
    assert key.statement.endswith('tables.exclude: ["shop.log", "shop.audit"] in the pipeline file.')
    assert kind.what.endswith(": shop.t.at (xmltype), shop.t.w (period), shop.u.g (unheard)")
    assert kind.statement.endswith('tables.exclude: ["shop.t", "shop.u"] in the pipeline file.')


def test_columns_that_the_lake_cannot_have_are_named_and_stop_no_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [("shop", "t", name, "int", name == "id", False) for name in ("id", "a b", "c", "_TS")]
    rows += [("other", "t", "x y", "int", 0, 1), ("shop", "u", "_row_id_", "int", 0, 1)]
    [found] = findings("9.7.4", {COLUMNS: rows})
    assert (found.level, found.name) == ("warning", "columns")
    assert found.what.endswith(": 'a b' in shop.t, '_TS' in shop.t, '_row_id_' in shop.u")
    assert found.statement.endswith('or write tables.exclude: ["shop.t", "shop.u"] in the pipeline file.')
    columns = PIPELINE.columns.model_copy(update={"exclude": ("shop.t.a b", "shop.t._ts", "shop.u._row_id_")})
    monkeypatch.setattr(f"{__name__}.PIPELINE", PIPELINE.model_copy(update={"columns": columns}))
    assert "the lake cannot have" not in "".join(one.what for one in findings("9.7.4", {COLUMNS: rows}))


def test_a_table_whose_changes_alone_are_kept_needs_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = [{"tables": ["shop.log"], "changes_only": True}]
    given = Pipeline.model_validate(PIPELINE.model_dump() | {"source": PIPELINE.source, "keys": keys})
    monkeypatch.setattr(f"{__name__}.PIPELINE", given)
    [found] = findings("9.7.4", {KEYLESS: [("shop", "log"), ("shop", "audit")]})
    assert found.what.endswith(": shop.audit")
    assert "changes_only: true" in found.statement


def test_what_is_wrong_with_a_table_that_is_followed_keeps_no_stream_from_going_on() -> None:
    """It was made while the stream ran: the others go on, at a start and at a failover. Of new tables it is refused."""
    keyless = [("shop", "log"), ("shop", "late")]
    columns = [("shop", "late", "g", "unheard")]
    followed = Tables(include=("shop.*",), exclude=("shop.log",))
    found = findings("9.7.4", {KEYLESS: keyless, TYPES: columns}, followed)
    assert [(one.level, one.name) for one in found] == [("error", "key"), ("warning", "key"), ("warning", "type")]
    lasts = ["shop.log", "shop.late", "shop.late.g (unheard); the streamer stops at the first row"]
    assert [one.what.rpartition(": ")[2] for one in found] == lasts


@pytest.mark.parametrize(
    ("asked", "row"),
    [
        (INEXACT_KEYS, ("shop", "late", "r", "float")),
        (TYPES, ("shop", "late", "g", "unheard")),
        (ODD_TABLES, ("shop", "late", "sequence")),
    ],
)
def test_a_followed_table_at_whose_first_row_the_streamer_stops_is_an_error_of_a_check_alone(
    asked: str, row: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others go on up to there."""
    [found] = findings("9.7.4", {asked: [row]}, Tables(include=("shop.*",)))
    assert found.level == "warning"
    facts = SimpleNamespace(version="9.7.4", file="binlog.000001")
    monkeypatch.setattr(command.source, "facts", lambda _: facts)
    monkeypatch.setattr(command.preflight, "run_checks", lambda *_, **__: [found])
    _, told = command._server(PIPELINE, True, Tables(include=("shop.*",)))
    assert (told.level, told.subject) == ("error", f"server: {found.name}")
    assert "the streamer stops at the first row" in told.text


def test_names_in_capitals_are_refused_where_the_server_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = PIPELINE.tables.model_copy(update={"include": ["Shop.*", "shop.[A-Za-z]*"], "exclude": ["shop.Secret"]})
    monkeypatch.setattr(f"{__name__}.PIPELINE", PIPELINE.model_copy(update={"tables": tables}))
    assert findings("9.7.4") == findings("9.7.4", lower_case_table_names="0") == []
    [found] = findings("9.7.4", lower_case_table_names="1")
    assert (found.level, found.name) == ("error", "table")
    assert "Shop.*, shop.Secret match none" in found.what


def test_a_network_without_tls_is_told_where_the_file_leaves_it_to_the_server() -> None:
    asked = "SHOW SESSION STATUS LIKE 'Ssl_version'"
    [found] = findings("9.7.4", {asked: [("Ssl_version", "")]})
    assert (found.level, found.name) == ("warning", "tls")
    assert "source.tls: {mode: disabled}" in found.statement
    assert findings("9.7.4", {asked: [("Ssl_version", "TLSv1.3")]}) == []


THERE = [("shop", "customers"), ("shop", "orders"), ("shop", "lines"), ("mysql", "user")]


def choosing(monkeypatch: pytest.MonkeyPatch, **sections: Any) -> list[Finding]:
    """What is found of a file with these sections, which stand in its second line, on a server that has the tables."""
    given = PIPELINE.model_dump(exclude={"source", "path"}) | {
        "source": {"host": "localhost", "user": "u", "password": "p", "server_id": 5}
    }
    monkeypatch.setattr(f"{__name__}.PIPELINE", Pipeline.model_validate(given | sections))
    return findings("9.7.4", {NAMES: THERE})


def test_a_misspelled_table_among_others_is_told_with_what_was_meant(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its rows would be missing in silence; and with an exclude misspelled, be in the lake in silence."""
    tables = {"include": ["shop.customer", "shop.orders"], "exclude": ["shop.line", "shop.orders", "shop.tmp_*"]}
    included, excluded = choosing(monkeypatch, tables=tables)
    assert (included.level, excluded.level) == ("warning", "warning")
    assert "tables.include[0]: shop.customer matches no table" in included.what
    assert included.statement.startswith("Did you mean shop.customers?")
    assert included.statement.endswith("made later joins.")
    assert "tables.exclude[0]: shop.line matches no table" in excluded.what
    assert "shop.lines?" in excluded.statement


def test_what_is_meant_for_tables_to_come_is_no_error_and_guessed_at_no_further(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A server without any table yet says nothing of patterns; the server's own tables are nobody's."""
    found = choosing(monkeypatch, tables={"include": ["shop.*", "archive_*.*", "mysql.user", "shop.invoices"]})
    assert [(one.level, one.name) for one in found] == [("warning", "pattern")] * 3
    assert not any("Did you mean" in one.statement for one in found)
    assert findings("9.7.4", {NAMES: [("mysql", "user")]}) == []


def test_rules_for_tables_that_are_not_there_are_told_with_their_place(monkeypatch: pytest.MonkeyPatch) -> None:
    rules: dict[str, Any] = {
        "keys": [{"tables": ["shop.orders", "shop.line"], "columns": ["id"]}],
        "events": [{"tables": ["/shop\\.order/"], "drop": ["delete"]}],
        "topics": [{"tables": ["shop.Orders"], "partitions": 3}],
        "tables": {"include": ["shop.*"], "cascades": ["shop.lins"]},
    }
    found = {one.what.rpartition(": ")[0].removeprefix(".: "): one for one in choosing(monkeypatch, **rules)}
    assert set(found) == {"tables.cascades[0]", "keys[0].tables[1]", "events[0].tables[0]", "topics[0].tables[0]"}
    assert found["topics[0].tables[0]"].statement.startswith("Did you mean shop.orders?")


def test_of_very_many_names_that_are_not_there_the_first_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    include = ["shop.*", *(f"archive.year_{n}" for n in range(TOLD + 5))]
    *told, rest = choosing(monkeypatch, tables={"include": include})
    assert len(told) == TOLD
    assert rest.what.startswith("5 more patterns")
