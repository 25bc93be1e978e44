from __future__ import annotations

import pytest

from contract.checkpoint import FORMAT, JOINED, KEPT, Checkpoint, CheckpointFormatError
from contract.pipeline import Tables
from contract.shown_by import Rule
from tests.checkpoints import checkpoint

ONE = checkpoint()


def test_it_reads_what_it_writes() -> None:
    assert Checkpoint.read(ONE.model_dump_json()) == ONE


def test_a_newer_format_is_refused_with_the_next_step() -> None:
    newer = ONE.model_copy(update={"format": FORMAT + 1}).model_dump_json()
    with pytest.raises(CheckpointFormatError, match="upgrade Headrace"):
        Checkpoint.read(newer)


def test_what_is_no_checkpoint_is_an_error() -> None:
    with pytest.raises(ValueError, match="pipeline"):
        Checkpoint.read(b"{}")


def test_the_greatest_is_by_epoch_then_file_number_then_position() -> None:
    def at(epoch: int, file: str, pos: int, written_at: int = 1) -> Checkpoint:
        return checkpoint(epoch=epoch, file=file, pos=pos, written_at=written_at)

    assert Checkpoint.greatest([at(0, "b.1000000", 4), at(0, "b.999999", 900)]) == at(0, "b.1000000", 4)
    assert Checkpoint.greatest([at(1, "b.000001", 4), at(0, "b.000009", 9)]) == at(1, "b.000001", 4)
    assert Checkpoint.greatest([at(0, "b.000001", 9), at(0, "b.000001", 4)]) == at(0, "b.000001", 9)
    assert Checkpoint.greatest([at(0, "b.000001", 9), at(0, "b.000001", 9, 2)]) == at(0, "b.000001", 9, 2)
    assert Checkpoint.greatest([]) is None


def test_an_open_xa_transaction_is_no_part_of_the_set_and_nothing_that_is_missing() -> None:
    uuid = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
    open_xa = ONE.model_copy(update={"gtid_set": f"{uuid}:1-4:6-9", "seen_set": f"{uuid}:1-9"})
    assert open_xa.covers(f"{uuid}:1-9")
    assert not open_xa.covers(f"{uuid}:1-10")
    ended = open_xa.model_copy(update={"seen_set": ""})
    assert ended.covers(f"{uuid}:7")
    assert not ended.covers(f"{uuid}:5")
    assert ended.covers("")


def test_it_says_which_tables_are_followed_from_it_on() -> None:
    one = Checkpoint.read(
        ONE.model_copy(update={"tables": Tables(include=("shop.*",), exclude=("shop.b",))}).model_dump_json()
    )
    assert one.follows("shop", "a")
    assert not one.follows("shop", "b")
    assert not one.follows("other", "a")


def test_one_of_a_version_that_did_not_say_follows_all() -> None:
    assert Checkpoint.read(ONE.model_dump_json(exclude={"tables"})).follows("shop", "a")


def test_since_when_a_table_is_followed() -> None:
    def at(pos: int) -> Checkpoint:
        return last.model_copy(update={"pos": pos})

    shop = Tables(include=("shop.*",))
    last = ONE.following(shop)
    assert last.earlier == ()  # a version that did not say is taken to have followed all
    last = at(10).following(shop)
    last = at(20).following(Tables(include=("shop.*",), exclude=("shop.b",)))
    assert last.since("shop", "b") == last.place
    last = at(30).following(Tables(include=("shop.*", "other.*")))
    last = Checkpoint.read(at(40).model_dump_json())
    assert last.since("shop", "a") is None
    assert last.since("shop", "b") == (0, 1, 30)
    assert last.since("other", "a") == (0, 1, 30)
    for n in range(50, 50 + 2 * KEPT, 2):  # there and back again is one list more, however often
        last = at(n).following(shop)
        last = at(n + 1).following(Tables(include=("shop.*",), exclude=("shop.b",)))
    last = at(49 + 2 * KEPT).following(shop)
    assert last.since("other", "a") == last.place
    last = at(50 + 2 * KEPT).following(Tables(include=("shop.*", "other.*")))
    assert len(last.earlier) == 2
    assert (last.since("shop", "b"), last.since("shop", "a")) == ((0, 1, 49 + 2 * KEPT), None)
    assert last.since("other", "a") == (0, 1, 50 + 2 * KEPT)
    for n in range(200, 200 + 2 * KEPT):
        last = at(n).following(Tables(include=("shop.*", f"new.t{n}")))
    assert len(last.earlier) == KEPT
    assert last.since("shop", "a") is None


def test_a_move_of_the_stream_is_known_apart_from_other_lists_of_tables() -> None:
    listed = ONE.following(Tables(include=("shop.*",))).following(Tables(include=("*.*",)))
    assert listed.all_until is None
    moved = listed.without_snapshots((0, 1, 90)).without_snapshots((0, 1, 70))
    assert moved.following(Tables(include=("crm.*",))).all_until == (0, 1, 90)


