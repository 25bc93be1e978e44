"""Pitfall "Reset or restored server": a dump that is open over a reset may wait in the old binlog for ever."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest

from contract.gtid import GtidSet
from contract.gtid_mariadb import MariaGtids
from contract.pipeline import Source
from streamer import stream as stream_module
from streamer.errors import ConnectionLostError, UnreachableError
from streamer.flavors.port import End, Facts
from streamer.resting import EVERY_SECONDS, IN_VAIN, Resting
from tests.streamer.fakes import FILE, SOURCE, Binlog, rig, transaction
from tests.streamer.test_stream import run_until_released

OTHER = "9f3a0a6e-0000-11f0-9c3a-0242ac110002"
READ = (FILE, 5000)


def source(**more: Any) -> Source:
    return Source.model_validate({"host": "h", "user": "u", "password": "p", "server_id": 7, **more})


def gtids(text: str) -> GtidSet:
    if not text or ":" in text:
        return GtidSet.parse(text)
    return MariaGtids.parse(text) if text.count("-") == 2 else GtidSet.parse(f"{SOURCE}:{text}")


def end(executed: str, pos: int = 5000, file: str = FILE, uuid: str = SOURCE) -> End:
    return End(uuid, file, pos, gtids(executed))


class Server:
    """`resting` asks it for the end of its binlog; `now` goes on with each question."""

    def __init__(self, executed: str) -> None:
        self.questions = 0
        self.says: End | Exception | None = None
        self.now = 0.0
        self.resting = Resting(self._answer)
        self.connect(executed)

    def connect(self, executed: str) -> None:
        facts = Facts(1, SOURCE, "9.7.0", GtidSet(), gtids(executed), FILE, 5000, FILE)
        self.resting.connected(source(), facts, self.now)

    def _answer(self, _: Source) -> End | None:
        self.questions += 1
        if isinstance(self.says, Exception):
            raise self.says
        return self.says

    def ask(self, says: End | Exception | None, taken: str, place: tuple[str, int] = READ) -> None:
        """One question and its answer."""
        self.says = says
        self.now += EVERY_SECONDS * IN_VAIN
        self.resting.look(self.now, place, lambda: gtids(taken))
        until = time.monotonic() + 10
        while self.resting._question is not None and time.monotonic() < until:
            self.resting.look(self.now, place, lambda: gtids(taken))
            time.sleep(0.001)


@pytest.mark.parametrize("one", [end("1-5"), end("1-5", uuid=OTHER, pos=4), end("1-5", 8000), None])
def test_a_server_that_rests_or_is_ahead_without_more_transactions_is_left_alone(one: End | None) -> None:
    server = Server("1-5")
    for _ in range(5):
        server.ask(one, "1-5")
    assert server.questions == 5


def test_a_server_that_cannot_be_asked_is_no_sign() -> None:
    server = Server("1-5")
    for _ in range(3):
        server.ask(UnreachableError("connect to", "h", "away", "Start it."), "1-5")
    assert server.questions == 3


@pytest.mark.parametrize(
    ("one", "told"),
    [
        (end("1-5", 158), f"ends at {FILE}:158 now, though {FILE}:5000 was read"),
        (end("1-9", 158), f"ends at {FILE}:158"),
        (end("", 9000), f"no longer has {SOURCE}:1-5"),
        (end("1-4", 9000), f"no longer has {SOURCE}:5"),
        (end(f"{OTHER}:1-8", 9000), f"no longer has {SOURCE}:1-5"),
        (end("0-1-5", 158), f"ends at {FILE}:158"),
    ],
)
def test_a_binlog_that_goes_back_is_another_one(one: End, told: str) -> None:
    taken = "0-1-5" if isinstance(one.executed, MariaGtids) else "1-5"
    with pytest.raises(ConnectionLostError, match=re.escape(told)) as found:
        Server(taken).ask(one, taken)
    assert found.value.retryable


def test_a_transaction_that_is_streamed_before_it_is_executed_is_no_sign() -> None:
    """MySQL commits behind the acknowledgement of a replica; the dump has it before."""
    server = Server("1-5")
    for _ in range(4):
        server.ask(end("1-5"), "1-6")
    server.ask(end("1-6"), "1-6")


def test_numbers_of_mariadb_that_fall_in_a_domain_are_no_sign() -> None:
    server = Server("0-1-100")
    for _ in range(3):
        server.ask(end("0-2-50"), "0-2-50")


def test_what_is_on_its_way_may_come_and_what_does_not_come_is_kept_back() -> None:
    """The new binlog has grown beyond the place in the old one, with the GTIDs of before."""
    server = Server("1-5")
    server.ask(end("1-7", 6000), "1-5")
    server.ask(end("1-9", 8000), "1-7", (FILE, 6000))  # late, but it comes
    server.ask(end("1-9", 8000), "1-9", (FILE, 8000))
    server.ask(end("1-10", 9000), "1-9", (FILE, 8000))
    with pytest.raises(ConnectionLostError, match=f"it has {SOURCE}:10, which did not come"):
        server.ask(end("1-11", 9900), "1-9", (FILE, 8000))


def test_a_server_that_passes_by_a_long_part_of_its_binlog_is_given_its_time() -> None:
    server = Server("1-5")
    for pos in range(5000, 9000, 1000):
        server.ask(end("1-7", 9000), "1-5", (FILE, pos))


def test_transactions_that_never_come_do_not_make_it_connect_all_the_time() -> None:
    server = Server("1-5")
    pauses = []
    for _ in range(8):
        server.ask(end("1-7", 9000), "1-5")
        with pytest.raises(ConnectionLostError):
            server.ask(end("1-7", 9000), "1-5")
        server.connect("1-7")
        pauses.append(server.resting._due - server.now)
    assert pauses[:3] == [20, 40, 80]
    assert pauses[-1] == EVERY_SECONDS * IN_VAIN
    server.ask(end("1-7", 9000), "1-7")
    server.connect("1-7")
    assert server.resting._due - server.now == EVERY_SECONDS


def test_how_often_it_is_asked() -> None:
    """Not more often than a source with short heartbeats tells of itself."""
    server = Server("1-5")
    server.says = end("1-5")
    for tick in range(1000):
        server.resting.look(tick / 10, READ, lambda: gtids("1-5"))
        while server.resting._question is not None and server.resting._question.open:
            time.sleep(0.001)
    assert server.questions in (9, 10)


def test_an_idle_stream_connects_again_where_the_binlog_is_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_module, "RECONNECT_FIRST_SECONDS", 0.001)
    binlog = Binlog([transaction(n, [1]) for n in (1, 2)])
    what, begin = rig(binlog), binlog.connect
    what.stream.resting = Resting(lambda server: end("1-3", 158))
    facts = Facts(1, SOURCE, "9.7.0", GtidSet(), gtids("1-2"), FILE, 4, FILE)

    def connect(start: GtidSet) -> Binlog:
        """The dump that is open gives nothing of the new binlog."""
        if binlog.starts:
            binlog.transactions, what.stream.resting = [transaction(3, [1])], None
        else:
            binlog.pos = 5000
            assert what.stream.resting is not None
            what.stream.resting.connected(source(heartbeat_seconds=0.5), facts, time.monotonic() - 10)
        return begin(start)

    what.stream._connect = connect
    run_until_released(what, 3)
    assert what.stream.reconnects == 1
    assert what.status.error is not None
    assert "RESET?" in what.status.error["message"]
