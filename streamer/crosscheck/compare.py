"""Two readers' steps, event by event: what differs, and whether a known defect of the reference explains it.

Both are read in step, one rows event at a time; where they part inside a transaction, the rest of it is passed by and
they meet again behind its end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from streamer.crosscheck.steps import End, Image, Rows, Statement, Step
from streamer.crosscheck.values import verdict
from streamer.protocol.mariadb_tables import HASH

SHOWN = 100  # unexplained differences that are kept in full


@dataclass(frozen=True)
class Difference:
    """`where`: a column, a table or the transaction. `ours`, `theirs`: the values, for who asks to see them."""

    gtid: str
    where: str
    what: str
    ours: str = ""
    theirs: str = ""


@dataclass
class Report:
    """`known`: by defect and place. `unexplained`: the first ones; `unknown` counts them all."""

    transactions: int = 0
    events: int = 0
    values: int = 0
    known: Counter[tuple[str, str]] = field(default_factory=Counter)
    unknown: int = 0
    unexplained: list[Difference] = field(default_factory=list)


class Comparison:
    def __init__(self, ours: Iterator[Step], theirs: Iterator[Step]) -> None:
        self._ours, self._theirs = ours, theirs
        self._found: list[Difference] = []  # of this transaction; its GTID and defects are known at its end
        self.report = Report()

    def run(self) -> Report:
        """Until the end of ours. Raises what reading ours raises."""
        for one in self._ours:
            other = next(self._theirs, None)
            if other is None:
                self._differs("the stretch", "mysql-replication ended before its end")
                self._settle(End("", None), End("", None))
                break
            self._pair(one, other)
        return self.report

    def _pair(self, one: Step, other: Step) -> None:
        if isinstance(one, End) and isinstance(other, End):
            self._ends(one, other)
        elif isinstance(one, Rows) and isinstance(other, Rows) and _same_event(one, other):
            self._rows(one, other)
        elif isinstance(one, Statement) and isinstance(other, Statement):
            self.report.events += 1
            if one.text != other.text:
                self._differs("the statement", "not the same text", one.text, other.text)
        else:
            self._differs("the transaction", f"{_named(one)} meets {_named(other)}")
            self._ends(_end(one, self._ours), _end(other, self._theirs))

    def _ends(self, one: End, other: End) -> None:
        if other.gtid and one.gtid != other.gtid:
            self._differs("the transaction", "not the same GTID", one.gtid, other.gtid)
        elif not other.gtid and "tagged GTID" in other.lacks:
            self.report.known["tagged GTID", "the transaction"] += 1
        if one.xid != other.xid and other.xid is not None:
            self._differs("the transaction", "not the same XID", str(one.xid), str(other.xid))
        self._settle(one, other)

    def _settle(self, one: End, other: End) -> None:
        """What differs in a transaction that the reference cannot read is that defect's."""
        self.report.transactions += 1
        defects = sorted(other.lacks - {"tagged GTID"})
        if defects and self._found:
            self.report.known[defects[0], "the transaction"] += 1
        elif self._found:
            self.report.unknown += len(self._found)
            room = SHOWN - len(self.report.unexplained)
            kept = self._found[: max(room, 0)]
            self.report.unexplained += [Difference(one.gtid, d.where, d.what, d.ours, d.theirs) for d in kept]
        self._found = []

    def _rows(self, one: Rows, other: Rows) -> None:
        self.report.events += 1
        if other.failed:
            self.report.known["what it fails on", f"{one.table} ({other.failed})"] += 1
            return
        if one.key != other.key:
            self._differs(one.table, "not the same primary key", str(one.key), str(other.key))
        if len(one.images) != len(other.images):
            self._differs(one.table, "not as many rows", str(len(one.images)), str(len(other.images)))
        for image, reference in zip(one.images, other.images, strict=False):
            self._image(one, image, reference)

    def _image(self, rows: Rows, image: Image, reference: Image) -> None:
        assert rows.columns is not None
        # MariaDB's hidden columns are in the binlog, and in no query's answer.
        reference = {name: value for name, value in reference.items() if name in image or not HASH.fullmatch(name)}
        if list(image) != list(reference):
            self._differs(rows.table, "not the same columns", str(list(image)), str(list(reference)))
            return
        self.report.values += len(image)
        for name, value in image.items():
            defect = verdict(rows.columns[name], value, reference[name])
            if defect is None:
                continue
            where = f"{rows.table}.{name}"
            if defect:
                self.report.known[defect, where] += 1
            else:
                self._differs(where, "not the same value", repr(value), repr(reference[name]))

    def _differs(self, where: str, what: str, ours: str = "", theirs: str = "") -> None:
        self._found.append(Difference("", where, what, ours, theirs))


def _same_event(one: Rows, other: Rows) -> bool:
    return (one.op, one.table) == (other.op, other.table)


def _named(step: Step) -> str:
    if isinstance(step, Rows):
        return f"a {step.op} of {step.table}"
    return "a statement" if isinstance(step, Statement) else "the end"


def _end(step: Step, rest: Iterator[Step]) -> End:
    """The end of the step's transaction."""
    while not isinstance(step, End):
        step = next(rest, End("", None))
    return step
