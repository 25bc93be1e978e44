"""Random tables: columns of random_columns.py under random names, a key over any of them or none, and what is done to
their rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from stack.database import Database
from tests.integration.random_columns import PATHS, Kind, Literals, kinds_of

# What SQL, JSON, a template of Python's or a regular expression would take for something else.
WORDS = ("a", "Z", "0", " ", "'", '"', "`", "%", "%s", "%%", "%b", "{", "}", "{0}", "{v}", "{x}", "[", "]", "$", ".",
         ",", ":", ";", "\\", "\\n", "/", "?", "*", "#", "--", "@", "\t", "\n", "\x01", "\x7f", "ß", "é", "Ж", "漢",
         "字", "あ", "한", "ש", "select", "null")  # fmt: skip
CELLS = 120  # rows times columns
VALUES = 48  # of all columns together: of an example that draws too much, Hypothesis makes another, small one
NUMBER = Kind("int", st.nothing())
# Each is one of a table's; of MariaDB's variables only the global ones count for its binlog.
SETTINGS: dict[str, tuple[tuple[str, ...], ...]] = {
    "mysql": ((), ("binlog_transaction_compression = ON",), ("binlog_row_value_options = PARTIAL_JSON",),
              ("binlog_transaction_compression = ON", "binlog_row_value_options = PARTIAL_JSON")),
    "mysql80": ((), ("binlog_row_value_options = PARTIAL_JSON",)),
    "mariadb": (("GLOBAL log_bin_compress = OFF",),
                ("GLOBAL log_bin_compress = ON", "GLOBAL log_bin_compress_min_len = 10")),
}  # fmt: skip


@dataclass(frozen=True)
class RandomColumn:
    """`values`: the literals that its rows have, besides NULL where that is one."""

    name: str
    kind: Kind
    null: bool
    values: tuple[str, ...]
    invisible: bool = False

    def __str__(self) -> str:
        """As CREATE TABLE takes it."""
        words = f"{ticked(self.name)} {self.kind.spelled} {'NULL' if self.null else 'NOT NULL'}"
        return words + " INVISIBLE" * self.invisible


@dataclass(frozen=True)
class Table:
    """`number`: the name of the column that tells rows apart. `key`: columns, each with the length of a prefix where
    it has one. `inserts`: rows by statement; `updates`: rows' numbers and what the columns are set to; `deletes`: rows'
    numbers. `settings`: for the session that writes."""

    name: str
    columns: tuple[RandomColumn, ...]
    number: str
    key: tuple[tuple[str, int | None], ...]
    inserts: tuple[tuple[tuple[str, ...], ...], ...]
    updates: tuple[tuple[frozenset[int], tuple[tuple[str, str], ...]], ...]
    deletes: frozenset[int]
    settings: tuple[str, ...]

    def create(self) -> str:
        parts = [str(column) for column in self.columns]
        if self.key:
            of_key = (ticked(name) + (f"({length})" if length else "") for name, length in self.key)
            parts.append(f"PRIMARY KEY ({', '.join(of_key)})")
        return f"CREATE TABLE {ticked(self.name)} ({', '.join(parts)})"

    def fill(self) -> list[str]:
        """Rows whose key is another one's already are left out."""
        names = listed(ticked(column.name) for column in self.columns)
        return [
            f"INSERT IGNORE INTO {ticked(self.name)} {names} VALUES {', '.join(map(listed, rows))}"
            for rows in self.inserts
        ]

    def change(self) -> list[str]:
        """Each row is in one of them at most."""
        return [
            f"UPDATE IGNORE {ticked(self.name)} SET {', '.join(f'{ticked(name)} = {value}' for name, value in values)} "
            f"WHERE {self._among(numbers)}"
            for numbers, values in self.updates
        ]

    def delete(self) -> list[str]:
        return [f"DELETE FROM {ticked(self.name)} WHERE {self._among(self.deletes)}"] if self.deletes else []

    def _among(self, numbers: Iterable[int]) -> str:
        return f"{ticked(self.number)} IN {listed(map(str, sorted(numbers)))}"


