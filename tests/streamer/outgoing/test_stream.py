"""What a pipeline asks for beside plain records, over a source and a sink without servers."""

from __future__ import annotations

import errno
import importlib
import json
import linecache
import sys
import threading
from pathlib import Path
from typing import Any

import fsspec
import pytest
from structlog.testing import capture_logs

from contract.pipeline import Pipeline, Tables
from contract.pipeline_events import EventRule
from contract.schema import Column, TableSchema
from contract.transform_event import Event
from contract.transforms import TransformFaultError
from streamer import disk, patience, watcher
from streamer import stream as stream_module
from streamer.delivery_errors import OversizedStoreError, TransformError
from streamer.outgoing.transforming import Transforms, refuse_taken
from streamer.patience import Stopping
from streamer.protocol.model import Item, RowsBatch
from tests.streamer.fakes import FILE, Binlog, pipeline, rig, transaction
from tests.streamer.test_stream import ddl, lost, run_until_released


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_module, "RECONNECT_FIRST_SECONDS", 0.001)


def asking(folder: Path, script: str = "", on_error: str = "stop", **records: Any) -> Pipeline:
    more: dict[str, Any] = {"records": records, "path": folder / "sales.yaml"}
    (folder / "sales.yaml").write_text("transforms: []\n")
    if script:
        (folder / "t.py").write_text("def transform(event):\n    " + script.replace("\n", "\n    ") + "\n")
        more["transforms"] = [{"tables": ["shop.*"], "script": "t.py", "on_error": on_error}]
    if records.get("format") == "debezium":
        more["lake"] = {}
    plain = pipeline().model_dump() | {"source": pipeline().source} | more
    return Pipeline.model_validate(plain)


ODD = "if event.after['id'] % 2:\n    return None\nevent.after['v'] = -1\nreturn event"


def test_what_a_transform_drops_completes_and_keeps_its_place_in_the_order(tmp_path: Path) -> None:
    what = rig(Binlog([transaction(1, [3, 2]), transaction(2, [1]), transaction(3, [2])]), asked=asking(tmp_path, ODD))
    run_until_released(what, 3)
    told = [(event["source"]["seq"][2:], event["after"]["v"]) for event in what.sink.events()]
    assert told == [([1000, 0, 0], -1), ([1000, 0, 2], -1), ([1000, 1, 0], -1), ([2000, 0, 0], -1), ([3000, 0, 0], -1)]
    assert what.sink.checkpoints()[-1].events == what.ledger.events == 8, "of all rows that were read"
    assert what.ledger.depth == what.ledger.size == 0
    assert what.stream.router.counts() == {"shop.t": {"c": 5, "u": 0, "d": 0}}
    assert what.stream.transforms.as_dict() == {"shop.t": {"changed": 5, "dropped": 3}}


def test_a_row_that_leaves_by_a_transform_is_deleted_at_its_place(tmp_path: Path) -> None:
    """Paid, then a test order, then deleted; and one that goes elsewhere. A change has one place, in each topic."""
    script = "row = event.after or event.before\nif row['v'] < 0:\n    return None\nif row['v'] > 9:\n"
    script += "    event.topic = 'large'\nreturn event"

    def change(number: int, op: Any, *values: int) -> list[Item]:
        [batch, end] = transaction(number, [1])
        assert isinstance(batch, RowsBatch)
        batch.op, batch.keys = op, [b'{"id":7}'] * len(values)
        batch.rows = [b'{"id":7,"v":%d}' % value for value in values]
        return [batch, end]

    way = [change(1, "c", 1), change(2, "u", 1, -1), change(3, "u", -1, -2), change(4, "d", -2), change(5, "c", 2)]
    way += [change(6, "u", 2, 10), change(7, "u", 10, 3), change(8, "d", 3)]
    what = rig(Binlog(way), asked=asking(tmp_path, script, transactions=True))
    run_until_released(what, 8)
    told = [(event["op"], event["source"]["seq"][2], (event["before"] or {}).get("v")) for event in what.sink.events()]
    assert told[:3] == [("c", 1000, None), ("d", 2000, 1), ("c", 5000, None)]
    assert told[3:] == [("d", 6000, 2), ("u", 7000, 10), ("d", 8000, 3)]
    [moved] = what.sink.values("large")
    assert (moved["op"], moved["source"]["seq"][2], moved["transaction"]["total_order"]) == ("u", 6000, 2)
    assert what.stream.transforms.as_dict() == {"shop.t": {"changed": 4, "dropped": 2, "removed": 2}}
    assert what.sink.checkpoints()[-1].events == 8


