"""A day's flying as transactions: the day of 2013 that a new day repeats, told in the order of its clock.

In: the day, the flights and the weather of its model day (rows as dictionaries), and what the tables hold.
Out: `Transaction`s. Nothing here touches a server.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from itertools import count
from typing import Any

Row = dict[str, Any]
FLIGHTS_PER_INSERT = 40
UNKNOWN_AT_SCHEDULING = ("dep_time", "dep_delay", "arr_time", "arr_delay", "air_time", "tailnum")


@dataclass(frozen=True)
class Statement:
    """One statement and the one table whose rows it changes."""

    table: str
    op: str
    sql: str
    values: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Transaction:
    statements: tuple[Statement, ...]
    commit: bool = True


@dataclass
class World:
    """What the tables hold as far as a day needs it; `gate` is the column that departures fill once it is there."""

    next_id: int
    planes: set[str]
    carriers: Sequence[str]
    airports: Sequence[str]
    gate: Callable[[], str | None] = field(default=lambda: None)


def model_day(day: date) -> date:
    """The day of 2013 that is repeated."""
    return date(2013, day.month, 28 if (day.month, day.day) == (2, 29) else day.day)


def transactions(day: date, flights: Sequence[Row], weather: Sequence[Row], world: World) -> Iterator[Transaction]:
    """The whole day. Flights get ids from `world.next_id` on; `world` is kept up to date."""
    shift = day - model_day(day)
    planned = [{**row, **_dated(row, day, shift), "id": world.next_id + n} for n, row in enumerate(flights)]
    world.next_id += len(planned)
    hours: dict[int, list[Row]] = {}
    for row in weather:
        hours.setdefault(row["hour"], []).append({**row, **_dated(row, day, shift)})
    clock = _clock(planned, hours, world)
    yield _register(day, world)
    while clock:
        _, _, happen = heapq.heappop(clock)
        yield happen()


def _dated(row: Row, day: date, shift: Any) -> Row:
    return {"year": day.year, "month": day.month, "day": day.day, "time_hour": row["time_hour"] + shift}


def _clock(flights: list[Row], weather: dict[int, list[Row]], world: World) -> list[tuple[int, int, Any]]:
    """A heap of (minute of the day, number, what happens then)."""
    number = count()
    clock: list[tuple[int, int, Any]] = []

    def at(minute: int, happen: Callable[[], Transaction]) -> None:
        heapq.heappush(clock, (minute, next(number), happen))

    in_order = sorted(flights, key=_scheduled)
    for group in (in_order[n : n + FLIGHTS_PER_INSERT] for n in range(0, len(in_order), FLIGHTS_PER_INSERT)):
        at(_scheduled(group[0]) - 240, partial(_schedule, group))
    for row in flights:
        if row["dep_time"] is None:
            at(_scheduled(row) - 30, partial(_cancel, row))
            continue
        left = _scheduled(row) + row["dep_delay"]
        at(left, partial(_depart, row, world))
        at(left + (row["air_time"] or 180) + 20, partial(_arrive, row))
    for hour, rows in weather.items():
        at(60 * hour, partial(_observe, rows))
    at(12 * 60, partial(_strike, flights))
    return clock


def _scheduled(row: Row) -> int:
    return int(row["hour"]) * 60 + int(row["minute"])


def _insert(table: str, rows: Sequence[Row]) -> Statement:
    columns = list(rows[0])
    one = "(" + ", ".join(["%s"] * len(columns)) + ")"
    sql = f"INSERT INTO {table} ({', '.join(columns)}) VALUES {', '.join([one] * len(rows))}"
    return Statement(table, "insert", sql, tuple(row[column] for row in rows for column in columns))


def _schedule(rows: Sequence[Row]) -> Transaction:
    """Many flights in one insert, nothing known of them but their schedule."""
    return Transaction((_insert("flights", [{**row, **dict.fromkeys(UNKNOWN_AT_SCHEDULING)} for row in rows]),))


def _observe(rows: Sequence[Row]) -> Transaction:
    return Transaction((_insert("weather", rows),))


def _cancel(row: Row) -> Transaction:
    return Transaction((Statement("flights", "delete", "DELETE FROM flights WHERE id = %s", (row["id"],)),))


def _depart(row: Row, world: World) -> Transaction:
    """The flight gets its plane and its time; a plane never seen before is registered in the same transaction."""
    known = {"dep_time": row["dep_time"], "dep_delay": row["dep_delay"], "tailnum": row["tailnum"]}
    if gate := world.gate():
        known[gate] = f"{'ABCD'[row['id'] % 4]}{row['flight'] % 40 + 1}"
    statements = [_update(row["id"], known)]
    tailnum = row["tailnum"]
    if tailnum and tailnum not in world.planes:
        world.planes.add(tailnum)
        statements.insert(0, _insert("planes", [_plane(tailnum)]))
    return Transaction(tuple(statements))


def _plane(tailnum: str) -> Row:
    return {
        "tailnum": tailnum,
        "type": "Fixed wing multi engine",
        "manufacturer": "UNKNOWN",
        "model": "UNKNOWN",
        "engines": 2,
        "seats": 150,
        "engine": "Turbo-fan",
    }


def _arrive(row: Row) -> Transaction:
    known = {name: row[name] for name in ("arr_time", "arr_delay", "air_time")}
    return Transaction((_update(row["id"], known),))


def _update(flight: int, known: Row) -> Statement:
    sets = ", ".join(f"{column} = %s" for column in known)
    return Statement("flights", "update", f"UPDATE flights SET {sets} WHERE id = %s", (*known.values(), flight))


def _register(day: date, world: World) -> Transaction:
    """The morning's corrections: an airline's name and three airports' surveys, two tables in one transaction."""
    at = day.toordinal()
    carrier = world.carriers[at % len(world.carriers)]
    surveyed = tuple(world.airports[(3 * at + n) % len(world.airports)] for n in range(3))
    name = "IF(name LIKE '%% Inc.', LEFT(name, CHAR_LENGTH(name) - 5), CONCAT(name, ' Inc.'))"
    sql = "UPDATE airports SET alt = alt + 1, lat = lat + 1e-7 WHERE faa IN (%s, %s, %s)"
    return Transaction(
        (
            Statement("airlines", "update", f"UPDATE airlines SET name = {name} WHERE carrier = %s", (carrier,)),
            Statement("airports", "update", sql, surveyed),
        )
    )


def _strike(flights: Sequence[Row]) -> Transaction:
    """A strike called off: an airline's whole afternoon deleted, and rolled back."""
    carrier = flights[0]["carrier"]
    ids = [row["id"] for row in flights if row["carrier"] == carrier]
    deleted = f"DELETE FROM flights WHERE id IN ({', '.join(['%s'] * len(ids))})"
    renamed = "UPDATE airlines SET name = 'On strike' WHERE carrier = %s"
    statements = (
        Statement("flights", "delete", deleted, tuple(ids)),
        Statement("airlines", "update", renamed, (carrier,)),
    )
    return Transaction(statements, commit=False)
