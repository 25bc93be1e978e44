"""What `headrace status` says of the source, of transforms and of records that were put aside."""

from __future__ import annotations

from streamer.control.tables import _product, _put_aside, _transformed


def test_what_failed_stands_out_and_has_a_next_step() -> None:
    lines = _transformed({"shop.a": {"changed": 1200, "dropped": 3}, "shop.b": {"changed": 1, "dead_letter": 2}})
    assert lines.splitlines() == ["shop.a: 1,200 changed, 3 dropped", "shop.b: [yellow]1 changed, 2 dead letter[/]"]
    assert "shop.c 4 record(s) too large for Kafka:[/] run the DAG sales.snapshot" in _put_aside({"shop.c": 4}, "sales")


def test_the_source_stands_under_its_own_name() -> None:
    assert _product({"server_version": "9.7.4"}) == "MySQL"
    assert _product({"server_version": "11.4.9-MariaDB-log"}) == "MariaDB"