def test_a_row_that_leaves_stays_in_a_table_whose_deletes_are_left_out(tmp_path: Path) -> None:
    made = asking(tmp_path, "return event if event.op == 'c' else None")
    made = made.model_copy(update={"events": (EventRule(tables=("shop.t",), drop=("delete",)),)})
    [batch, end] = transaction(2, [1])
    assert isinstance(batch, RowsBatch)
    batch.op, batch.keys, batch.rows = "u", [b'{"id":7}'] * 2, [b'{"id":7,"v":1}', b'{"id":7,"v":2}']
    what = rig(Binlog([transaction(1, [1]), [batch, end]]), asked=made)
    run_until_released(what, 2)
    assert [event["op"] for event in what.sink.events()] == ["c"]
    assert what.stream.transforms.as_dict() == {"shop.t": {"changed": 1, "dropped": 1}}


def test_a_table_that_joins_does_not_take_the_topic_of_changes_that_were_moved(tmp_path: Path) -> None:
    before = asking(tmp_path, "event.topic = 'sales.later.t'\nreturn event")
    what = rig(Binlog([transaction(1, [1])]), asked=before)
    run_until_released(what, 1)
    after = before.model_copy(update={"tables": Tables(include=("shop.*", "later.*"))})
    with pytest.raises(TransformError, match=r"sales\.later\.t, which would be a table's topic"):
        refuse_taken(after, what.stream.router.others)
    refuse_taken(before, what.stream.router.others)


def test_a_transform_may_not_choose_the_topic_of_a_table_that_has_joined(tmp_path: Path) -> None:
    made = Transforms(before := asking(tmp_path, "event.topic = 'sales.later.t'\nreturn event"))
    schema = TableSchema(db="shop", table="t", columns=(Column(name="id", type="int"),), key=("id",))
    event = Event("c", "shop", "t", {"id": 1}, None, {"id": 1}, "sales.shop.t", {})
    chain = made.chain(schema)
    assert chain is not None
    assert chain.apply(event.copy()).topic == "sales.later.t"
    made.follow(before.model_copy(update={"tables": Tables(include=("shop.*", "later.*"))}))
    chain = made.chain(schema)
    assert chain is not None
    with pytest.raises(TransformFaultError, match="other tables of the pipeline"):
        chain.apply(event.copy())


def test_a_transaction_of_which_all_is_dropped_moves_the_checkpoint(tmp_path: Path) -> None:
    what = rig(Binlog([transaction(n, [2]) for n in (1, 2)]), asked=asking(tmp_path, "return None"))
    run_until_released(what, 2)
    assert what.sink.events() == []
    assert what.sink.checkpoints()[-1].pos == 2900


def test_a_connection_lost_halfway_brings_nothing_twice(tmp_path: Path) -> None:
    binlog = Binlog([transaction(1, [2, 1, 2])], breaks=[2], lost=lost)
    what = rig(binlog, asked=asking(tmp_path, ODD, transactions=True))
    run_until_released(what, 1)
    assert [event["source"]["seq"][3:] for event in what.sink.events()] == [[0, 0], [1, 0], [2, 0]]
    [begin, end] = what.sink.values("sales.transactions")
    assert (begin["status"], end["status"], end["event_count"]) == ("BEGIN", "END", 3)
    assert len(binlog.starts) == 2


def test_an_error_stops_with_its_place_and_nothing_behind_it_is_sent(tmp_path: Path) -> None:
    script = "if event.after['id'] == 2000000:\n    raise ValueError(event.after['v'])\nreturn event"
    what = rig(Binlog([transaction(1, [1]), transaction(2, [1]), transaction(3, [1])]), asked=asking(tmp_path, script))
    with pytest.raises(TransformError) as caught:
        what.stream.run()
    told = str(caught.value)
    assert f"a change of shop.t ({FILE}:2100, " in told
    assert "row 0): " in told
    assert "sales.yaml" in told
    assert "transforms[0]: t.py: ValueError at t.py:3. Mend it" in told
    assert "2000000" not in told
    assert what.stream.delivery.drain(10)
    assert [event["after"]["id"] for event in what.sink.events()] == [1000000]
    assert what.sink.checkpoints()[-1].pos == 1900


