"""A record of the pipeline's own topics that cannot be read: no job goes on, and the message has the way on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from contract.checkpoint import Checkpoint
from contract.ddl_record import DdlRecord
from contract.pipeline import Pipeline
from spark.errors import LakeError
from spark.kafka import broker as module
from spark.kafka import own_records
from spark.kafka.broker import Broker
from spark.kafka.reading import Record
from tests.checkpoints import checkpoint
from tests.spark.changes_by_hand import ITEMS

GARBAGE = b"garbage"
GOOD = {
    "commit-log": checkpoint(pipeline="shop", pos=5).model_dump_json().encode(),
    "schemas": ITEMS.model_dump_json().encode(),
    "ddl": DdlRecord(db="shop", table="t", kind="drop", statement="DROP", seq=(0, 1, 2), ts_ms=3)
    .model_dump_json()
    .encode(),
}
READ: dict[str, Callable[[Broker], Any]] = {
    "commit-log": Broker.checkpoint,
    "schemas": Broker.schemas,
    "ddl": lambda broker: broker.ddl({})[0],
}

Has = Callable[..., Broker]


@pytest.fixture
def has(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> Has:
    """A broker of whose topics each has these values, of one key, at the offsets from 0 on."""

    @contextmanager
    def reading(*_: Any) -> Iterator[Any]:
        class Consumer:
            def get_watermark_offsets(self, *_: Any) -> tuple[int, int]:
                return 0, 1

        yield Consumer()

    def made(*values: bytes | None) -> Broker:
        def records(consumer: Any, topic: str, number: int, begin: int = 0) -> list[Record]:
            return [Record(b"shop", value, topic, number, at) for at, value in enumerate(values)]

        monkeypatch.setattr(module, "records_of", records)
        return Broker(pipeline)

    monkeypatch.setattr(module, "Reading", reading)
    monkeypatch.setattr(module, "numbers_of", lambda consumer, topic: [0])
    return made


@pytest.mark.parametrize(
    ("topic", "value", "why"),
    [
        ("commit-log", GARBAGE, "is no checkpoint: Invalid JSON"),
        ("schemas", GARBAGE, "is no table's shape: Invalid JSON"),
        ("schemas", b"{}", "is no table's shape: db: Field required"),
        ("ddl", GARBAGE, "is no statement: Invalid JSON"),
        ("ddl", b"\xff\xfe", "is no statement: "),
    ],
)
def test_it_is_told_with_its_place_and_the_way_on(
    pipeline: Pipeline, has: Has, topic: str, value: bytes, why: str
) -> None:
    with pytest.raises(LakeError) as caught:
        READ[topic](has(GOOD[topic], value))
    text = str(caught.value)
    assert f"topic shop.{topic}, partition 0, offset 1, with the key 'shop', {why}" in text
    assert "a newer version did: upgrade Headrace" in text
    assert f"`headrace mend {pipeline.path} shop.{topic} 0 1`" in text
    assert ("each counts as not snapshotted" in text) == (topic == "ddl")
    assert "\n" not in text
    assert "garbage" not in text


@pytest.mark.parametrize("behind", [None, "good"], ids=["a tombstone", "another of its key"])
@pytest.mark.parametrize("topic", ["commit-log", "schemas"])
def test_what_another_record_of_its_key_stands_behind_is_passed_by(has: Has, topic: str, behind: str | None) -> None:
    found = READ[topic](has(GOOD[topic], GARBAGE, behind and GOOD[topic]))
    assert found == Checkpoint.read(GOOD[topic]) if topic == "commit-log" else set(found) == {ITEMS}


def test_of_the_statements_none_is_passed_by(has: Has) -> None:
    with pytest.raises(LakeError, match="offset 0,"):
        READ["ddl"](has(GARBAGE, GOOD["ddl"]))


def test_a_checkpoint_of_a_newer_version_asks_for_an_upgrade_whatever_stands_behind_it(has: Has) -> None:
    newer = GOOD["commit-log"].replace(b'"format":1', b'"format":99')
    assert newer != GOOD["commit-log"]
    with pytest.raises(LakeError, match=r"the commit log of shop has format 99.*: upgrade Headrace$"):
        READ["commit-log"](has(newer, GOOD["commit-log"]))


@pytest.mark.parametrize("topic", READ)
def test_what_a_newer_version_says_more_is_no_mistake(has: Has, topic: str) -> None:
    assert READ[topic](has(GOOD[topic].replace(b"{", b'{"of2030":1,', 1))) == READ[topic](has(GOOD[topic]))


def test_a_checkpoint_of_another_key_is_not_looked_at(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    other = Record(b"\xff", GARBAGE, "shop.commit-log", 0, 0)
    monkeypatch.setattr(Broker, "_records", lambda self, topic: iter([other]))
    assert Broker(pipeline).checkpoint() is None


def test_a_shape_is_not_made_out_again_by_the_next_round(has: Has, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each reads all, of hundreds of tables every few seconds."""
    shapes = [ITEMS.model_copy(update={"version": 70 + n}) for n in range(20)]
    values = [shape.model_dump_json().encode() for shape in shapes]
    assert has(*values).schemas() == shapes
    made = list[bytes]()
    monkeypatch.setattr(own_records.TableSchema, "model_validate_json", made.append)
    assert has(*(bytes(bytearray(value)) for value in values)).schemas() == shapes
    assert made == []
