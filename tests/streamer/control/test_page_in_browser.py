"""The streamer's own page in a real browser, over the status of a stream that has run."""

from __future__ import annotations

import re
import threading
from pathlib import Path

import pytest

from contract.gtid import GtidSet
from stack.ports import free_port
from streamer.control.api import application
from streamer.control.http import serving, take_port
from streamer.control.report import Report
from streamer.patience import Stopping
from streamer.source import Facts
from tests.streamer.browser import points, shown, text
from tests.streamer.fakes import SOURCE, Binlog, pipeline, rig, transaction


@pytest.mark.parametrize(("version", "product"), [("9.7.4", "MySQL"), ("11.4.9-MariaDB-log", "MariaDB")])
def test_what_a_person_sees_of_a_stream(tmp_path: Path, version: str, product: str) -> None:
    what = rig(Binlog([transaction(n, [3]) for n in range(1, 4)]))
    report = Report(pipeline(), what.status)
    facts = Facts(1, SOURCE, version, GtidSet(), GtidSet(), "binlog.000001", 4, "binlog.000001")
    report.attach(facts, what.stream, what.ledger, what.watcher, what.checkpoints, what.sink)  # type: ignore[arg-type]
    threading.Timer(0.3, what.stop.set).start()
    with pytest.raises(Stopping):
        what.stream.run()
    assert what.stream.delivery.drain(10)
    port = free_port()
    with serving(application(report), take_port("127.0.0.1", port)):
        document = shown(tmp_path, f"http://127.0.0.1:{port}/")
    told = text(document)
    assert "sales" in told
    assert f"{product} h:3306, {version}, not connected" in told
    assert f"read from {product}" in told
    assert "Kafka h:9092, answers" in told
    assert "shop.t 9 0 0 1" in told, "inserts, updates, deletes, and the schema's version"
    assert f"{SOURCE}:1-3" in told
    [line] = re.findall(r'<path id="line" d="([^"]*)"', document)
    assert points(line) > 2, "the chart of the rate"
