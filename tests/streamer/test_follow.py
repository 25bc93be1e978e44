"""The pipeline file is edited while the stream runs: its tables are followed between two transactions, or it is told
why not."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import structlog
from rich.console import Console
from structlog.testing import capture_logs

from contract.checkpoint import Checkpoint
from contract.pipeline import Pipeline, Tables, load
from contract.pipeline_sinks import FileCheckpoint
from streamer.control.report import Report
from streamer.control.tables import _tables as show_tables
from streamer.control.tables import show_status
from streamer.errors import PreflightError, UnreachableError
from streamer.follow import file as watched
from streamer.follow.file import FileWatch
from streamer.patience import Stopping
from streamer.protocol.held import Held
from tests.streamer.fakes import Binlog, Rig, pipeline, rig, shape, transaction
from tests.streamer.test_exactly_once import Attempt, Transactions

FILE = """\
format: 1
name: sales
source: {host: h, user: u, password_file: secret, server_id: 7}
tables: {include: ["shop.a"]}
kafka: {bootstrap: "h:9092"}
lake: {path: lake}
"""


class Edited:
    """A pipeline file, its watch, and what the server says of other tables."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "sales.yaml"
        self.path.write_text(FILE)
        self.refusals: list[Exception] = []
        self.watch = FileWatch(load(self.path), self.check)
        self.looks()

    def check(self, found: Pipeline) -> None:
        if self.refusals:
            raise self.refusals.pop(0)

    def edit(self, before: str, after: str) -> FileWatch:
        text = self.path.read_text()
        assert before in text
        self.path.write_text(text.replace(before, after))
        return self.looks()

    def looks(self) -> FileWatch:
        """Until the file has rested."""
        self.watch.look()
        self.watch.look()
        return self.watch


@pytest.fixture
def edited(tmp_path: Path) -> Edited:
    return Edited(tmp_path)


def test_other_tables_are_offered_when_the_file_rests(edited: Edited) -> None:
    watch = edited.watch
    assert (watch.offered, watch.trouble) == (None, None)
    edited.path.write_text(FILE.replace("shop.a", "shop.*"))
    watch.look()
    assert watch.offered is None, "whoever writes it may not be done"
    watch.look()
    assert watch.offered == Tables(include=("shop.*",))
    watch.taken(watch.offered)
    edited.looks()
    assert (watch.offered, watch.trouble) == (None, None)
    assert edited.edit("shop.*", "shop.a").offered == Tables(include=("shop.a",)), "and back"


def test_what_is_taken_back_is_not_offered_any_more(edited: Edited) -> None:
    assert edited.edit("shop.a", "shop.b").offered
    assert edited.edit("shop.b", "shop.a").offered is None


def test_an_edit_while_the_stream_takes_the_one_before(edited: Edited) -> None:
    taking = edited.edit("shop.a", "shop.b").offered
    assert taking
    edited.edit("shop.b", "shop.a")
    edited.watch.taken(taking)
    assert edited.looks().offered == Tables(include=("shop.a",))


def trouble(watch: FileWatch, *words: str) -> dict[str, Any]:
    assert watch.offered is None
    assert watch.pipeline.tables == Tables(include=("shop.a",)), "the old ones stay"
    assert watch.trouble is not None
    for word in words:
        assert word in watch.trouble["message"] + watch.trouble["next_step"]
    return watch.trouble


def test_a_wrong_file_keeps_the_old_tables_until_it_is_mended(edited: Edited) -> None:
    trouble(edited.edit("shop.a", "shop"), "tables.include", "sales.yaml:4", "Mend the file")
    assert edited.edit('"shop"', '"shop.b"').offered == Tables(include=("shop.b",))
    assert edited.watch.trouble is None
    edited.path.unlink()
    trouble(edited.looks(), "cannot be read")
    edited.path.write_text(FILE)
    assert edited.looks().trouble is None


