"""When a row leaves the lake's table, though the change that makes it leave goes elsewhere, or nowhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from contract import transform_rows
from contract.transform_event import Event
from contract.transforms import TransformFaultError
from tests.contract.test_transforms import body, chain

LATEST = "row = event.after or event.before"
NO_TESTS = body(LATEST, "if row['s'] == 'test': return None", "return event")
PAID, TEST = {"id": 1, "v": 0.5, "s": "paid"}, {"id": 1, "v": 0.5, "s": "test"}


def left(folder: Path, script: str, op: str, before: Any, after: Any, more: str = "") -> Event | None:
    images = [None if image is None else dict(image) for image in (before, after)]
    change = Event(op, "shop", "t", {"id": 1}, images[0], images[1], "sales.shop.t", {"snapshot": "false"})
    return transform_rows.left(chain(folder, script, more), change)


def test_a_row_leaves_by_the_change_that_makes_it_one_of_those_that_are_dropped(tmp_path: Path) -> None:
    gone = left(tmp_path, NO_TESTS, "u", PAID, TEST)
    assert gone is not None
    assert (gone.op, gone.key, gone.before, gone.after, gone.topic) == ("d", {"id": 1}, PAID, None, "sales.shop.t")
    never_there = [("c", None, TEST), ("u", TEST, TEST), ("d", TEST, None)]
    assert [left(tmp_path, NO_TESTS, *change) for change in never_there] == [None] * 3


def test_it_leaves_under_the_key_and_with_the_image_by_which_it_came(tmp_path: Path) -> None:
    lines = ("event.key = {'id': 7 * row['id']}", "for image in (event.before, event.after):")
    lines += ("    if image: image.update(id=7 * image['id'], v=None)", "return event")
    gone = left(tmp_path, body(LATEST, "if row['s'] == 'test': return None", *lines), "u", PAID, TEST)
    assert gone is not None
    assert (gone.key, gone.before) == ({"id": 7}, PAID | {"id": 7, "v": None})


def test_a_row_that_moves_to_another_topic_leaves(tmp_path: Path) -> None:
    script = body(LATEST, "if row['s'] == 'test': event.topic = 'tests'", "return event")
    assert left(tmp_path, script, "u", PAID, TEST) is not None
    assert left(tmp_path, script, "d", TEST, None) is None


def test_a_change_that_alone_is_dropped_leaves_the_row(tmp_path: Path) -> None:
    no_noise = body("if event.op == 'u' and event.before['s'] == event.after['s']: return None", "return event")
    assert left(tmp_path, no_noise, "u", PAID, PAID | {"v": 1}) is None


def test_a_delete_is_dropped_by_the_section_events_alone(tmp_path: Path) -> None:
    assert left(tmp_path, body("return None if event.op == 'd' else event"), "d", PAID, None) is not None


def test_what_would_be_a_dead_letter_of_a_snapshot_is_not_in_the_table(tmp_path: Path) -> None:
    fails = body(LATEST, "if event.op == 'u': return None", "int(row['s'])", "return event")
    one, two = PAID | {"s": "1"}, PAID | {"s": "x"}
    assert left(tmp_path, fails, "u", one, two, ", on_error: dead_letter") is not None
    assert left(tmp_path, fails, "u", two, one, ", on_error: dead_letter") is None
    assert left(tmp_path, fails, "u", two, two, ", on_error: dead_letter") is None
    with pytest.raises(TransformFaultError):
        left(tmp_path, fails, "u", one, two)
