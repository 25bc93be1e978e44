"""The stream goes on from another server, without servers: epochs, and a transaction that was sent in part."""

from __future__ import annotations

from typing import Any

import pytest

from contract.gtid import GtidSet
from streamer import stream as stream_module
from streamer.protocol.model import Commit, Item, OpenXa, RowsBatch
from streamer.seen import Seen
from streamer.source import Facts
from streamer.start.resume import anew
from tests.streamer.fakes import FILE, SHAPE, SOURCE, Binlog, Rig, rig, transaction
from tests.streamer.test_stream import ddl, lost, run_until_released, seqs


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_module, "RECONNECT_FIRST_SECONDS", 0.001)


def two_servers(first: list[list[Item]], second: list[list[Item]], breaks: list[int]) -> Rig:
    """The first server gives `breaks[0]` items, then the second goes on; later breaks are the second's."""
    binlog = Binlog(first, breaks=breaks, lost=lost)
    what = rig(binlog)
    start = binlog.connect

    def connect(gtids: GtidSet) -> Binlog:
        if binlog.starts and binlog.transactions is not second:
            binlog.transactions = second
            what.stream.delivery.empty()
            begun = what.watcher.checkpoint.model_copy(update={"epoch": 1, "pos": 4})
            what.watcher.begin_anew(begun)
            what.stream.delivery.settle()
            assert what.sink.checkpoints()[-1].epoch == 1, "it is durable before a record of it"
            what.stream.begin_anew(1)
        return start(gtids)

    what.stream._connect = connect
    return what


def identities(found: list[Any]) -> list[tuple[str, int, int]]:
    return [(event["source"]["gtid"], *event["source"]["seq"][3:]) for event in found]


def expected(*transactions: tuple[int, list[int]]) -> list[tuple[str, int, int]]:
    """`(number, sizes of its batches)`."""
    return [(f"{SOURCE}:{n}", e, r) for n, sizes in transactions for e, size in enumerate(sizes) for r in range(size)]


@pytest.mark.parametrize("at", range(1, 9))
def test_lost_anywhere_it_goes_on_in_a_new_epoch_and_repeats_nothing(at: int) -> None:
    same = [transaction(n, [2, 3]) for n in (1, 2, 3)]
    what = two_servers(same, [*same], [at])
    run_until_released(what, 3)
    events = what.sink.events()
    assert identities(events) == expected((1, [2, 3]), (2, [2, 3]), (3, [2, 3]))
    epochs = [seq[0] for seq in seqs(events)]
    assert epochs == sorted(epochs)
    assert seqs(events) == sorted(seqs(events))
    assert [c.place for c in what.sink.checkpoints()] == sorted(c.place for c in what.sink.checkpoints())
    assert what.sink.checkpoints()[-1].events == 15


def test_the_rest_of_a_transaction_is_lost_again_on_the_second_server() -> None:
    same = [transaction(1, [2, 3, 4, 5])]
    what = two_servers(same, [*same], [2, 1, 3])
    run_until_released(what, 1)
    assert identities(what.sink.events()) == expected((1, [2, 3, 4, 5]))


@pytest.mark.parametrize("divided", [[5, 4], [1, 1, 7], [9]], ids=["larger", "smaller", "one"])
def test_a_transaction_that_is_divided_otherwise_there_is_sent_again_as_a_whole(divided: list[int]) -> None:
    what = two_servers([transaction(1, [2, 3, 4])], [transaction(1, divided), transaction(2, [1])], [2])
    run_until_released(what, 2)
    events = what.sink.events()
    assert identities(events[:5]) == expected((1, [2, 3]))
    again = [event for event in events if event["source"]["seq"][0] == 1]
    assert identities(again) == expected((1, divided), (2, [1]))


def test_where_another_transaction_comes_before_it_there_it_is_sent_again_as_a_whole() -> None:
    what = two_servers([transaction(2, [2, 3])], [transaction(1, [1]), transaction(2, [2, 3])], [1])
    run_until_released(what, 2)
    again = [event for event in what.sink.events() if event["source"]["seq"][0] == 1]
    assert identities(again) == expected((1, [1]), (2, [2, 3]))