FAILS = "event.after['v'] = 0\nif event.after['id'] % 2:\n    raise ValueError('quokka')\nreturn event"


def test_a_dead_letter_has_the_key_the_place_and_the_record_as_it_was(tmp_path: Path) -> None:
    what = rig(Binlog([transaction(1, [2])]), asked=asking(tmp_path, FAILS, "dead_letter"))
    with capture_logs() as logs:
        run_until_released(what, 1)
    [(_, key, value)] = [one for one in what.sink.records if one[0] == "sales.dead-letter"]
    letter = json.loads(value)
    assert key == b'{"id":1000001}'
    assert letter["error"] == {"kind": "transform", "cause": "ValueError at t.py:4", "by": "t.py"}
    assert (letter["topic"], letter["op"], letter["value"]["after"]["v"]) == ("sales.shop.t", "c", 1000001)
    assert (letter["source"]["file"], letter["source"]["pos"], letter["source"]["row"]) == (FILE, 1100, 1)
    assert [event["after"] for event in what.sink.events()] == [{"id": 1000000, "v": 0}]
    [told] = [line for line in logs if "dead letter" in line["event"]]
    assert (told["table"], told["pos"], told["row"]) == ("shop.t", 1100, 1)
    assert "quokka" not in json.dumps(logs)
    assert what.ledger.events == 2


def test_what_passes_is_as_it_was_and_is_told(tmp_path: Path) -> None:
    what = rig(Binlog([transaction(1, [2])]), asked=asking(tmp_path, FAILS, "pass"))
    with capture_logs() as logs:
        run_until_released(what, 1)
    assert [event["after"]["v"] for event in what.sink.events()] == [0, 1000001]
    assert what.stream.transforms.as_dict() == {"shop.t": {"changed": 1, "passed": 1}}
    assert [line["row"] for line in logs if "passed unchanged" in line["event"]] == [1]


def test_a_topic_of_its_own_is_made_once(tmp_path: Path) -> None:
    what = rig(
        Binlog([transaction(n, [2]) for n in (1, 2)]), asked=asking(tmp_path, "event.topic = 'else'\nreturn event")
    )
    made: list[str] = []
    what.stream.router._ensure = lambda wanted: made.extend(one.name for one in wanted) or []  # type: ignore[func-returns-value]
    run_until_released(what, 2)
    assert made == ["sales.shop.t", "else"]
    assert len(what.sink.values("else")) == 4
    assert what.sink.events() == []


def test_headers_and_the_place_in_the_transaction(tmp_path: Path) -> None:
    given = asking(tmp_path, headers=["op", "table", "gtid", "seq"], transactions=True)
    what = rig(Binlog([transaction(1, [2]), ddl(2, "CREATE TABLE t (id INT)"), transaction(3, [1])]), asked=given)
    run_until_released(what, 3)
    gtid = what.sink.events()[0]["source"]["gtid"]
    [first, *_] = [headers for topic, headers, _ in what.sink.headers if topic == "sales.shop.t"]
    assert first == [("__op", b"c"), ("__table", b"t"), ("__gtid", gtid.encode()), ("__seq", b"[0,1,1000,0,0]")]
    places = [event["transaction"] for event in what.sink.events()]
    assert [(one["total_order"], one["data_collection_order"]) for one in places] == [(1, 1), (2, 2), (1, 1)]
    assert places[0]["id"] == gtid
    told = what.sink.values("sales.transactions")
    assert [one["status"] for one in told] == ["BEGIN", "END", "BEGIN", "END"], "none for DDL"
    assert told[1] == {
        "status": "END", "id": gtid, "ts_ms": 10**12, "event_count": 2,
        "data_collections": [{"data_collection": "shop.t", "event_count": 2}],
    }  # fmt: skip
    order = [topic for topic, _, _ in what.sink.records if topic in ("sales.shop.t", "sales.transactions")]
    assert order[:4] == ["sales.transactions", "sales.shop.t", "sales.shop.t", "sales.transactions"]
    assert what.ledger.depth == what.ledger.size == 0
    assert what.ledger.events == 3


