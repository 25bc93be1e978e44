"""The garbage collector of a running stream."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from streamer import collector


class Knot:
    def __init__(self) -> None:
        self.itself = self


@pytest.fixture
def as_before() -> Iterator[None]:
    thresholds = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*thresholds)


@pytest.mark.usefixtures("as_before")
def test_what_the_start_made_is_not_looked_at_again_and_what_it_left_behind_is_freed() -> None:
    many = [[n] for n in range(50_000)]
    knot = Knot()
    left, later = weakref.ref(knot), weakref.ref(many_later := Knot())
    del knot
    collector.settle()
    assert left() is None
    assert len(gc.get_objects()) < len(many)
    del many_later  # of one attempt: the next one frees it
    gc.collect()
    assert later() is not None
    collector.settle()
    assert later() is None


@pytest.mark.usefixtures("as_before")
def test_garbage_of_the_stream_itself_is_still_freed() -> None:
    collector.settle()
    knot = weakref.ref(Knot())
    kept = [[n] for n in range(2 * collector.YOUNG)]
    assert knot() is None, len(kept)
