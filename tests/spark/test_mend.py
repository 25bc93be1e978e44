"""What `headrace mend` says where it mends nothing: its kind, what is so, and the next step."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from spark.kafka import mend
from spark.kafka.own_records import Record
from tests.spark.sessions import PIPELINE

AS_TOLD = "as the message of the job that stopped has it"
GOOD = b'{"db":"shop","table":"items","version":1,"key":[],"columns":[]}'


@pytest.mark.parametrize(
    ("place", "told"),
    [
        (("shop.items", "0", "1"), "shop.items is none of the topics that this is for: "),
        (("shop.schemas", "0", "7"), "shop.schemas, partition 0, has no record at offset 7, or has it no more"),
        (("shop.schemas", "3", "0"), "shop.schemas, partition 3, has no record at offset 0, or has it no more"),
        (
            ("shop.schemas", "0", "0"),
            "the record at offset 0 of shop.schemas, partition 0, can be read: it stays as it",
        ),
    ],
)
def test_a_place_without_a_broken_record(
    tmp_path: Path, place: tuple[str, ...], told: str, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    file = tmp_path / "shop.yaml"
    file.write_text(PIPELINE.format(lake=tmp_path))
    monkeypatch.setattr(mend, "Reading", lambda _: nullcontext())
    monkeypatch.setattr(mend, "numbers_of", lambda *_: [0])
    monkeypatch.setattr(mend, "records_of", lambda *_: [Record(b"k", GOOD, "shop.schemas", 0, 0)])
    assert mend.main([str(file), *place]) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"error (mend): {told}")
    assert AS_TOLD in line


def test_a_broker_that_is_away(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: Any) -> None:
        raise KafkaException(KafkaError(KafkaError._TRANSPORT))

    file = tmp_path / "shop.yaml"
    file.write_text(PIPELINE.format(lake=tmp_path))
    monkeypatch.setattr(mend, "Reading", away)
    assert mend.main([str(file), "shop.schemas", "0", "1"]) == 1
    told = capsys.readouterr().err
    assert told.startswith(f"error (mend): mending shop.schemas of {file}: ")
    assert "Local: Broker transport failure. See that the broker runs" in told
    assert "KafkaError" not in told


def test_a_mistake_in_the_file_is_one_of_the_command_line(tmp_path: Path) -> None:
    assert mend.main([str(tmp_path / "none.yaml"), "shop.schemas", "0", "1"]) == 2
