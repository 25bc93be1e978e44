"""A oneshot run ends behind all that the server had when it began, when all of that is delivered and checkpointed."""

from __future__ import annotations

import pytest

from contract.gtid import GtidSet
from contract.gtid_mariadb import MariaGtids
from contract.gtid_places import UpTo
from streamer import stream as stream_module
from streamer.delivery_errors import WrongServerError
from streamer.errors import ConnectionLostError
from streamer.flavors.port import Facts
from streamer.goal import Goal, Reached
from streamer.protocol.model import Commit
from tests.streamer.fakes import FILE, SOURCE, Binlog, Rig, rig, transaction

TEN = [transaction(number, [2, 1]) for number in range(1, 11)]


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_module, "RECONNECT_FIRST_SECONDS", 0.001)


def oneshot(binlog: Binlog, until: int, done: str = "") -> Rig:
    made = rig(binlog)
    made.stream.goal = Goal(GtidSet.parse(f"{SOURCE}:1-{until}"), GtidSet.parse(done))
    return made


def facts(executed: str, replicates: bool | None) -> Facts:
    return Facts(2, "other", "9.7", GtidSet(), GtidSet.parse(executed), FILE, 4, FILE, replicates)


def end(gtid: str) -> Commit:
    return Commit(gtid, FILE, 100, 4, None, 0, 1)


def test_it_ends_when_the_last_wanted_transaction_is_delivered_and_checkpointed() -> None:
    made = oneshot(Binlog(TEN), until=7)
    made.stream.run()
    assert len(made.sink.events()) == 7 * 3
    assert made.checkpoints.durable is not None
    assert made.checkpoints.durable.gtid_set == f"{SOURCE}:1-7"


def test_a_connection_that_is_lost_on_the_way_ends_nothing() -> None:
    lost = ConnectionLostError("reading", "the binlog", "cut", "It is opened again.")
    made = oneshot(Binlog(TEN, breaks=[5, 2, 9], lost=lambda: lost), until=10)
    made.stream.run()
    assert len(made.sink.events()) == 30
    assert str(made.ledger.released) == f"{SOURCE}:1-10"


def test_nothing_to_do_opens_no_connection() -> None:
    binlog = Binlog(TEN)
    oneshot(binlog, until=4, done=f"{SOURCE}:1-5").stream.run()
    assert binlog.starts == []


def test_on_mariadb_a_transaction_that_is_read_again_sets_nothing_back() -> None:
    goal = Goal(MariaGtids.parse("0-1-9,1-1-3"), MariaGtids.parse("0-1-9,1-1-1"))
    goal.passed(end("0-1-4"))
    goal.passed(end("1-1-2"))
    with pytest.raises(Reached):
        goal.passed(end("1-1-3"))


def test_a_server_that_never_gets_what_is_wanted_ends_the_run() -> None:
    goal = Goal(GtidSet.parse(f"{SOURCE}:1-9"), GtidSet())
    goal.elsewhere(facts(f"{SOURCE}:1-9", False), "db2:3306")
    goal.elsewhere(facts(f"{SOURCE}:1-7", None), "db2:3306")  # it may replicate: it is waited for
    with pytest.raises(WrongServerError, match=f"{SOURCE}:8-9"):
        goal.elsewhere(facts(f"{SOURCE}:1-7", False), "db2:3306")


def test_without_gtids_the_place_tells_also_behind_a_rotation() -> None:
    goal = Goal(UpTo.place("binlog.000003", 157), UpTo.place("binlog.000002", 300))
    assert not goal.reached
    goal.passed(Commit("file=binlog.000002,pos=300", "binlog.000002", 900, 300, None, 0, 1))
    goal.rested("binlog.000003", 4)
    with pytest.raises(Reached):
        goal.rested("binlog.000003", 157)
