"""What `headrace tail` says before the first change."""

from __future__ import annotations

from streamer.tail import waits_for
from tests.streamer.fakes import pipeline


def test_a_reader_is_told_what_is_shown_from_where_on_and_what_ends_it() -> None:
    told = waits_for(pipeline(), [], False)
    assert told == "showing the changes of all tables of sales from now on, by Kafka at h:9092; Ctrl-C ends it"
    told = waits_for(pipeline(), ["shop.orders", "shop.i*"], True)
    assert "of shop.orders (topic sales.shop.orders), shop.i* from the beginning of their topics, by Kafka" in told
