"""What `headrace status` says of the source, of transforms and of records that were put aside."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from streamer.control.tables import _ddl, _product, _put_aside, _transformed, show_status


def test_what_failed_stands_out_and_has_a_next_step() -> None:
    lines = _transformed({"shop.a": {"changed": 1200, "dropped": 3}, "shop.b": {"changed": 1, "dead_letter": 2}})
    assert lines.splitlines() == ["shop.a: 1,200 changed, 3 dropped", "shop.b: [yellow]1 changed, 2 dead letter[/]"]
    assert "shop.c 4 record(s) too large for Kafka:[/] run the DAG sales.snapshot" in _put_aside({"shop.c": 4}, "sales")


def test_a_truncation_is_told_and_is_nothing_to_be_warned_of() -> None:
    at = {"ts_ms": 1_000, "tables": ["shop.t"]}
    assert _ddl({"kind": "truncate", **at}) == ("DDL 01-01 00:00:01", "truncate shop.t")
    assert _ddl({"kind": "drop", **at}) == ("DDL 01-01 00:00:01", "[yellow]drop[/] shop.t")


def test_the_source_stands_under_its_own_name() -> None:
    assert _product({"server_version": "9.7.4"}) == "MySQL"
    assert _product({"server_version": "11.4.9-MariaDB-log"}) == "MariaDB"


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"state": "streaming", "since": 900.0}, "an error before this, 1970-01-01 00:10:00 UTC: MySQL is away"),
        ({"state": "waiting", "waiting_for": "MySQL", "since": 600.0}, "last error, 1970-01-01 00:10:00 UTC: MySQL is"),
        ({"state": "waiting", "waiting_for": "Kafka", "since": 900.0}, "Kafka: all brokers are down"),
        ({"state": "failed", "since": 900.0}, "last error, 1970-01-01 00:10:00 UTC: MySQL is away"),
    ],
)
def test_an_error_that_is_over_does_not_pass_for_the_one_of_now(facts: dict[str, Any], said: str) -> None:
    out = io.StringIO()
    told = {"pipeline": "shop", "waiting_for": None, "last_error": {"at": 600.0, "message": "MySQL is away"}, **facts}
    sink = {"title": "Kafka", "last_error": "all brokers are down" if facts.get("waiting_for") == "Kafka" else None}
    show_status(Console(file=out, width=200), {**told, "sink": sink, "tables": {"reload": None}})
    assert said in out.getvalue()
