"""DuckDB's SQL of a table's past, which gives what spark/history/history.py does. Pure: names and types in, statements
out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from contract import names
from contract.breaks import Break, Place
from contract.past_names import sent
from contract.renames import Rename
from contract.sequence import FIELDS

VERSION = ("valid_from", "valid_to", "gtid")  # what a row of the history has beside the table's columns
MOMENT = '" moment"'  # the name of a parameter; it would take the place of a column that is called so
ZONED = r"(?i):\d{2}(\.\d+)?\s*([+-]\d{2}(:?\d{2})*|z|[a-z][\w+-]*(/[\w+-]+)*)$"  # a time of day with a zone behind it
MAY_NOT_PARSE = ("DATE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE")  # zero and partial dates are null in the lake


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def value(json: str, name: str, kind: str) -> str:
    """SQL of a column's value from the JSON text of a row."""
    path = "/" + name.replace("~", "~0").replace("/", "~1")  # a JSON pointer, in which no other sign is special
    text = f"json_extract_string({json}, {literal(path)})"
    if kind == "BLOB":
        return f"from_base64({text})"
    if kind.startswith("STRUCT"):
        wkb, srid = (f"json_extract_string({json}, {literal(f'{path}/{part}')})" for part in ("wkb", "srid"))
        return f"CASE WHEN {srid} IS NOT NULL THEN {{'wkb': from_base64({wkb}), 'srid': CAST({srid} AS BIGINT)}} END"
    if kind.endswith("[]"):
        return f"CAST(json_extract({json}, {literal(path)}) AS {kind})"
    return f"{'TRY_CAST' if kind in MAY_NOT_PARSE else 'CAST'}({text} AS {kind})"


