"""Which event goes to which handler, and which may follow which."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from streamer.protocol import events as ev
from streamer.protocol import refusals
from streamer.protocol.model import Item
from streamer.protocol.packets import Header

Handler = Callable[[bytes, int, int, Header], Iterable[Item]]


class Transitions(dict[tuple[str, str], str]):
    def __missing__(self, pair: tuple[str, str]) -> str:
        raise refusals.out_of_order(pair[1], pair[0])


# What may follow what; the only place that says so.
BETWEEN, STARTED, OPEN = "between transactions", "behind a GTID", "inside a transaction"
NEXT = Transitions(
    {
        (BETWEEN, "GTID"): STARTED,
        (STARTED, "BEGIN"): OPEN,
        (STARTED, "end"): BETWEEN,
        (OPEN, "rows"): OPEN,
        (OPEN, "end"): BETWEEN,
    }
)


class Handlers(dict[int, Handler]):
    """By event type; one that is not known may be skipped where its flag says so, and is counted."""

    def __init__(self, ignored: Counter[str]) -> None:
        super().__init__()
        self._ignored = ignored

    def __missing__(self, kind: int) -> Handler:
        def skip(_d: bytes, _o: int, _end: int, header: Header) -> Iterable[Item]:
            if not header[ev.FLAGS] & ev.MAY_BE_IGNORED or kind in refusals.REASONS:
                raise refusals.event(kind)
            self._ignored[ev.name_of(kind)] += 1
            return ()

        return skip
