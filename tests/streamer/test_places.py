"""Pitfall "Reset or restored server": a binlog that was begun anew gives places that are less than those read before.

In one epoch what comes would sort before older changes, so another one begins, in place of the first of it.
"""

from __future__ import annotations

import pytest

from contract.gtid import GtidSet
from contract.gtid_mariadb import MariaGtids
from streamer import stream as stream_module
from streamer.errors import BegunAnewError, CorruptEventError
from streamer.places import Behind
from streamer.protocol import refusals
from streamer.protocol.model import Commit, Ddl, Item, RowsBatch
from streamer.seen import Seen
from tests.streamer.fakes import FILE, SOURCE, Binlog, Rig, rig, transaction
from tests.streamer.test_stream import ddl, lost, run_until_released, seqs

GIB = 1 << 30


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_module, "RECONNECT_FIRST_SECONDS", 0.001)


def at(pos: int, items: list[Item]) -> list[Item]:
    """The transaction as it stands there in another binlog."""
    for item in items:
        if isinstance(item, Ddl):
            item.pos = pos
        else:
            item.tx_pos = pos
        if isinstance(item, RowsBatch):
            item.pos = pos + 50
        elif isinstance(item, Commit):
            item.pos = pos + 100
    return items


def reset(before: list[list[Item]], behind: list[list[Item]], items: int | None = None) -> Rig:
    """A server that gives so many items, or all; its binlog is another one then, its GTIDs are not."""
    every = sum(map(len, before))
    binlog = Binlog([*before, transaction(99, [1])], breaks=[every if items is None else items], lost=lost)
    what = rig(binlog)
    begin = binlog.connect

    def connect(gtids: GtidSet) -> Binlog:
        """As the composition root does it."""
        if binlog.starts:
            binlog.transactions = behind
        if what.stream.begun_anew:
            epoch = what.watcher.checkpoint.epoch + 1
            what.stream.delivery.empty()
            what.watcher.begin_anew(what.watcher.checkpoint.model_copy(update={"epoch": epoch, "pos": 4}))
            what.stream.delivery.settle()
            what.stream.begin_anew(epoch)
        return begin(gtids)

    what.stream._connect = connect
    return what


def epochs(what: Rig) -> dict[int, list[int]]:
    """By epoch the numbers of the transactions whose rows were sent."""
    found: dict[int, list[int]] = {}
    for event in what.sink.events():
        number = int(event["source"]["gtid"].rpartition(":")[2])
        if number not in found.setdefault(event["source"]["seq"][0], []):
            found[event["source"]["seq"][0]].append(number)
    return found


OLD = [transaction(n, [2]) for n in (1, 2, 3)]


@pytest.mark.parametrize("rows", [[1], []], ids=["rows", "none of the pipeline's"])
def test_the_first_transaction_that_stands_before_what_was_read_begins_an_epoch(rows: list[int]) -> None:
    new = [at(200, transaction(4, rows)), at(300, transaction(5, [1])), at(9_000, transaction(6, [1]))]
    what = reset([*OLD], new)
    run_until_released(what, 6)
    assert epochs(what) == {0: [1, 2, 3], 1: [4, 5, 6] if rows else [5, 6]}
    assert seqs(what.sink.events()) == sorted(seqs(what.sink.events()))
    places = [checkpoint.place for checkpoint in what.sink.checkpoints()]
    assert places == sorted(places)
    assert what.stream.begun_anew == ""


def test_a_statement_tells_it_too() -> None:
    what = reset([*OLD], [at(200, ddl(4, "TRUNCATE t")), at(300, transaction(5, [1]))])
    run_until_released(what, 5)
    assert epochs(what) == {0: [1, 2, 3], 1: [4, 5]}


def test_a_transaction_that_was_sent_in_part_is_not_repeated() -> None:
    before = [*OLD, transaction(4, [2, 2])]
    what = reset(before, [at(200, transaction(4, [2, 2])), at(400, transaction(5, [1]))], 7)
    run_until_released(what, 5)
    assert epochs(what) == {0: [1, 2, 3, 4], 1: [4, 5]}
    assert len(what.sink.events()) == 6 + 4 + 1


@pytest.mark.parametrize("pos", [3_900, 5_000, 2 * GIB])
def test_a_lost_connection_begins_no_epoch(pos: int) -> None:
    what = reset([*OLD], [*OLD, at(pos, transaction(4, [1]))])
    run_until_released(what, 4)
    assert epochs(what) == {0: [1, 2, 3, 4]}


