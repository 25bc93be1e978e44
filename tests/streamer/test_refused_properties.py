"""What the streamer itself sets of the Kafka client is refused in the pipeline file: it would be without effect."""

from __future__ import annotations

from typing import Any

import pytest

from contract.pipeline_kafka import REFUSED
from streamer.kafka import broker, compacted
from streamer.sinks import kafka as sink
from tests.streamer.fakes import pipeline


def test_every_setting_of_the_producer_and_the_reader_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, Any] = {}

    class Stop(Exception):  # noqa: N818
        pass

    def taken(settings: dict[str, Any]) -> None:
        seen.update(settings)
        raise Stop

    monkeypatch.setattr(sink, "Producer", taken)
    monkeypatch.setattr(compacted, "Consumer", taken)
    with pytest.raises(Stop):
        sink.KafkaSink(pipeline())
    with pytest.raises(Stop):
        compacted.read(pipeline().kafka, "t")
    own = set(broker.settings(pipeline().kafka)) - {"bootstrap.servers", "allow.auto.create.topics"}
    assert {key for key in seen if key not in own and not key.endswith("_cb")} <= set(REFUSED)