def test_a_delete_is_followed_by_a_tombstone_and_no_other_change_is(tmp_path: Path) -> None:
    [batch, end] = transaction(1, [2])
    batch.op = "d"
    what = rig(Binlog([[batch, end], transaction(2, [1])]), asked=asking(tmp_path, tombstones=True, transactions=True))
    run_until_released(what, 2)
    found = [(key, value is not None) for topic, key, value in what.sink.records if topic == "sales.shop.t"]
    first, second, third = b'{"id":1000000}', b'{"id":1000001}', b'{"id":2000000}'
    assert found == [(first, True), (first, False), (second, True), (second, False), (third, True)]
    assert what.ledger.events == 3
    assert what.sink.values("sales.transactions")[1]["event_count"] == 2


def test_the_heart_beats_between_transactions_also_when_idle(tmp_path: Path) -> None:
    what = rig(Binlog([transaction(n, [1]) for n in (1, 2, 3)]), asked=asking(tmp_path, heartbeat_seconds=0.1))
    threading.Timer(0.6, what.stop.set).start()
    with pytest.raises(Stopping):
        what.stream.run()
    assert what.stream.delivery.drain(10)
    beats = what.sink.values("sales.heartbeat")
    assert 3 <= len(beats) <= 7
    assert beats[-1]["file"] == FILE
    assert what.ledger.events == 3
    assert what.ledger.depth == what.ledger.size == 0
    assert what.sink.checkpoints()[-1].pos == 3900


def test_a_table_is_marked_when_its_record_is_put_aside_and_not_when_it_cannot_be(tmp_path: Path) -> None:
    large = transaction(1, [1])
    large[0].rows[0] = b'{"id":1000000,"v":"%b"}' % (b"x" * 4000)
    given = asking(tmp_path, oversized={"target": str(tmp_path / "large")})
    given = given.model_copy(update={"kafka": given.kafka.model_copy(update={"max_message_bytes": 4000})})
    (tmp_path / "large").write_text("no folder")
    what = rig(Binlog([large, transaction(2, [1])]), asked=given)
    with pytest.raises(OversizedStoreError, match="putting a record aside"):
        what.stream.run()
    assert what.watcher.checkpoint.unequal == {}
    (tmp_path / "large").unlink()
    what = rig(Binlog([large, transaction(2, [1])]), asked=given)
    run_until_released(what, 2)
    assert what.sink.checkpoints()[-1].unequal == {"shop.t": (0, 1, 1000)}
    assert [event["source"]["seq"][2] for event in what.sink.events()] == [2000]
    [letter] = what.sink.values("sales.dead-letter")
    assert json.loads(Path(letter["value_at"]).read_bytes())["after"]["v"] == "x" * 4000
    assert what.stream.put_aside == {"shop.t": 1}


def too_large(folder: Path, **more: Any) -> Pipeline:
    """Of a pipeline that takes records of 4,000 bytes."""
    given = asking(folder, **more)
    return given.model_copy(update={"kafka": given.kafka.model_copy(update={"max_message_bytes": 4000})})


def large(number: int) -> list[Any]:
    made = transaction(number, [1])
    made[0].rows[0] = b'{"id":%d,"v":"%b"}' % (1_000_000 * number, b"x" * 4000)
    return made


def test_a_row_that_leaves_and_its_delete_are_put_aside_beside_each_other(tmp_path: Path) -> None:
    """Both have the change's place in the order."""
    script = "if (event.after or event.before)['v'][0] == 'y':\n    event.topic = 'elsewhere'\nreturn event"
    [batch, end] = transaction(1, [1])
    assert isinstance(batch, RowsBatch)
    batch.op, batch.keys = "u", [b'{"id":1}'] * 2
    batch.rows = [b'{"id":1,"v":"%b"}' % (letter * 4000) for letter in (b"x", b"y")]
    asked = too_large(tmp_path, script=script, oversized={"target": str(tmp_path / "large")})
    what = rig(Binlog([[batch, end]]), asked=asked)
    run_until_released(what, 1)
    gone, made = what.sink.values("sales.dead-letter")
    assert (gone["op"], gone["topic"], made["op"], made["topic"]) == ("d", "sales.shop.t", "u", "elsewhere")
    for letter in (gone, made):
        data = Path(letter["value_at"]).read_bytes()
        assert (len(data), json.loads(data)["op"]) == (letter["value_bytes"], letter["op"])