def test_other_sections_want_a_restart_and_the_keys_are_named(edited: Edited) -> None:
    edited.edit("server_id: 7", "server_id: 8")
    edited.edit("lake: {path: lake}", "streamer: {http: {port: 9}}\nlake: {path: elsewhere}")
    told = trouble(edited.edit("shop.a", "shop.b"), "source.server_id, streamer.http.port", "Restart")
    assert "its tables wait" in told["message"]
    assert "lake" not in told["message"], "the streamer does not read that section"
    edited.edit("server_id: 8", "server_id: 7")
    assert edited.edit("{port: 9}", "{}").offered == Tables(include=("shop.b",))


def test_tables_that_the_server_refuses_are_asked_for_again_only_where_time_may_mend_it(edited: Edited) -> None:
    edited.refusals = [UnreachableError("connect to", "MySQL", "away", "Start it")]
    trouble(edited.edit("shop.a", "shop.b"), "away")
    assert edited.looks().offered == Tables(include=("shop.b",))
    assert edited.watch.trouble is None
    edited.refusals = [PreflightError("checking", "MySQL", "no primary key: shop.c", "Give it one")]
    trouble(edited.edit("shop.b", "shop.c"), "shop.c", "Give it one")
    edited.looks()
    trouble(edited.watch, "shop.c")


def offer(what: Rig, *include: str) -> None:
    what.file.offered = Tables(include=include)


def until(what: Rig, holds: Callable[[], Any]) -> None:
    """Runs until it holds, then stops and drains."""
    held: list[bool] = []

    def watch() -> None:
        end = time.monotonic() + 20
        while time.monotonic() < end and not holds():
            time.sleep(0.002)
        held.append(bool(holds()))
        what.stop.set()

    thread = threading.Thread(target=watch)
    thread.start()
    with pytest.raises(Stopping):
        what.stream.run()
    thread.join()
    assert held == [True]
    assert what.stream.delivery.drain(10)


def followed(what: Rig) -> bool:
    return what.file.offered is None


def test_other_tables_are_followed_from_the_end_of_a_transaction() -> None:
    """The checkpoint that names them stands at that end, and is durable before the first record behind it."""
    binlog = Binlog([transaction(n, [2, 2]) for n in range(1, 5)])
    binlog.wanted = Tables(include=("shop.other",)).match
    what = rig(binlog)
    what.watcher.checkpoint = what.watcher.checkpoint.following(Tables(include=("shop.other",)))
    feed = binlog.feed

    def middle(chunk: bytes) -> Any:
        if binlog.read == 4:  # in the second transaction
            offer(what, "shop.t")
        return feed(chunk)

    binlog.feed = middle  # type: ignore[method-assign]
    until(what, lambda: what.sink.checkpoints() and what.sink.checkpoints()[-1].gtid_set.endswith(":1-4"))
    assert followed(what)
    assert sorted({event["source"]["pos"] for event in what.sink.events()}) == [3100, 4100], "nothing of transaction 2"
    first = next(one for one in what.sink.checkpoints() if one.follows("shop", "t"))
    assert (first.pos, first.gtid_set[-4:]) == (2900, ":1-2")
    assert first.since("shop", "t") == (0, 1, 2900)
    topics = [name for name, *_ in what.sink.records]
    names = [bytes(value) for _, _, value in what.sink.records]
    durable = next(at for at, value in enumerate(names) if b'"shop.t"' in value)
    assert durable < topics.index("sales.shop.t"), "a record came before the checkpoint"


def test_a_source_that_never_rests_is_no_reason_to_wait() -> None:
    """No chunk but the last ends with a transaction."""
    binlog = Binlog([transaction(n, [1, 1]) for n in range(1, 10)])
    binlog.wanted = Tables(include=("shop.other",)).match
    what = rig(binlog)
    feed = binlog.feed

    def several(chunk: bytes) -> Any:
        at = int.from_bytes(chunk, "big")
        if at == 6:
            offer(what, "shop.t")
        if at % 3 == 0:  # a transaction's first rows event, with what is left of the one before
            for one in range(max(0, at - 2), at + 1):
                yield from feed(one.to_bytes(4, "big"))
        elif at == 26:
            yield from feed((25).to_bytes(4, "big"))
            yield from feed(chunk)

    binlog.feed = several  # type: ignore[method-assign]
    until(what, lambda: str(what.ledger.released).endswith(":1-9"))
    assert {event["source"]["pos"] for event in what.sink.events()} == {1000 * n + 100 for n in range(4, 10)}


