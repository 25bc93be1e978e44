"""Headrace's records beside those of real Debezium connectors that read the same binlogs: key, order, images, source,
field by field. What may differ stands in debezium_differences.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from contract.schema import Column, TableSchema
from stack.kafka import Kafka
from stack.mariadb import MariaDB
from stack.mysql import MySQL
from stack.mysql80 import MySQL80
from tests.integration.debezium_differences import (
    DIFFERENCES,
    ENVELOPE_THEIRS_ALONE,
    FORMED_DIFFERENCES,
    OURS_ALONE,
    THEIRS_ALONE,
    TIMES,
    allowed,
    at_its_statement,
    expected,
    of_xa,
)
from tests.integration.debezium_records import Streamed, streamed
from tests.integration.topic_records import Record

EACH_ITS_OWN = {"version", "name"}
SERVERS = ("mysql", "mysql80", "mariadb")


@pytest.fixture(scope="module")
def both(
    mysql: MySQL, mysql80: MySQL80, mariadb: MariaDB, kafka: Kafka, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Streamed]:
    return streamed([mysql, mysql80, mariadb], kafka, tmp_path_factory.mktemp("debezium"))


@pytest.fixture(params=SERVERS)
def found(request: pytest.FixtureRequest, both: dict[str, Streamed]) -> Streamed:
    return both[request.param]


def test_the_same_tables_have_as_many_records(found: Streamed) -> None:
    assert {table: len(records) for table, records in found.ours.items()} == {
        table: len(records) for table, records in found.theirs.items()
    }
    assert len(found.ours) == 10


def test_a_truncate_is_a_record_of_ours_alone(found: Streamed) -> None:
    assert {(record.key, record.value["source"]["table"]) for record in found.truncates} == {(None, "orders")}


def test_the_same_operations_in_the_same_order(found: Streamed) -> None:
    for ours, theirs in pairs(found):
        for name in ("op", "transaction"):
            assert ours.value[name] == theirs.value[name]
        assert set(theirs.value) - set(ours.value) == ENVELOPE_THEIRS_ALONE
        assert set(ours.value) <= set(theirs.value)
        assert abs(ours.value["ts_ms"] - theirs.value["ts_ms"]) < 600_000


def test_the_same_source_fields(found: Streamed) -> None:
    for ours, theirs in pairs(found):
        one, other = ours.value["source"], theirs.value["source"]
        assert set(one) - set(other) == OURS_ALONE
        assert set(other) - set(one) == THEIRS_ALONE
        if phases := phases_of_xa(ours):
            assert of_xa(one, other, phases)
            continue
        times = set(TIMES) if connector_of(found) == "mariadb" else set()
        for name in sorted(set(one) & set(other) - EACH_ITS_OWN - times):
            assert (name, one[name]) == (name, other[name])


def test_of_mariadb_the_time_is_that_of_the_commit_and_debeziums_that_of_the_statement(
    both: dict[str, Streamed],
) -> None:
    found = [(ours.value["source"], theirs.value["source"]) for ours, theirs in pairs(both["mariadb"])]
    assert all(at_its_statement(ours, theirs) for ours, theirs in found)
    late = [ours["ts_ms"] - theirs["ts_ms"] for ours, theirs in found if ours["ts_ms"] - theirs["ts_ms"] > 30_000]
    assert len(late) == 1
    assert late[0] == pytest.approx(60_000, abs=30_000)


def test_the_same_keys(found: Streamed) -> None:
    for ours, theirs in pairs(found):
        assert list(ours.key) == list(theirs.key)
        assert unexplained(schema_of(found, ours), ours.key, theirs.key) == []


def test_the_same_values_but_for_the_differences_allowed(found: Streamed) -> None:
    flavor = connector_of(found)
    met: set[str] = set()
    for ours, theirs in pairs(found):
        for image in ("before", "after"):
            one, other = ours.value[image], theirs.value[image]
            assert (one is None) == (other is None)
            if one is not None:
                assert list(one) == list(other)
                assert unexplained(schema_of(found, ours), one, other, met) == []
    assert met == expected(flavor, DIFFERENCES), "allowed, but not met: take it off the list"


def test_in_debeziums_form_schemas_and_payloads_are_debeziums(both: dict[str, Streamed]) -> None:
    """Each way to show values: where a streamer sent it by the example, and where its last step is asked for others."""
    met: set[str] = set()
    ways = [(name, way, found) for found in both.values() for name, way in found.formed.items()]
    assert len(ways) == 6
    for name, way, found in ways:
        assert {table: len(rows) for table, rows in way.ours.items()} == {
            table: len(rows) for table, rows in way.theirs.items()
        }
        for table, rows in way.ours.items():
            natives = found.ours[table]
            for native, ours, theirs in zip(natives, rows, way.theirs[table], strict=True):
                same_form(schema_of(found, native), ours, theirs, met)
                told = theirs.value["payload"]["transaction"]
                assert told == (None if phases_of_xa(ours) else ours.value["payload"]["transaction"]), name
    assert met == set(FORMED_DIFFERENCES), "allowed, but not met: take it off the list"


def same_form(schema: TableSchema, ours: Record, theirs: Record, met: set[str]) -> None:
    assert described(ours.value["schema"]) == described(theirs.value["schema"])
    assert described(ours.key["schema"]) == described(theirs.key["schema"])
    assert unexplained(schema, ours.key["payload"], theirs.key["payload"], met, formed=True) == []
    one, other = ours.value["payload"], theirs.value["payload"]
    assert list(one) == list(other)
    for image in ("before", "after"):
        assert (one[image] is None) == (other[image] is None)
        if one[image] is not None:
            assert list(one[image]) == list(other[image])
            assert unexplained(schema, one[image], other[image], met, formed=True) == []
    assert one["op"] == other["op"]
    assert list(one["source"]) == list(other["source"])
    if phases := phases_of_xa(ours):
        assert of_xa(one["source"], other["source"], phases)
        return
    own = EACH_ITS_OWN | {"sequence"}
    if one["source"]["connector"] == "mariadb":
        assert at_its_statement(one["source"], other["source"])
        own |= set(TIMES)
    told, others = ({k: v for k, v in each["source"].items() if k not in own} for each in (one, other))
    assert told == others


def described(schema: dict[str, Any]) -> dict[str, Any]:
    """Without columns' defaults, and with one name for the topic."""
    topic, _, _ = schema["name"].rpartition(".")
    text = json.dumps(schema).replace(json.dumps(topic)[1:-1] + ".", "TOPIC.")
    found: dict[str, Any] = json.loads(text)
    for part in [found, *(field for field in found["fields"] if field["field"] in ("before", "after"))]:
        for field in part["fields"]:
            if field["field"] not in ("source", "before", "after"):
                field.pop("default", None)
    return found