def test_ddl_of_a_transaction_that_comes_before_it_there_is_counted_for_itself() -> None:
    first = [ddl(2, "FROBNICATE")[0], *transaction(2, [1])]
    other = [ddl(1, "ONE")[0], ddl(1, "TWO")[0], ddl(1, "END")[1]]
    what = two_servers([first], [other, first], [1, 1])
    run_until_released(what, 2)
    statements = [told["statement"] for told in what.sink.values("sales.ddl")]
    assert statements == ["FROBNICATE", "ONE", "TWO", "FROBNICATE"]


def moving(number: int) -> list[Item]:
    """Three updates: of two primary keys, of none, of one."""
    gtid, pos = f"{SOURCE}:{number}", 1000 * number
    items: list[Item] = []
    for ordinal, ids in enumerate([[1, 2, 3, 4], [7, 7], [5, 6]]):
        rows, keys = [b'{"id":%d,"v":1}' % n for n in ids], [b'{"id":%d}' % n for n in ids]
        items.append(RowsBatch("u", SHAPE, rows, keys, 10**15, gtid, 1, 1, FILE, 1, pos + 100, pos, ordinal))
    return [*items, Commit(gtid, FILE, pos + 900, pos, number, 10**15, 1)]


@pytest.mark.parametrize("at", [1, 2, 3])
def test_rows_whose_primary_key_moves_are_not_sent_again(at: int) -> None:
    """Pitfall: a primary key update is two records; both are counted where the transaction goes on elsewhere."""
    what = two_servers([moving(1)], [moving(1)], [at])
    run_until_released(what, 1)
    assert identities(what.sink.events()) == expected((1, [4, 1, 2]))


def test_a_decoder_is_told_what_place_all_is_behind() -> None:
    same = [transaction(n, [2, 3]) for n in (1, 2, 3)]
    binlog = Binlog(same, breaks=[4, 3], lost=lost)
    what = rig(binlog)
    run_until_released(what, 3)
    assert binlog.behind == [(FILE, 4), (FILE, 1900), (FILE, 2900)]
    elsewhere = two_servers(same, [*same], [4])
    told: list[Any] = []
    start = elsewhere.stream._new_decoder
    elsewhere.stream._new_decoder = lambda behind: told.append(behind) or start(behind)  # type: ignore[func-returns-value]
    run_until_released(elsewhere, 3)
    assert told == [(FILE, 4), (FILE, 4)], "of another server's files nothing is known"


def test_what_was_delivered_before_the_start_is_known_by_its_gtid_on_another_server() -> None:
    """Its places are the first server's: below them the second one has transactions that nobody has seen."""
    what = two_servers([transaction(n, [1]) for n in (1, 2, 3)], [transaction(n, [1]) for n in (1, 2, 3, 4)], [1])
    what.stream.seen = Seen(GtidSet.parse(f"{SOURCE}:1-3"), (1, 9_000))
    run_until_released(what, 4)
    assert identities(what.sink.events()) == [(f"{SOURCE}:4", 0, 0)]


def test_killed_while_another_server_gives_again_what_was_delivered_it_comes_no_second_time() -> None:
    """An open XA transaction at the failover: all behind it is read again, in the second server's places."""
    opened = (OpenXa(f"{SOURCE}:1", ""),)
    binlog = [transaction(n, [1]) for n in (1, 2, 3, 4)]
    for one in binlog[:3]:
        one[-1].open_xa = opened  # type: ignore[union-attr]
    first = rig(Binlog([])).watcher.checkpoint
    failed_over = anew(
        first.model_copy(update={"seen_set": f"{SOURCE}:1-3"}),
        Facts(1, "other", "9.7.4", GtidSet(), GtidSet(), FILE, 4, FILE),
    )
    what = rig(Binlog(binlog[:2]), begin=failed_over)
    run_until_released(what, 2)
    killed = what.sink.checkpoints()[-1]
    assert (killed.gtid_set, killed.seen_set) == (f"{SOURCE}:2", f"{SOURCE}:1-3"), (
        "nothing of what was seen is forgotten"
    )
    what = rig(Binlog([binlog[0], *binlog[2:]]), begin=killed)
    run_until_released(what, 4)
    assert identities(what.sink.events()) == [(f"{SOURCE}:4", 0, 0)]
    last = what.sink.checkpoints()[-1]
    assert (last.gtid_set, last.seen_set, last.seen_elsewhere) == (f"{SOURCE}:1-4", "", False)
