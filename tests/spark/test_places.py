"""P0 lies behind what the server had executed when the shapes were known; a streamer that stays behind is told of."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from contract.checkpoint import Checkpoint
from spark.errors import LakeError
from spark.mending import choice
from spark.snapshot import places
from spark.snapshot.places import Places
from spark.source.source import Source
from spark.source.streamed import streamed
from tests.checkpoints import SOURCE, checkpoint
from tests.streamer.fakes import pipeline


class Executed:
    def executed(self) -> str:
        return f"{SOURCE}:1-10"


def at(last: int, **changes: Any) -> Checkpoint:
    return checkpoint(gtid_set=f"{SOURCE}:1-{last}", server_uuid=SOURCE, **changes)


def over(*found: Checkpoint | None, **more: Any) -> Places:
    looks: Iterator[Checkpoint | None] = iter(found)
    return Places(Executed(), at(5), lambda: next(looks), **more)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "STEP", 0.01)
    monkeypatch.setattr(places, "PATIENCE", 0.1)


def test_it_waits_for_the_first_checkpoint_that_has_all_of_it() -> None:
    told: list[str] = []
    refused: list[Checkpoint] = []
    waiting = over(at(5), None, at(7), at(7), at(12), refuse=refused.append, tell=told.append)
    assert waiting.now() == at(12)
    assert refused == [at(7), at(12)]
    assert told == ["waiting until the streamer has released what the server has executed by now"]
    assert waiting.now() == at(12)  # without another look


def test_a_stream_by_file_and_position_is_refused_with_the_statements_that_give_gtids() -> None:
    with pytest.raises(LakeError, match=r"goes by file and position.*SET PERSIST gtid_mode = ON; on the server"):
        streamed(pipeline(), at(5, by_place=True))


def test_a_streamer_that_stands_still_is_told_with_both_places() -> None:
    with pytest.raises(LakeError, match=rf"{SOURCE}:1-6, and nothing more.*{SOURCE}:1-10.*headrace status"):
        over(*[at(6)] * 1000).now()


@pytest.mark.parametrize("change", [{"epoch": 1}, {"server_uuid": "another"}])
def test_a_streamer_that_moves_meanwhile_ends_the_wait(change: dict[str, Any]) -> None:
    with pytest.raises(LakeError, match=r"moved to another server.*run the snapshot again"):
        over(at(12).model_copy(update=change)).now()


def test_a_repair_is_told_of_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """By each part that waits or refuses for it, and not as the snapshot whose rules it reads by."""
    job, stands = "the repair", at(5, tables={"include": ("shop.items",), "exclude": ()})
    source: Any = SimpleNamespace(pipeline=pipeline(), executed=Executed().executed, replica=True, awake=lambda: None)
    source.wait_for = lambda *given: Source.wait_for(source, *given)
    source.server, source.row = SimpleNamespace(applied=lambda *_: False), None
    monkeypatch.setattr(choice, "Broker", lambda _: SimpleNamespace(checkpoint=lambda: stands))
    monkeypatch.setattr(choice, "streamed", lambda *_: nullcontext(source))
    monkeypatch.setattr(choice, "reading", lambda _: nullcontext(source))
    monkeypatch.setattr(choice, "refuse_others", lambda *_: None)
    none: Any = None
    with (
        pytest.raises(LakeError, match=f"then run {job} again"),
        choice.source_of(none, pipeline(), none, [("a", "b")], job),
    ):
        pass
    with choice.source_of(none, pipeline(), none, [("shop", "items")], job) as staging:
        assert staging.load.job == job
        with pytest.raises(LakeError, match=f"{job} begins behind that.*then run {job} again"):
            staging.begin()
        stands = at(12)
        with pytest.raises(LakeError, match=rf"when {job} began.*then run {job} again"):
            staging.begin()