def test_a_table_that_joined_with_rows_of_before_wants_a_snapshot_from_there_on() -> None:
    known = ONE.joining({"shop.b": True, "shop.c": True, "other.d": True}, (0, 1, 100))
    known = Checkpoint.read(known.model_dump_json())
    assert known.unread("shop", "b", None) == (0, 1, 100)
    assert known.unread("shop", "b", [0, 1, 99, 5, 5]) == (0, 1, 100)
    assert known.unread("shop", "b", [0, 1, 100, -1, -1]) is None
    assert known.unread("shop", "a", None) is None
    assert known.joining({"shop.b": True}, (0, 1, 200)).unread("shop", "b", [0, 1, 150, -1, -1]) == (0, 1, 200)
    assert known.joining({"shop.b": False}, (0, 1, 200)).joined.keys() == {"shop.c", "other.d"}
    assert known.joining({"shop.*": False}, (0, 1, 200)).joined.keys() == {"other.d"}, "the whole database went"
    assert known.joining({"sho.*": False}, (0, 1, 200)) is known
    dotted = ONE.joining({"a.b.c": True}, (0, 1, 100))
    assert dotted.joining({"a.*": False}, (0, 1, 200)) is dotted, "it may be the table c of a.b"
    many = known.joining({f"shop.t{n}": True for n in range(JOINED)}, (0, 1, 300))
    assert len(many.joined) == JOINED
    assert "shop.b" not in many.joined, "the last ones"


def rule(tables: str, mark: str) -> Rule:
    return Rule(tables=(tables,), mark=mark)


def test_which_tables_were_shown_by_other_rules_and_until_when() -> None:
    def at(pos: int) -> Checkpoint:
        return last.model_copy(update={"pos": pos, "ts_ms": 100 * pos})

    def otherwise(table: str, pos: int, rules: str = "") -> int | None:
        return Checkpoint.read(last.model_dump_json()).shown_otherwise("shop", table, [0, 1, pos, -1, -1], rules)

    mask, key = rule("shop.a", "mask"), rule("shop.b", "key")
    last = ONE.showing("first", (mask,))
    assert last.other_rules == ()
    assert last.showing("first", (mask,)) is last
    last = at(20).showing("second", (mask, key))
    last = at(30).showing("third", (rule("shop.a", "another mask"), key))
    assert (otherwise("a", 10), otherwise("b", 10), otherwise("c", 10)) == (3000, 2000, None)
    assert (otherwise("a", 25), otherwise("b", 25)) == (3000, None)
    assert (otherwise("a", 30, "second"), otherwise("a", 30, "third")) == (3000, None), (
        "before the start, and behind it"
    )
    last = at(40).showing("second", (mask, key))  # back to what was, and yet other rows between
    assert otherwise("A", 25) == 4000
    assert (last.shown_since("shop", "A"), last.shown_since("shop", "c")) == ((0, 1, 40), None)
    last = at(50).showing("turned", (key, mask))
    assert otherwise("b", 45) == 5000, "of several rules the first one counts"
    for n in range(60, 60 + 2 * KEPT):
        last = at(n).showing(f"rules {n}", (mask, key, rule("shop.c", str(n))))
    assert len(last.other_rules) == KEPT
    assert otherwise("b", 45) is not None, "what is no longer told one by one is told together"


def test_of_a_version_that_did_not_tell_its_rules_one_by_one_all_tables_are_others() -> None:
    old = ONE.model_copy(update={"rules": "old"})
    assert old.showing("old", (rule("shop.a", "mask"),)).other_rules == ()
    assert old.showing("new", ()).shown_otherwise("shop", "z", [0, 1, 1], "") == 0


def test_what_a_file_says_of_cascades_is_nothing_that_a_checkpoint_notes() -> None:
    """Versions of before know no such key, and no other tables are followed by it."""
    tables = Tables(include=("shop.*",))
    listed = tables.model_copy(update={"cascades": ("shop.lines",)})
    begun = ONE.following(tables)
    assert begun.following(listed) == begun
    assert "cascades" not in begun.following(listed).model_dump_json()


def test_what_was_sent_is_more_than_what_a_start_goes_on_from_and_is_no_place() -> None:
    """Behind an open XA transaction; a stream by file and position has no GTID set, whatever it has seen."""
    assert checkpoint(gtid_set="0-1-99").sent == "0-1-99"
    assert checkpoint(gtid_set="0-1-99", seen_set="0-1-500").sent == "0-1-500"
    assert checkpoint(by_place=True, seen_set="file=binlog.000012,pos=4567").sent == ""