def test_in_debeziums_form_transactions_and_tombstones_are_debeziums(both: dict[str, Streamed]) -> None:
    way = both["mysql"].formed["debezium-mysql-plainly"]
    assert way.beside is not None
    ours, theirs = ({record.key["payload"]["id"]: [] for record in records} for records in way.beside)
    for told, records in ((ours, way.beside[0]), (theirs, way.beside[1])):
        for record in records:
            told[record.key["payload"]["id"]].append(record)
    assert len(ours) > 20
    of_both = [record for table in ("xa_one", "xa_two") for record in way.ours[table]]
    xa = {record.value["payload"]["transaction"]["id"] for record in of_both}
    assert len(xa) == 2
    assert set(ours) - set(theirs) == xa, "of an XA transaction Debezium tells neither beginning nor end"
    for number, records in ours.items():
        if number in xa:
            continue
        assert [(one.key, without_time(one)) for one in records] == [
            (one.key, without_time(one)) for one in theirs[number]
        ]
    gone = [
        sorted(json.dumps([described(key["schema"]), key["payload"]], sort_keys=True) for key in one)
        for one in way.gone
    ]
    assert gone[0] == gone[1]
    assert len(gone[0]) > 5


def without_time(record: Record) -> dict[str, Any]:
    told = record.value["payload"]
    tables = sorted(told["data_collections"] or [], key=lambda one: str(one["data_collection"]))
    return {**record.value, "payload": {**told, "ts_ms": 0, "data_collections": tables}}


def pairs(found: Streamed) -> Iterator[tuple[Record, Record]]:
    for table, records in found.ours.items():
        yield from zip(records, found.theirs[table], strict=True)


def phases_of_xa(record: Record) -> int:
    """Of the XA transaction of the row, 0 where it is of none. The one of one phase deletes rows of the other's."""
    envelope = record.value.get("payload", record.value)
    if not envelope["source"]["table"].startswith("xa_"):
        return 0
    return 1 if envelope["op"] == "d" and envelope["before"]["id"] == 1 else 2


def connector_of(found: Streamed) -> str:
    [flavor] = {record.value["source"]["connector"] for records in found.ours.values() for record in records}
    return str(flavor)


def schema_of(found: Streamed, record: Record) -> TableSchema:
    source = record.value["source"]
    return found.schemas[source["table"], source["schema"]]


def unexplained(
    schema: TableSchema, one: dict[str, Any], other: dict[str, Any], met: set[str] | None = None, formed: bool = False
) -> list[tuple[Column, Any, Any]]:
    """Values that differ and may not. Names of the differences that may are added to `met`. `formed`: whether ours are
    in Debezium's form."""
    found = []
    for name, value in one.items():
        if json.dumps(value) == json.dumps(other[name]):
            continue
        column = schema.column(name)
        difference = allowed(column, value, other[name], FORMED_DIFFERENCES if formed else None)
        if difference is None:
            found.append((column, value, other[name]))
        elif met is not None:
            met.add(difference)
    return found