@pytest.mark.parametrize(
    ("behind", "file", "pos", "begun"),
    [
        ((FILE, 3_900), "binlog.000002", 4, False),
        (("binlog.000009", 3_900), FILE, 9_000, True),
        ((FILE, 3 * GIB), FILE, 3 * GIB, False),
        ((FILE, 4 * GIB - 50), FILE, 4 * GIB + 20, False),  # a few bytes on
        ((FILE, 700), FILE, 4 * GIB + 300, True),  # 32 bits that went back
        ((FILE, 5 * GIB), FILE, 8 * GIB + 300, True),
        ((FILE, 5 * GIB), FILE, 5 * GIB + 300, False),
        ((FILE, 4), FILE, 3 * GIB, False),  # a start that passes by what it does not want
        ((FILE, 4), FILE, 5 * GIB, False),
    ],
)
def test_places(behind: tuple[str, int], file: str, pos: int, begun: bool) -> None:
    item = Commit(f"{SOURCE}:1", file, pos + 100, pos, None, 0, 1)
    place = Behind(behind)
    if begun:
        with pytest.raises(
            BegunAnewError, match=rf"{SOURCE}:1 at {file}:{pos % (4 * GIB)}, though {behind[0]}:{behind[1]}"
        ):
            next(place.first(iter([item])))
    else:
        assert next(place.first(iter([item]))) is item
    assert place.holds is not begun


def test_a_binlog_that_fits_no_epoch_ends_the_stream() -> None:
    what = rig(Binlog([transaction(1, [1])]))
    error = refusals.begun_anew("it gives what it gave")
    for _ in range(3):
        what.stream._begun_again(error)
        assert what.stream.begun_anew
    with pytest.raises(CorruptEventError, match=r"after each new beginning.*mysqlbinlog") as caught:
        what.stream._begun_again(error)
    assert not caught.value.retryable
    what.stream.transactions += 1
    what.stream._begun_again(error)


def test_nothing_is_asked_where_no_place_is_known() -> None:
    assert Behind(None).holds


class TestWhatIsReadAgainForAnOpenXa:
    """On MySQL the GTIDs tell; on MariaDB, where a domain's numbers may fall, its place as long as it holds."""

    def test_on_mysql_what_was_not_seen_is_not_passed_by(self) -> None:
        seen = Seen(GtidSet.parse(f"{SOURCE}:1-5"), (1, 1_000))
        assert seen.has(1, 500, f"{SOURCE}:4")
        assert seen.has(2, 500, f"{SOURCE}:5"), "it was delivered, wherever it stands by now"
        assert not seen.has(1, 1_000, f"{SOURCE}:6")
        with pytest.raises(BegunAnewError, match=f"{SOURCE}:7 was not read"):
            seen.has(1, 999, f"{SOURCE}:7")

    @pytest.mark.parametrize(("last", "begun"), [("0-2-50", False), ("0-2-49", False), ("0-2-51", True)])
    def test_on_mariadb_the_last_before_the_place_is_one_that_was_seen(self, last: str, begun: bool) -> None:
        seen = Seen(mariadb("0-2-50,7-1-3"), (1, 1_000))
        assert seen.has(1, 400, "0-1-100"), "a number that fell"
        if begun:  # before it is passed by: it would count as taken in
            with pytest.raises(BegunAnewError, match=f"{last} was not read"):
                seen.has(1, 500, last)
            return
        assert seen.has(1, 500, last)
        assert seen.has(1, 600, "7-1-3")
        assert not seen.has(1, 1_000, "0-2-52")

    def test_on_mariadb_another_servers_last_one_that_was_not_seen_is_found_at_the_place(self) -> None:
        seen = Seen(mariadb("0-2-50"), (1, 1_000))
        assert seen.has(1, 500, "0-3-51")
        with pytest.raises(BegunAnewError, match="0-3-51 was not read"):
            seen.has(1, 1_000, "0-2-52")

    def test_elsewhere_the_gtids_tell(self) -> None:
        seen = Seen(mariadb("0-2-50"), (1, 1_000)).elsewhere()
        assert seen.has(9, 9_000, "0-2-50")
        assert not seen.has(1, 10, "0-2-51")


def mariadb(text: str) -> MariaGtids:
    return MariaGtids.parse(text)