def test_a_table_that_is_taken_out_ends_with_a_whole_transaction() -> None:
    binlog = Binlog([transaction(n, [1, 1]) for n in range(1, 4)])
    what = rig(binlog)
    feed = binlog.feed

    def middle(chunk: bytes) -> Any:
        if binlog.read == 1:
            offer(what, "shop.other")
        return feed(chunk)

    binlog.feed = middle  # type: ignore[method-assign]
    until(what, lambda: what.ledger.released and str(what.ledger.released).endswith(":1-3"))
    assert [event["source"]["pos"] for event in what.sink.events()] == [1100, 1100]
    assert what.stream.router.counts() == {}
    assert not what.sink.checkpoints()[-1].follows("shop", "t")


def test_an_idle_stream_takes_them_at_once_and_asks_for_the_topic_of_one_that_comes_again() -> None:
    binlog = Binlog([transaction(1, [1])])
    what = rig(binlog)
    asked: list[str] = []
    what.stream.router._ensure = lambda wanted: [asked.append(one.name) for one in wanted] and []  # type: ignore[func-returns-value]
    until(what, lambda: what.sink.checkpoints())
    for tables in ("shop.other", "shop.t"):
        what.stop.clear()
        offer(what, tables)
        until(what, lambda: followed(what))
    what.stop.clear()
    binlog.transactions.append(transaction(2, [1]))
    until(what, lambda: len(what.sink.events()) == 2)
    assert asked == ["sales.shop.t"] * 2


def test_an_open_xa_transaction_is_waited_for(edited: Edited) -> None:
    """Its rows of the new table were not kept."""
    binlog = Binlog([transaction(1, [1])])
    what = rig(binlog)
    what.prepared.prepare(b"x", Held(), "u:9", "")
    offer(what, "shop.t", "shop.u")
    report = Report(what.file.pipeline, what.status)
    report.file = what.file
    until(what, lambda: what.sink.checkpoints() and report.as_dict()["tables"]["reload"])
    assert not followed(what)
    assert "prepared by u:9" in report.as_dict()["tables"]["reload"]["message"]
    what.stop.clear()
    what.prepared.end(b"x")
    until(what, lambda: followed(what))
    assert report.as_dict()["tables"] == {
        "include": ["shop.t", "shop.u"], "exclude": [], "cascades": [], "pending": False, "reload": None,
        "without_key": [], "changes_only": [], "not_yet_snapshotted": {},
    }  # fmt: skip


def test_the_status_shows_what_is_followed_and_why_the_file_is_not(edited: Edited) -> None:
    what = rig(Binlog([]))
    report = Report(edited.watch.pipeline, what.status)
    report.file = edited.watch
    edited.edit("shop.a", "shop")
    out = StringIO()
    show_status(Console(width=200, file=out), report.as_dict())
    text = out.getvalue()
    assert "pipeline file not taken" in text
    assert "tables.include" in text
    assert report.as_dict()["tables"]["include"] == ["shop.a"]


def test_the_thread_looks_by_itself_for_as_long_as_the_run_lasts(
    edited: Edited, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watched, "LOOK_SECONDS", 0.01)
    edited.path.write_text(FILE.replace("shop.a", "shop.b"))
    fields: list[dict[str, Any]] = []
    monkeypatch.setattr(edited.watch, "_check", lambda _: fields.append(structlog.contextvars.get_contextvars()))
    with structlog.contextvars.bound_contextvars(pipeline="sales"), edited.watch.watching():
        end = time.monotonic() + 10
        while edited.watch.offered is None and time.monotonic() < end:
            time.sleep(0.01)
    assert edited.watch.offered == Tables(include=("shop.b",))
    assert fields == [{"pipeline": "sales"}], "its lines in the log say of which pipeline they are"


