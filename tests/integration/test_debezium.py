"""Headrace's records beside those of a real Debezium connector that read the same binlog: key, order, images, source,
field by field. What may differ stands in debezium_differences.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from contract.schema import Column, TableSchema
from stack.kafka import Kafka
from stack.mysql import MySQL
from stack.mysql80 import MySQL80
from tests.integration.debezium_differences import (
    DIFFERENCES,
    ENVELOPE_THEIRS_ALONE,
    OURS_ALONE,
    THEIRS_ALONE,
    allowed,
)
from tests.integration.debezium_records import Streamed, streamed
from tests.integration.topic_records import Record

EACH_ITS_OWN = {"version", "name"}
SERVERS = ("mysql", "mysql80")


@pytest.fixture(scope="module")
def both(mysql: MySQL, mysql80: MySQL80, kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Streamed]:
    return streamed([mysql, mysql80], kafka, tmp_path_factory.mktemp("debezium"))


@pytest.fixture(params=SERVERS)
def found(request: pytest.FixtureRequest, both: dict[str, Streamed]) -> Streamed:
    return both[request.param]


def test_the_same_tables_have_as_many_records(found: Streamed) -> None:
    assert {table: len(records) for table, records in found.ours.items()} == {
        table: len(records) for table, records in found.theirs.items()
    }
    assert len(found.ours) == 8


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
        for name in sorted(set(one) & set(other) - EACH_ITS_OWN):
            assert (name, one[name]) == (name, other[name])


def test_the_same_keys(found: Streamed) -> None:
    for ours, theirs in pairs(found):
        assert list(ours.key) == list(theirs.key)
        assert unexplained(schema_of(found, ours), ours.key, theirs.key) == []


def test_the_same_values_but_for_the_differences_allowed(found: Streamed) -> None:
    met: set[str] = set()
    for ours, theirs in pairs(found):
        for image in ("before", "after"):
            one, other = ours.value[image], theirs.value[image]
            assert (one is None) == (other is None)
            if one is not None:
                assert list(one) == list(other)
                assert unexplained(schema_of(found, ours), one, other, met) == []
    assert set(DIFFERENCES) - met == set(), "allowed, but not met: take it off the list"


def pairs(found: Streamed) -> Iterator[tuple[Record, Record]]:
    for table, records in found.ours.items():
        yield from zip(records, found.theirs[table], strict=True)


def schema_of(found: Streamed, record: Record) -> TableSchema:
    source = record.value["source"]
    return found.schemas[source["table"], source["schema"]]


def unexplained(
    schema: TableSchema, one: dict[str, Any], other: dict[str, Any], met: set[str] | None = None
) -> list[tuple[Column, Any, Any]]:
    """Values that differ and may not. Names of the differences that may are added to `met`."""
    found = []
    for name, value in one.items():
        if json.dumps(value) == json.dumps(other[name]):
            continue
        column = schema.column(name)
        difference = allowed(column, value, other[name])
        if difference is None:
            found.append((column, value, other[name]))
        elif met is not None:
            met.add(difference)
    return found