def test_a_store_that_is_away_is_waited_for_while_acknowledgements_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "RETRY_SECONDS", 0.01)
    binlog = Binlog([transaction(1, [1]), large(2), transaction(3, [1])])
    what = rig(binlog, asked=too_large(tmp_path, oversized={"target": str(tmp_path / "large")}))
    tries, waited = [0], set()

    def full(path: Path, data: bytes) -> None:
        tries[0] += 1
        waited.add((what.status.state, what.status.waiting_for))
        if tries[0] < 20:
            raise OSError(errno.ENOSPC, "No space left on device")
        replace(path, data)

    replace = disk.replace
    monkeypatch.setattr(disk, "replace", full)
    run_until_released(what, 3)
    assert ("waiting", "the place of records.oversized") in waited
    assert what.status.error is not None
    assert (what.status.error["kind"], what.status.waiting_for) == ("away", "")
    assert what.stream.put_aside == {"shop.t": 1}
    assert [event["source"]["seq"][2] for event in what.sink.events()] == [1000, 3000]


def test_an_upload_that_is_not_whole_is_sent_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "RETRY_SECONDS", 0.01)
    store = fsspec.filesystem("memory")
    whole, sent = store.pipe_file, []

    def cut(path: str, data: bytes, **more: Any) -> None:
        sent.append(len(data))
        whole(path, data if len(sent) > 2 else data[:-1])

    monkeypatch.setattr(type(store), "pipe_file", lambda self, *of: cut(*of))
    what = rig(Binlog([large(1)]), asked=too_large(tmp_path, oversized={"target": "memory://cut"}))
    run_until_released(what, 1)
    [letter] = what.sink.values("sales.dead-letter")
    assert len(sent) == 3
    assert len(store.cat_file(letter["value_at"])) == letter["value_bytes"] == sent[0]


@pytest.mark.parametrize("aside", [True, False])
def test_a_dead_letter_that_is_too_large_does_not_stop(tmp_path: Path, aside: bool) -> None:
    script = "if len(str(event.after['v'])) > 999:\n    raise ValueError\nreturn event"
    more = {"oversized": {"target": str(tmp_path / "large")}} if aside else {"headers": ["op"]}
    what = rig(
        Binlog([large(1), transaction(2, [1])]),
        asked=too_large(tmp_path, script=script, on_error="dead_letter", **more),
    )
    run_until_released(what, 2)
    [letter] = what.sink.values("sales.dead-letter")
    assert letter["error"]["cause"].startswith("ValueError at t.py:3")
    assert letter["source"]["seq"][2] == 1000
    assert "value" not in letter
    if aside:
        value = Path(letter["value_at"]).read_bytes()
        assert json.loads(value)["after"]["v"] == "x" * 4000
        assert len(value) == letter["value_bytes"]
    else:
        assert "left out of this letter" in letter["error"]["cause"]
        assert letter["value_bytes"] > 4000
    assert [event["source"]["seq"][2] for event in what.sink.events()] == [2000]
    assert what.stream.put_aside == {}


def test_a_checkpoint_names_the_topics_that_transforms_chose_before_their_first_records(tmp_path: Path) -> None:
    script = "event.topic = f'part-{event.after[\"id\"] % 2}'\nreturn event"
    what = rig(Binlog([transaction(1, [1]), transaction(2, [2])]), asked=asking(tmp_path, script))
    run_until_released(what, 2)
    names = [topic for topic, *_ in what.sink.records]
    told = [set(found.topics) for found in what.sink.checkpoints()]
    assert told[-1] == {"part-0", "part-1"}
    assert names.index("sales.commit-log") < names.index("part-0")
    seen: set[str] = set()
    for topic, _, value in what.sink.records:
        if topic == "sales.commit-log":
            seen = set(json.loads(value)["topics"])
        elif topic.startswith("part"):
            assert topic in seen


