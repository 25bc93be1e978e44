"""What a move means for what was delivered, and for the lake."""

from __future__ import annotations

from typing import Any

import pytest

from contract.checkpoint import Checkpoint
from contract.gtid import GtidSet
from contract.gtid_places import UpTo
from contract.pipeline import Tables
from contract.start_at import Place
from streamer.delivery_errors import StartError
from streamer.errors import PurgedError
from streamer.seek import plan as plans
from streamer.seek.errors import SeekError
from streamer.source import Facts
from streamer.start.marks import Mark
from streamer.start.search import Found
from tests.streamer.fakes import FILE, SOURCE, pipeline

LAST = "binlog.000009"
FACTS = Facts(1, SOURCE, "9.7", GtidSet.parse(f"{SOURCE}:1-3"), GtidSet.parse(f"{SOURCE}:1-90"), LAST, 700, FILE)
STOOD = Checkpoint(
    pipeline="sales", connector_id="headrace-sales", server_id=1, server_uuid=SOURCE, epoch=2, file="binlog.000004",
    pos=400, gtid_set=f"{SOURCE}:1-50", ts_ms=5, events=70, written_at=6, tables=Tables(include=("shop.*",)),
)  # fmt: skip


def first_of(wanted: GtidSet) -> int:
    """Transaction n was committed at n seconds."""
    return 1000 * next(first for _, first, _ in wanted)


BEGINNING = Place(FILE, 4)


def planned(monkeypatch: pytest.MonkeyPatch, seen: str, place: Place = BEGINNING) -> Any:
    found = Found(GtidSet.parse(seen), place, "found")
    monkeypatch.setattr(plans.first_start, "find", lambda *_: found)
    monkeypatch.setattr(plans.first_start, "committed", lambda _, wanted, seen: first_of(wanted))
    return plans.plan(pipeline(), STOOD, FACTS, "earliest")


def test_back_is_a_new_epoch_in_which_a_snapshot_counts_when_all_was_sent_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = planned(monkeypatch, f"{SOURCE}:1-10", Place("binlog.000002", 99))
    assert (str(made.again), str(made.skipped)) == (f"{SOURCE}:11-50", "")
    place = made.checkpoint
    assert place.place == (3, 2, 99)
    assert place.place > STOOD.place
    assert (place.gtid_set, place.seen_set, place.events) == (f"{SOURCE}:1-10", "", 70)
    # A snapshot that begins before the present end of the binlog may meet changes that come again.
    assert place.since("shop", "t") == (3, 9, 700)
    assert made.snapshot_behind == f"{LAST}:700"


def test_other_tables_followed_on_the_way_back_shorten_no_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    back = planned(monkeypatch, f"{SOURCE}:1-10", Place("binlog.000002", 99)).checkpoint
    on_the_way = back.following(Tables(include=("other.*",))).model_copy(update={"pos": 200})
    assert on_the_way.following(Tables(include=("shop.*",))).since("shop", "t") == (3, 9, 700)


def test_what_waits_waits_since_the_first_of_it_was_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a pipeline that is paused would be told to be hardly behind."""
    assert planned(monkeypatch, f"{SOURCE}:1-10").checkpoint.ts_ms == 11_000
    assert planned(monkeypatch, f"{SOURCE}:1-80").checkpoint.ts_ms == 81_000
    assert planned(monkeypatch, f"{SOURCE}:1-90").checkpoint.ts_ms == STOOD.ts_ms, "nothing waits"


def test_forward_names_what_is_lost_and_wants_snapshots_from_there_on(monkeypatch: pytest.MonkeyPatch) -> None:
    made = planned(monkeypatch, f"{SOURCE}:1-80", Place("binlog.000008", 5))
    assert (str(made.again), str(made.skipped)) == ("", f"{SOURCE}:51-80")
    assert made.checkpoint.since("shop", "t") == (3, 8, 5) == made.checkpoint.place


def test_open_xa_transactions_were_delivered_as_far_as_they_were_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    stood = STOOD.model_copy(update={"gtid_set": f"{SOURCE}:1-40", "seen_set": f"{SOURCE}:1-50"})
    monkeypatch.setattr(
        plans.first_start, "find", lambda *_: Found(GtidSet.parse(f"{SOURCE}:1-50"), Place(FILE, 4), "")
    )
    assert not plans.plan(pipeline(), stood, FACTS, "latest").moves


def test_what_the_server_never_had_or_has_no_more_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SeekError, match=f"has not executed {SOURCE}:91-95"):
        planned(monkeypatch, f"{SOURCE}:1-95")
    with pytest.raises(PurgedError, match=f"{SOURCE}:2-3"):
        planned(monkeypatch, f"{SOURCE}:1")


@pytest.mark.parametrize("to", ["yesterday", "0-1-7", "2026-11-21T17:00:00"])
def test_what_is_no_place_is_refused_with_the_forms_that_there_are(to: str) -> None:
    with pytest.raises(SeekError, match="a GTID set, a file and position"):
        plans.plan(pipeline(), STOOD, FACTS, to)


def test_by_place_the_file_is_known_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a server that is reset before the next start would be taken for the same one."""
    found = Found(UpTo.place("binlog.000002", 99), Place("binlog.000002", 99), "found")
    monkeypatch.setattr(plans.first_start, "find", lambda *_: found)
    monkeypatch.setattr(plans.first_start, "committed", lambda *_: 5)
    mark = Mark("binlog.000002", 4, 15, "", 7_000_000, 7_999_999)
    monkeypatch.setattr(plans.first_start, "marks", lambda source, file: iter([mark._replace(file=file)]))
    stood = STOOD.model_copy(update={"by_place": True, "gtid_set": "", "file_made": 9})
    place = plans.plan(pipeline(), stood, FACTS.by_place(), "binlog.000002:99").checkpoint
    assert (place.by_place, place.file, place.file_made) == (True, "binlog.000002", 7)


def test_the_words_are_those_of_a_move(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: Any) -> None:
        hint = "Its files are a.1 to a.2; write one of them (streamer.start in the pipeline file)."
        raise StartError("starting", "pipeline sales at a.9:4", "the server has no binlog file a.9", hint)

    monkeypatch.setattr(plans.first_start, "find", none)
    with pytest.raises(SeekError) as caught:
        plans.plan(pipeline(), STOOD, FACTS, "a.9:4")
    assert str(caught.value).startswith("moving ")
    assert "streamer.start" not in str(caught.value)
