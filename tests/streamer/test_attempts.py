"""Which errors end a run, and after which it begins again."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any

import pytest

from contract.checkpoint import Checkpoint
from streamer import attempts, guarantees
from streamer.attempts import Attempts
from streamer.control.status import Status
from streamer.delivery_errors import (
    DeposedError,
    FencedError,
    RecordTooLargeError,
    TransactionLostError,
    TransactionTooLongError,
)
from streamer.errors import HeadraceError
from streamer.patience import Patience, Stopping
from tests.checkpoints import checkpoint
from tests.streamer.fakes import pipeline


def error(kind: type[HeadraceError]) -> HeadraceError:
    return kind("delivering", "it", "a reason", "A step.")


class HoldsBack:
    def __init__(self, answer: bool) -> None:
        self.holds_back = answer


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FIRST_SECONDS", "MAX_SECONDS", "FENCED_SECONDS", "STANDBY_POLL_SECONDS"):
        monkeypatch.setattr(attempts, name, 0.001)


@pytest.fixture
def ours(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    def answer(own: bool) -> None:
        found: Checkpoint = checkpoint().model_copy(update={"run": guarantees.RUN if own else "another"})
        monkeypatch.setattr(attempts, "last_checkpoint", lambda *_: found)

    return answer


class Rig:
    """Attempts that end by these, one after the other; `begun`: whether each was careful."""

    def __init__(self, ends: list[Exception], held_back: bool = False, half: str = "", **streamer: Any) -> None:
        status, stop = Status("sales"), threading.Event()
        self.patience = Patience(status, stop)
        self.begun: list[bool] = []
        self._ends: Iterator[Exception] = iter(ends)
        self._held_back, self._half = held_back, half
        self.attempts = Attempts(pipeline(**streamer), status, self.patience, stop, self._attempt, self._stands_by)
        self.stood = 0

    def _stands_by(self) -> None:
        self.stood += 1

    def _attempt(self) -> None:
        self.begun.append(self.attempts.careful)
        end = next(self._ends)
        if end.args[0] == "delivering" or isinstance(end, Stopping):
            self.attempts.ended(end, HoldsBack(self._held_back), self._half)  # type: ignore[arg-type]
        raise end


def test_a_lost_transaction_begins_again_until_the_stop() -> None:
    what = Rig([error(TransactionLostError)] * 5 + [Stopping("delivering")])
    with pytest.raises(Stopping):
        what.attempts.run()
    assert what.begun == [False] * 6


def test_a_final_error_that_held_something_back_gets_one_careful_attempt() -> None:
    what = Rig([error(RecordTooLargeError)] * 2, held_back=True)
    with pytest.raises(RecordTooLargeError):
        what.attempts.run()
    assert what.begun == [False, True]
    what = Rig([error(RecordTooLargeError)])
    with pytest.raises(RecordTooLargeError):
        what.attempts.run()
    assert what.begun == [False]


def test_a_careful_attempt_that_fails_before_the_stream_is_the_last() -> None:
    early = RecordTooLargeError("starting", "it", "a reason", "A step.")
    what = Rig([error(RecordTooLargeError), early], held_back=True)
    with pytest.raises(RecordTooLargeError, match="starting"):
        what.attempts.run()


def test_a_fenced_streamer_goes_on_only_where_no_other_has_the_pipeline(ours: Callable[[bool], None]) -> None:
    ours(True)
    what = Rig([error(FencedError), Stopping("delivering")])
    with pytest.raises(Stopping):
        what.attempts.run()
    ours(False)
    what = Rig([error(FencedError)])
    with pytest.raises(FencedError):
        what.attempts.run()


@pytest.mark.parametrize("high_availability", [False, True])
def test_a_transaction_that_is_fenced_by_time_again_and_again_is_too_long(
    ours: Callable[[bool], None], monkeypatch: pytest.MonkeyPatch, high_availability: bool
) -> None:
    monkeypatch.setattr(attempts, "Election", Elections)
    ours(True)
    what = Rig([error(FencedError)] * 3, half="a gtid", high_availability=high_availability)
    with pytest.raises(TransactionTooLongError, match="a gtid"):
        what.attempts.run()


class Elections:
    """Elected at each question, deposed at none."""

    def __init__(self, pipeline: Any) -> None:
        self.asked = 0

    def __enter__(self) -> Elections:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def elected(self, seconds: float) -> bool:
        self.asked += 1
        return self.asked % 3 == 0

    def check(self) -> None: ...

    def error(self) -> None: ...


def test_who_was_deposed_or_shut_out_stands_by(ours: Callable[[bool], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "Election", Elections)
    ours(False)
    ends = [error(DeposedError), error(FencedError), error(TransactionLostError), Stopping("delivering")]
    what = Rig(ends, high_availability=True)
    with pytest.raises(Stopping):
        what.attempts.run()
    assert len(what.begun) == 4
    assert what.stood == 3, "at first, and each time that another one took the pipeline"


def test_a_guard_ends_every_wait() -> None:
    patience = Patience(Status("sales"), threading.Event())

    def guard() -> None:
        raise error(DeposedError)

    patience.guard = guard
    with pytest.raises(DeposedError):
        patience.until_answered(lambda: None, "Kafka")