def test_another_text_of_a_named_functions_module_sends_by_other_rules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))

    def sends(text: str, name: str) -> str:
        (tmp_path / f"{name}.py").write_text(text)
        rules = [{"tables": ["shop.*"], "script": "t.py", "helpers": {"digest": f"{name}.digest"}}]
        (tmp_path / "t.py").write_text("def transform(event):\n    return event\n")
        importlib.invalidate_caches()
        sys.modules.pop(name, None)
        linecache.clearcache()
        plain = asking(tmp_path)
        return Transforms(Pipeline.model_validate(plain.model_dump() | {
            "source": plain.source, "path": plain.path, "transforms": rules,
        })).sends  # fmt: skip

    first = "def digest(text):\n    return text\n"
    assert sends(first, "own_digests") == sends(first, "own_digests")
    assert sends(first + "# mended\n", "own_digests") != sends(first, "own_digests")


def test_in_debeziums_form_all_but_the_pipelines_notes_has_a_schema(tmp_path: Path) -> None:
    script = "row = event.after or event.before\nif row['id'] % 1000 == 1:\n    raise ValueError\nrow['v'] = -1\n"
    script += "return event"
    asked = asking(tmp_path, script, on_error="dead_letter", format="debezium", transactions=True, tombstones=True)
    [batch, end] = transaction(3, [1])
    assert isinstance(batch, RowsBatch)
    batch.op = "d"
    what = rig(Binlog([transaction(1, [2]), ddl(2, "TRUNCATE TABLE t"), [batch, end]]), asked=asked)
    run_until_released(what, 3)
    rows = [(key, value and json.loads(value)) for topic, key, value in what.sink.records if topic == "sales.shop.t"]
    assert all(value is None or set(value) == {"schema", "payload"} for _, value in rows)
    assert [value and value["payload"]["op"] for _, value in rows] == ["c", "t", "t", "d", None]
    first = rows[0][1]["payload"]
    assert (first["after"]["v"], first["transaction"]["total_order"]) == (-1, 1)
    assert json.loads(rows[0][0] or b"")["payload"] == {"id": 1_000_000}
    assert rows[1][0] is None
    assert [one["payload"]["status"] for one in what.sink.values("sales.transactions")][:2] == ["BEGIN", "END"]
    [letter] = what.sink.values("sales.dead-letter")
    assert letter["error"]["kind"] == "transform"
    assert "schema" not in what.sink.values("sales.commit-log")[-1]


def test_what_is_too_large_is_measured_in_the_form_that_is_sent(tmp_path: Path) -> None:
    """Its schema alone has more bytes than the record."""
    more: dict[str, Any] = {"oversized": {"target": str(tmp_path / "large")}, "transactions": True}
    plain = asking(tmp_path, **more, format="debezium").model_dump() | {"source": pipeline().source, "lake": {}}
    plain["kafka"] = plain["kafka"] | {"max_message_bytes": 3000}
    what = rig(Binlog([transaction(1, [1])]), asked=Pipeline.model_validate(plain))
    run_until_released(what, 1)
    assert what.sink.events() == []
    assert what.stream.put_aside == {"shop.t": 1}
    [file] = (tmp_path / "large" / "sales" / "shop.t").iterdir()
    assert json.loads(file.read_bytes())["after"]["v"] == 1_000_000, "the change itself, in Headrace's form"


def test_of_more_topics_than_a_checkpoint_names_the_first_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watcher, "TOPICS", 2)
    script = "event.topic = f'part-{event.after[\"id\"] % 10}'\nreturn event"
    what = rig(Binlog([transaction(n, [5]) for n in (1, 2)]), asked=asking(tmp_path, script))
    with capture_logs() as logs:
        run_until_released(what, 2)
    named = what.sink.checkpoints()[-1].topics
    assert len(named) == 2
    [told] = [entry for entry in logs if "remembered" in entry["event"]]
    assert (told["remembered"], told["log_level"], told["topic"] in named) == (2, "warning", False)
    assert {topic for topic, *_ in what.sink.records if topic.startswith("part")} == {f"part-{n}" for n in range(5)}