def test_a_table_without_a_key_joins_and_is_named() -> None:
    keyless = shape("id", "v")
    keyless.schema = keyless.schema.model_copy(update={"key": ()})
    what = rig(Binlog([transaction(1, [1], keyless)]))
    report = Report(what.file.pipeline, what.status)
    report.attach(None, what.stream, what.ledger, what.watcher, what.checkpoints, what.sink)  # type: ignore[arg-type]
    with capture_logs() as logs:
        until(what, lambda: what.sink.events())
    assert [
        (line["table"], "Exclude it" in line["next_step"]) for line in logs if "without a key" in line["event"]
    ] == [("shop.t", True)]
    assert what.stream.router.keyless() == ["shop.t"]
    assert report._tables(report._parts)["without_key"] == ["shop.t"]
    shown = show_tables({"include": ["shop.*"], "exclude": ["shop.x"], "without_key": ["shop.t"]}, "sales")
    assert shown.startswith("shop.*; not shop.x")
    assert "joined without a key:[/] shop.t" in shown
    assert "foreign keys" not in shown
    shown = show_tables({"include": ["shop.*"], "exclude": [], "cascades": ["shop.t"], "without_key": []}, "sales")
    assert "changed by foreign keys in silence: shop.t; by a schedule, run the DAG sales.snapshot, or" in shown


def test_of_a_table_whose_changes_alone_are_kept_nobody_is_told_to_do_anything() -> None:
    keyless = shape("id", "v")
    keyless.schema = keyless.schema.model_copy(update={"key": ()})
    settings = pipeline()
    keys = [{"tables": ["shop.t"], "changes_only": True}]
    settings = Pipeline.model_validate(settings.model_dump() | {"source": settings.source, "keys": keys})
    what = rig(Binlog([transaction(1, [1], keyless)]), asked=settings)
    report = Report(settings, what.status)
    report.attach(None, what.stream, what.ledger, what.watcher, what.checkpoints, what.sink)  # type: ignore[arg-type]
    with capture_logs() as logs:
        until(what, lambda: what.sink.events())
    assert not [line for line in logs if "without a key" in line["event"]]
    what.watcher.checkpoint = what.watcher.checkpoint.joining({"shop.t": True, "shop.u": True}, (0, 1, 4))
    told = report._tables(report._parts)
    assert (told["without_key"], [*told["not_yet_snapshotted"]]) == ([], ["shop.u"])
    assert told["changes_only"] == ["shop.t"]
    assert "changes only, without rows in the lake: shop.t" in show_tables(told, "sales")


def test_exactly_once_the_checkpoint_is_committed_before_the_transaction_that_has_the_first_record() -> None:
    binlog = Binlog([transaction(n, [2, 2]) for n in range(1, 5)])
    binlog.wanted = Tables(include=("shop.other",)).match
    sink = Transactions([])
    attempt = Attempt(binlog, sink)
    attempt.watcher.checkpoint = attempt.watcher.checkpoint.following(Tables(include=("shop.other",)))
    feed = binlog.feed

    def middle(chunk: bytes) -> Any:
        if binlog.read == 4:
            attempt.stream.swap._file.offered = Tables(include=("shop.t",))
        return feed(chunk)

    binlog.feed = middle  # type: ignore[method-assign]
    assert attempt.until(4)
    names = [name for name, *_ in sink.committed]
    followed = next(at for at, (_, _, value) in enumerate(sink.committed) if b'"shop.t"' in value)
    checkpoint = Checkpoint.read(sink.committed[followed][2])
    assert (checkpoint.pos, checkpoint.since("shop", "t")) == (2900, (0, 1, 2900))
    ends = [sum(sink.batches[: n + 1]) for n in range(len(sink.batches))]
    assert followed < next(end for end in ends if end > followed) <= names.index("sales.shop.t")
    assert names.count("sales.shop.t") == 8


def test_a_section_of_another_form_is_a_change() -> None:
    before = pipeline()
    position = FileCheckpoint(type="file", path=Path("position"))
    assert watched.differing(before, before.model_copy(update={"checkpoints": position})) == ["checkpoints"]
    other = before.model_copy(update={"checkpoints": position})
    assert watched.differing(other, before) == ["checkpoints"]
    again = other.model_copy(update={"checkpoints": FileCheckpoint(type="file", path=Path("elsewhere"))})
    assert watched.differing(other, again) == ["checkpoints.path"]