class Past:
    """`broken`: where its past breaks, the oldest first; `part` in `raw` is the number of a change's part between two
    ends, and `part_ended` when that ended. `spellings`: names of columns in changes, beside those of now.

    `now`: the table of present rows, `raw`: that of its changes, both as SQL names them; of these `counted` is when
    each counts (spark/landing/commit_times.py says why it is not always `ts`). `kinds`: its columns, name and DuckDB's
    type; `key`: those of the key, none where there is no change. `renames`: the table's; with any, or a break,
    `raw` has the column `schema`."""

    def __init__(
        self, name: str, now: str, raw: str, kinds: Mapping[str, str], key: Sequence[str],
        renames: Sequence[Rename] = (), broken: Sequence[Break] = (), spellings: Sequence[str] = (),
    ) -> None:  # fmt: skip
        self.name, self.now, self.raw, self.kinds, self.key, self.renames = name, now, raw, kinds, key, renames
        self.broken, self.spellings = broken, spellings

    def _row(self, json: str) -> str:
        return ", ".join(f"{self._value(json, name)} AS {quoted(name)}" for name in self.kinds)

    def _value(self, json: str, name: str) -> str:
        """By the name that the column had in the change."""
        kind = self.kinds[name]
        older = [
            f"WHEN schema < {version} THEN {self._told(json, old, kind) if old else 'NULL'}"
            for version, old in sent(self.renames, self.broken, name)
        ]
        found = self._told(json, name, kind)
        return f"CASE {' '.join(older)} ELSE {found} END" if older else found

    def _told(self, json: str, name: str, kind: str) -> str:
        """By a name, however its letters are spelled."""
        others = [one for one in self.spellings if one != name and one.lower() == name.lower()]
        found = [value(json, one, kind) for one in (name, *others)]
        return f"coalesce({', '.join(found)})" if others else found[0]

    def _columns(self) -> str:
        return ", ".join(map(quoted, self.kinds))

    def _untouched(self, where: str) -> str:
        if not self.key:
            return f"FROM {self.now} AS n"
        keys = ", ".join(f"{self._told('key', name, self.kinds[name])} AS {quoted(name)}" for name in self.key)
        same = " AND ".join(f"n.{quoted(name)} = k.{quoted(name)}" for name in self.key)
        return f"FROM {self.now} AS n ANTI JOIN (SELECT DISTINCT {keys} FROM {self.raw} WHERE {where}) AS k ON {same}"

    def changes(self) -> str:
        """A row a change: `gtid`, `ts`, `op`, `key`, the columns that `changed`, `before` and `after` as structs. A
        truncation is one, though each partition of its topic has it."""
        images = [
            f"CASE WHEN {name} IS NOT NULL THEN struct_pack("
            + ", ".join(f"{quoted(c)} := {self._value(name, c)}" for c in self.kinds)
            + f") END AS {name}"
            for name in ("before", "after")
        ]
        pairs = [(literal(name), f"before.{quoted(name)}", f"after.{quoted(name)}") for name in self.kinds]
        differ = ", ".join(f"CASE WHEN {a} IS DISTINCT FROM {b} THEN {name} END" for name, a, b in pairs)
        told = f"gtid, ts, op, key, _seq, {', '.join(images)} FROM {self.raw}"
        inner = f"SELECT {told} WHERE op <> 't' UNION ALL SELECT DISTINCT ON (_seq) {told} WHERE op = 't'"
        changed = f"list_filter([{differ}], lambda x: x IS NOT NULL) AS changed"
        return f"SELECT gtid, ts, op, key, {changed}, before, after FROM ({inner}) ORDER BY _seq"

    def history(self) -> str:
        """A row a version, with `valid_from`, `valid_to` and `gtid`; a table that has such a column itself makes ours
        `_valid_from`."""
        since, until, gtid = (quoted(names.free(name, {*map(str.lower, self.kinds)})) for name in VERSION)
        cut = f"SELECT min(t.counted) FROM {self.raw} t WHERE t.op = 't' AND t._seq > r._seq"
        over = "CASE WHEN part_ended IS NOT NULL THEN greatest(part_ended, counted) END"
        ends = f"least(lead(counted) OVER w, ({cut}), {over})"
        rows = (
            f"SELECT *, row_number() OVER w AS n, {ends} AS ended FROM {self.raw} r WHERE op <> 't' "
            "WINDOW w AS (PARTITION BY key, part ORDER BY _seq)"
        )
        last = sum(one.ends for one in self.broken)  # of which the present rows are
        none, untouched = "CAST(NULL AS TIMESTAMPTZ)", self._untouched(f"op <> 't' AND part = {last}")
        return (
            f"WITH numbered AS ({rows}) "
            f"SELECT {self._row('after')}, counted AS {since}, ended AS {until}, gtid AS {gtid} "
            "FROM numbered WHERE op <> 'd' "
            f"UNION ALL SELECT {self._row('before')}, {none}, counted, NULL FROM numbered "
            "WHERE n = 1 AND before IS NOT NULL "
            f"UNION ALL SELECT {self._columns()}, {none}, {none}, NULL {untouched}"
        )

    def as_of(self, began: datetime | None, no_past: str | None = None) -> str:
        """The rows as of the parameter MOMENT. `began`: when the history begins. `no_past`: why `now` is not what the
        changes say, behind the table's name."""
        at = f"CAST({MOMENT} AS TIMESTAMPTZ)"
        later = f"op <> 't' AND counted > {at}"
        refused = " ".join(f"WHEN {case} THEN error({told})" for case, told in self._refused(at, began, no_past))
        first = f"SELECT *, row_number() OVER (PARTITION BY key ORDER BY _seq) AS n FROM {self.raw} WHERE {later}"
        return (
            f"SELECT * FROM (SELECT {self._columns()} {self._untouched(later)} "
            f"UNION ALL SELECT {self._row('before')} FROM ({first}) WHERE n = 1 AND before IS NOT NULL) "
            f"WHERE (SELECT CASE {refused} ELSE true END)"
        )

    def _refused(self, at: str, began: datetime | None, no_past: str | None) -> Iterator[tuple[str, str]]:
        """When, and with what words."""
        text = f"trim(CAST({MOMENT} AS VARCHAR))"
        fix = literal(" has no time zone: write one behind the time of day, such as 2026-11-22 10:42:00+00")
        unzoned = f"{literal(f'{self.name} as of ')} || {text} || {fix}"
        yield f"NOT regexp_matches({text}, {literal(ZONED)})", unzoned
        if no_past:
            yield "true", literal(f"{self.name} {no_past}")
        early = literal(f"the history of {self.name} begins {began.isoformat() if began else 'with the next change'}")
        yield f"{at} < TIMESTAMPTZ {literal(began.isoformat())}" if began else "true", early
        first = f"FROM {self.raw} WHERE ts > {at} ORDER BY _seq LIMIT 1"
        ahead = literal(f"{self.name}: the source's clock was ahead: ")
        told = f"(SELECT {ahead} || coalesce(gtid, 'a change') || ' says that it was committed at ' || ts {first})"
        yield f"(SELECT ts > now() + INTERVAL 1 DAY {first})", told
        cut = literal(f"{self.name} was truncated after that time: which rows it had is not in the changes")
        yield f"EXISTS (SELECT 1 FROM {self.raw} WHERE op = 't' AND counted > {at})", cut


def behind(place: Place) -> str:
    """Whether a change stands at the place or behind it."""
    epoch, file, pos = (f"_seq['{name}']" for name in ("epoch", "file", "pos"))
    e, f, p = place
    return f"({epoch} > {e} OR {epoch} = {e} AND ({file} > {f} OR {file} = {f} AND {pos} >= {p}))"


def parts(broken: Sequence[Break], ended: Sequence[datetime | None]) -> str:
    """The columns `part` and `part_ended` of changes. `ended`: of each of the breaks that ends a part."""
    ends = [one for one in broken if one.ends]
    numbers = " + ".join(f"{behind(one.seq)}::INT" for one in ends) or "0"
    cases = "".join(
        f" WHEN NOT {behind(one.seq)} THEN {f'TIMESTAMPTZ {literal(at.isoformat())}' if at else 'NULL'}"
        for one, at in zip(ends, ended, strict=True)
    )
    return f"{numbers} AS part, CAST({f'CASE{cases} END' if cases else 'NULL'} AS TIMESTAMPTZ) AS part_ended"


def leaving(since: datetime, gone: Sequence[int] | None) -> str:
    """Which changes a maintenance removes, or has removed: facts of kept_history.Kept."""
    older = f"ts < TIMESTAMPTZ {literal(since.isoformat())}"
    if gone is None:
        return older
    last = ", ".join(f"{literal(name)}: {n}::BIGINT" for name, n in zip(FIELDS, gone, strict=True))
    return f"{older} AND _seq <= {{{last}}}"
