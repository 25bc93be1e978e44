"""A replayed day: what a person would expect of a day's flying, and what the demo promises to contain."""

from __future__ import annotations

from collections import Counter
from datetime import date, datetime
from typing import Any

from stack.demo.flying_day import Transaction, World, model_day, transactions


def flight(hour: int, minute: int, **known: Any) -> dict[str, Any]:
    row = {
        "id": 1, "year": 2013, "month": 3, "day": 4, "hour": hour, "minute": minute, "carrier": "UA", "flight": 7,
        "sched_dep_time": hour * 100 + minute, "dep_time": None, "dep_delay": None, "arr_time": None,
        "arr_delay": None, "air_time": None, "tailnum": None, "time_hour": datetime(2013, 3, 4, hour + 5),
    }  # fmt: skip
    return {**row, **known}


FLIGHTS = [
    flight(6, 30, dep_time=635, dep_delay=5, arr_time=900, arr_delay=1, air_time=100, tailnum="N1"),
    flight(7, 0, dep_time=700, dep_delay=0, arr_time=None, arr_delay=None, air_time=None, tailnum="N2"),
    flight(8, 0),
]
WEATHER = [{"origin": "JFK", "year": 2013, "month": 3, "day": 4, "hour": 6, "time_hour": datetime(2013, 3, 4, 11)}]


def world(**known: Any) -> World:
    return World(**{"next_id": 500, "planes": {"N1"}, "carriers": ["UA"], "airports": ["JFK", "LGA", "EWR"], **known})


def day(of: World) -> list[Transaction]:
    return list(transactions(date(2014, 3, 4), FLIGHTS, WEATHER, of))


def test_flights_are_scheduled_then_leave_then_arrive_and_the_cancelled_one_is_deleted() -> None:
    done = Counter((s.table, s.op) for t in day(world()) if t.commit for s in t.statements)
    assert done["flights", "insert"] == 1  # one insert of three rows
    assert done["flights", "update"] == 4  # two departures, two arrivals
    assert done["flights", "delete"] == 1
    assert done["weather", "insert"] == 1


def test_no_flight_leaves_before_it_is_scheduled_or_arrives_before_it_leaves() -> None:
    texts = [s.sql for t in day(world()) if t.commit for s in t.statements if s.table == "flights"]
    scheduled = next(n for n, text in enumerate(texts) if text.startswith("INSERT"))
    left = [n for n, text in enumerate(texts) if "dep_time = " in text]
    arrived = [n for n, text in enumerate(texts) if "arr_time = " in text]
    assert scheduled < left[0] < arrived[0]


def test_a_transaction_changes_two_tables_and_one_is_rolled_back() -> None:
    done = day(world())
    assert any(len({s.table for s in t.statements}) > 1 for t in done if t.commit)
    assert next(t for t in done if not t.commit).statements[0].op == "delete"


def test_a_plane_is_registered_once() -> None:
    here = world()
    first, second = day(here), day(here)
    assert [s.values[0] for t in first for s in t.statements if s.table == "planes"] == ["N2"]
    assert not [s for t in second for s in t.statements if s.table == "planes"]


def test_ids_go_on_from_day_to_day_and_dates_are_the_new_days() -> None:
    here = world()
    inserted = next(s for t in day(here) for s in t.statements if s.op == "insert" and s.table == "flights")
    assert here.next_id == 503
    assert 2014 in inserted.values
    assert datetime(2014, 3, 4, 11) in inserted.values
    assert 2013 not in inserted.values


def test_departures_fill_a_column_that_was_added_meanwhile() -> None:
    gated: list[bool] = []
    column = lambda: "gate" if gated else None  # noqa: E731 - it comes behind the first departure
    for each in transactions(date(2014, 3, 4), FLIGHTS, WEATHER, world(gate=column)):
        text = each.statements[-1].sql
        gated += ["gate = " in text] if "dep_time = " in text else []
        assert "arr_time = " not in text or "gate" not in text
    assert gated == [False, True]


def test_the_29th_of_february_repeats_the_28th() -> None:
    assert model_day(date(2016, 2, 29)) == date(2013, 2, 28)
    assert model_day(date(2016, 3, 1)) == date(2013, 3, 1)
