"""MySQL's GTIDs as values: sets of `uuid:n` and `uuid:tag:n`, kept as disjoint intervals per source.

Source: MySQL reference manual, "GTID Format and Storage" and "GTID Sets".
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
TAG = re.compile(r"[a-z_][a-z0-9_]{0,31}")
FAR = 1 << 128  # beyond every number
Interval = tuple[int, int]  # first and last, both inside


class GtidSet:
    """A mutable set of transactions. Keys are `uuid` or `uuid:tag`, values sorted disjoint intervals."""

    __slots__ = ("intervals",)

    def __init__(self) -> None:
        self.intervals: dict[str, list[Interval]] = {}

    @classmethod
    def parse(cls, text: str) -> GtidSet:
        """`uuid:1-5:7,uuid:tag:1-3`; blanks and newlines are allowed. Raises ValueError."""
        gtids = cls()
        for part in filter(None, "".join(text.split()).lower().split(",")):
            gtids._parse_source(part)
        return gtids

    def _parse_source(self, part: str) -> None:
        uuid, *rest = part.split(":")
        if not UUID.fullmatch(uuid) or not rest:
            raise ValueError(f"{part!r} is no GTID: uuid:n, uuid:n-m or uuid:tag:n is expected")
        source = uuid
        for item in rest:
            if TAG.fullmatch(item):
                source = f"{uuid}:{item}"
                continue
            first, _, last = item.partition("-")
            if not (first.isdigit() and (last or first).isdigit() and 0 < int(first) <= int(last or first)):
                raise ValueError(f"{item!r} in {part!r} is no interval of transaction numbers")
            self.add_range(source, int(first), int(last or first))

    def add(self, gtid: str) -> None:
        """Adds one transaction, `uuid:n` or `uuid:tag:n`."""
        source, _, number = gtid.rpartition(":")
        self.add_range(source, int(number), int(number))

    def add_range(self, source: str, first: int, last: int) -> None:
        spans = self.intervals.setdefault(source, [])
        if spans and spans[-1][1] + 1 == first:  # by far the most frequent: the next transaction
            spans[-1] = (spans[-1][0], last)
            return
        at = bisect_right(spans, (first,))
        if at and spans[at - 1][1] + 1 >= first:
            at -= 1
        end = at
        while end < len(spans) and spans[end][0] <= last + 1:
            first, last = min(first, spans[end][0]), max(last, spans[end][1])
            end += 1
        spans[at:end] = [(first, last)]

    def add_all(self, gtids: Iterable[str]) -> None:
        """Adds transactions that mostly follow one another: as ranges."""
        known, first, last = "", 0, -1
        for gtid in gtids:
            source, _, text = gtid.rpartition(":")
            number = int(text)
            if number != last + 1 or source != known:
                if known:
                    self.add_range(known, first, last)
                known, first = source, number
            last = number
        if known:
            self.add_range(known, first, last)

    def contains(self, gtid: str) -> bool:
        source, _, number = gtid.rpartition(":")
        return self._covers(source, (int(number), int(number)))

    def _covers(self, source: str, span: Interval) -> bool:
        spans = self.intervals.get(source, [])
        at = bisect_right(spans, (span[0], FAR)) - 1
        return at >= 0 and spans[at][0] <= span[0] and span[1] <= spans[at][1]

    def issuperset(self, other: GtidSet) -> bool:
        return all(self._covers(source, span) for source, spans in other.intervals.items() for span in spans)

    def union(self, other: GtidSet) -> GtidSet:
        result = self.copy()
        for source, first, last in other:
            result.add_range(source, first, last)
        return result

    def subtract(self, other: GtidSet) -> GtidSet:
        result = GtidSet()
        for source, first, last in self:
            for low, high in other.intervals.get(source, []):
                if high < first or low > last:
                    continue
                if low > first:
                    result.add_range(source, first, low - 1)
                first = high + 1
            if first <= last:
                result.add_range(source, first, last)
        return result

    def without(self, left_out: Sequence[tuple[str, str]]) -> GtidSet:
        """Less these transactions, each with the one before it in its domain (which MariaDB's sets alone need)."""
        return self.subtract(GtidSet.parse(",".join(gtid for gtid, _ in left_out)))

    def copy(self) -> GtidSet:
        result = GtidSet()
        result.intervals = {source: list(spans) for source, spans in self.intervals.items()}
        return result

    def __iter__(self) -> Iterator[tuple[str, int, int]]:
        for source, spans in self.intervals.items():
            for first, last in spans:
                yield source, first, last

    def __bool__(self) -> bool:
        return any(self.intervals.values())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GtidSet) and str(self) == str(other)

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        """The server's own spelling: sources in order, a uuid's tags behind its untagged part."""
        by_uuid: dict[str, list[str]] = {}
        for source in sorted(filter(self.intervals.get, self.intervals)):
            uuid, _, tag = source.partition(":")
            spans = [f"{a}" if a == b else f"{a}-{b}" for a, b in self.intervals[source]]
            by_uuid.setdefault(uuid, []).extend([tag, *spans] if tag else spans)
        return ",".join(":".join([uuid, *parts]) for uuid, parts in by_uuid.items())

    def __repr__(self) -> str:
        return f"GtidSet({str(self)!r})"