def ticked(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def listed(parts: Iterable[str]) -> str:
    return f"({', '.join(parts)})"


def tables(server: Database) -> SearchStrategy[Table]:
    kinds = st.one_of(*kinds_of(server))

    @st.composite
    def made(draw: DrawFn) -> Table:
        others = draw(st.one_of(*(st.lists(kinds, min_size=low, max_size=high) for low, high in ((1, 8), (16, 39)))))
        at = draw(st.integers(0, len(others)))
        chosen = [*others[:at], NUMBER, *others[at:]]
        key = draw(_keys(chosen))
        columns = draw(_columns(chosen, at, [place for place, _ in key], server))
        most = min(12, CELLS // len(columns))
        count = draw(st.integers((most + 1) // 2, most))
        rows = [draw(_row(columns, at, n)) for n in range(count)]
        cut = draw(st.integers(0, count))
        return Table(
            draw(_names(0)), columns, columns[at].name,
            tuple((columns[place].name, length) for place, length in key),
            tuple(tuple(some) for some in (rows[:cut], rows[cut:]) if some),
            draw(_updates(columns, at, count)),
            draw(st.frozensets(st.integers(0, count - 1))),
            draw(st.sampled_from(SETTINGS[server.name])),
        )  # fmt: skip

    return made()


def _names(number: int) -> SearchStrategy[str]:
    """Of any characters; by their ends no two are one name to a server, which takes A for á."""
    return st.lists(st.sampled_from(WORDS), max_size=4).map(lambda words: f"{''.join(words)}_{number}")


def _keys(chosen: Sequence[Kind]) -> SearchStrategy[list[tuple[int, int | None]]]:
    """Columns' places, and the lengths of their prefixes."""
    keyed = [(place, kind.prefix) for place, kind in enumerate(chosen) if kind.prefix != "none"]
    lengths = {"whole": st.none(), "may": st.one_of(st.none(), st.integers(1, 4)), "must": st.integers(1, 10)}
    parts = st.sampled_from(keyed).flatmap(lambda one: st.tuples(st.just(one[0]), lengths[one[1]]))
    unique = st.lists(parts, min_size=1, max_size=3, unique_by=lambda part: part[0])
    return st.one_of(unique, unique, unique, st.just([]))


@st.composite
def _columns(
    draw: DrawFn, chosen: Sequence[Kind], number: int, key: Sequence[int], server: Database
) -> tuple[RandomColumn, ...]:
    """The one at the place `number` and those of the key have no NULL."""
    found = []
    for place, kind in enumerate(chosen):
        null = place != number and place not in key and draw(st.integers(0, 3)) > 0
        # MySQL has it since 8.0.23; without NULL, MariaDB asks for a default.
        invisible = null and server.name != "mysql80" and draw(st.integers(0, 9)) == 0
        few = 0 if place == number else min(6, max(2, VALUES // len(chosen)))
        values = draw(st.tuples(*[kind.literals] * few))
        found.append(RandomColumn(draw(_names(place)), kind, null, values, invisible))
    return tuple(found)


def _row(columns: Sequence[RandomColumn], number: int, n: int) -> SearchStrategy[tuple[str, ...]]:
    return st.tuples(*(st.just(str(n)) if at == number else _value(column) for at, column in enumerate(columns)))


@st.composite
def _updates(
    draw: DrawFn, columns: Sequence[RandomColumn], number: int, count: int
) -> tuple[tuple[frozenset[int], tuple[tuple[str, str], ...]], ...]:
    others = [column for at, column in enumerate(columns) if at != number]
    found: list[tuple[frozenset[int], tuple[tuple[str, str], ...]]] = []
    taken: set[int] = set()
    for numbers in draw(st.lists(st.frozensets(st.integers(0, count - 1), min_size=1, max_size=3), max_size=count)):
        if free := numbers - taken:
            taken |= free
            found.append((free, tuple((column.name, draw(_change(column))) for column in others)))
    return tuple(found)


def _value(column: RandomColumn) -> Literals:
    return st.sampled_from([*column.values, *["NULL"] * column.null])


def _change(column: RandomColumn) -> Literals:
    name = ticked(column.name)
    if column.kind.name != "json":
        return st.one_of(st.just(name), _value(column))
    path, value = st.sampled_from(PATHS), st.sampled_from(column.values)
    within = st.builds(lambda at, value: f"json_set({name}, '{at}', {value})", path, value)
    without = st.builds(lambda at: f"json_remove({name}, '{at}')", path.filter(lambda at: at != "$"))
    return st.one_of(st.just(name), within, within, without, _value(column))
