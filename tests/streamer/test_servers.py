"""Which of several servers is read, by what each of them has; no server is asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from contract.checkpoint import Checkpoint
from contract.gtid import GtidSet
from contract.mistake import MistakeError
from contract.pipeline import Pipeline
from contract.pipeline_source import address
from streamer import servers, source
from streamer.delivery_errors import BehindError, WrongServerError
from streamer.errors import HeadraceError, PreflightError, PurgedError, UnreachableError
from streamer.preflight import refusing as preflight
from streamer.servers import Servers
from streamer.source import Facts
from streamer.start import resume as start
from tests import checkpoints
from tests.streamer.fakes import SOURCE, pipeline

OTHER = "00000000-71ca-11e1-9e33-c80aa9429562"
SEEN = GtidSet.parse(f"{SOURCE}:1-10")


def facts(uuid: str = SOURCE, executed: str = "1-20", purged: str = "", **more: Any) -> Facts:
    gtids = [GtidSet.parse(f"{SOURCE}:{text}") if text else GtidSet() for text in (purged, executed)]
    told = {"file": "binlog.000007", "pos": 900, "first_file": "binlog.000002", **more}
    return Facts(1, uuid, "9.7.4", *gtids, **told)


def checkpoint(**changes: Any) -> Checkpoint:
    given = {"epoch": 3, "file": "binlog.000005", "pos": 700, "gtid_set": str(SEEN), "events": 99}
    return checkpoints.checkpoint(**(given | changes))


def test_the_same_server_further_on_keeps_the_epoch() -> None:
    assert start.resume(checkpoint(), facts(), SEEN) == ""


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (facts(OTHER), "another server"),
        (facts(file="binlog.000001", first_file="binlog.000001"), "binlog was begun anew"),
        (facts(file="binlog.000005", pos=699), "binlog was begun anew"),
    ],
    ids=["failover", "reset: an earlier file", "reset: earlier in the file"],
)
def test_other_coordinates_begin_anew_where_gtids_prove_that_nothing_is_lost(found: Facts, why: str) -> None:
    assert why in start.resume(checkpoint(), found, SEEN)
    begun = start.anew(checkpoint(), found)
    assert (begun.epoch, begun.server_uuid, begun.gtid_set) == (4, found.server_uuid, str(SEEN))
    assert begun.place > checkpoint().place
    assert (begun.file, begun.pos) == (found.first_file, 4), "before all that the server can give"


@pytest.mark.parametrize(
    ("found", "half", "error", "words"),
    [
        (facts(executed="1-9"), "", WrongServerError, "reset or restored"),
        (facts(OTHER, executed="1-9"), "", WrongServerError, f"lacks transactions that were streamed: {SOURCE}:10"),
        (facts(OTHER, executed="1-9", replicates=True), "", BehindError, "asks again"),
        (facts(OTHER, executed="1-9", replicates=None), "", BehindError, "asks again"),
        (facts(OTHER, executed="1-10"), f"{SOURCE}:11", WrongServerError, f"{SOURCE}:11"),
        (facts(OTHER, purged="1-12"), "", PurgedError, f"{SOURCE}:11-12"),
        (facts(purged="1-12"), "", PurgedError, f"{SOURCE}:11-12"),
    ],
    ids=["lost", "never had", "catches up", "may catch up", "lacks the half", "purged there", "purged here"],
)
def test_what_is_refused(found: Facts, half: str, error: type[HeadraceError], words: str) -> None:
    with pytest.raises(error, match=words):
        start.resume(checkpoint(), found, SEEN, GtidSet.parse(half))


def test_what_a_server_commits_just_now_it_has_not_lost() -> None:
    now = GtidSet.parse(f"{SOURCE}:10")
    assert start.resume(checkpoint(), facts(executed="1-9", under_way=now), SEEN) == ""
    with pytest.raises(WrongServerError, match=f"streamed: {SOURCE}:9[.] It was reset"):
        start.resume(checkpoint(), facts(executed="1-8", under_way=now), SEEN)
    with pytest.raises(BehindError, match=f"{SOURCE}:10"):
        start.resume(checkpoint(), facts(OTHER, executed="1-9", under_way=now, replicates=True), SEEN)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("db2", ("db2", 3306)), ("db2:3307", ("db2", 3307)), ("[::1]:3307", ("::1", 3307)), ("::1", ("::1", 3306)),
        ("[::1]", ("::1", 3306)),
    ],
)  # fmt: skip
def test_an_address(text: str, expected: tuple[str, int]) -> None:
    assert address(text) == expected


@pytest.mark.parametrize("text", ["", ":3306", "db2:", "db2:0", "db2:65536", "db2:x"])
def test_no_address(text: str) -> None:
    with pytest.raises(MistakeError, match="is no address") as told:
        address(text)
    assert "host or host:port" in told.value.fix


def two(**more: Any) -> Pipeline:
    settings = pipeline()
    changed = settings.source.model_copy(update={"host": "a", "failover": ("b:3307",), **more})
    return settings.model_copy(update={"source": changed})


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> dict[str, Facts | HeadraceError]:
    """What the servers a and b say."""
    told: dict[str, Facts | HeadraceError] = {}

    def ask(server: Any) -> Facts:
        found = told[server.host]
        if isinstance(found, HeadraceError):
            raise found
        return found

    monkeypatch.setattr(source, "facts", ask)
    monkeypatch.setattr(preflight, "refuse", lambda *_: None)
    monkeypatch.setattr(servers, "try_dump", lambda *_: None)
    return told


Answers = dict[str, Facts | HeadraceError]


def away() -> HeadraceError:
    return UnreachableError("connect to", "MySQL", "refused", "Start the server")


def test_the_other_takes_the_place_of_one_that_is_away_and_stays(answers: Answers) -> None:
    answers.update(a=away(), b=facts(OTHER))
    reading = Servers(two())
    found = reading.choose(checkpoint(), SEEN)
    assert (found.source.where, found.anew) == ("b:3307", "another server")
    assert found.source.user == "u"
    answers["a"] = facts()
    again = reading.choose(checkpoint(server_uuid=OTHER), SEEN)
    assert (again.source.host, again.anew) == ("b", "")


def test_the_checkpoints_own_server_is_found_again_behind_any_address(answers: Answers) -> None:
    answers.update(a=facts(), b=facts(OTHER))
    found = Servers(two()).choose(checkpoint(server_uuid=OTHER), SEEN)
    assert (found.source.host, found.anew) == ("b", "")


def test_one_that_lacks_something_is_passed_by_while_the_other_may_come_back(answers: Answers) -> None:
    answers.update(a=away(), b=facts(OTHER, executed="1-9"))
    with pytest.raises(UnreachableError, match=r"a:3306: refused; b:3307: .*lacks transactions") as error:
        Servers(two()).choose(checkpoint(), SEEN)
    assert error.value.retryable


def test_servers_that_all_answer_and_all_lack_something_end_it(answers: Answers) -> None:
    answers.update(a=facts(executed="1-8"), b=facts(OTHER, executed="1-9"))
    with pytest.raises(WrongServerError, match=r"a:3306: .*b:3307: "):
        Servers(two()).choose(checkpoint(), SEEN)


def test_a_replica_may_catch_up_for_some_time(answers: Answers, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr("streamer.servers.time.monotonic", lambda: clock[0])
    answers.update(a=facts(OTHER, executed="1-9", replicates=True))
    settings = pipeline()
    changed = settings.source.model_copy(update={"host": "a", "failover_seconds": 5.0})
    reading = Servers(settings.model_copy(update={"source": changed}))
    choose: Callable[[], Any] = lambda: reading.choose(checkpoint(), SEEN)  # noqa: E731
    with pytest.raises(BehindError):
        choose()
    clock[0] += 4
    with pytest.raises(BehindError):
        choose()
    clock[0] += 2
    with pytest.raises(WrongServerError, match="did not catch up within 5 s"):
        choose()
    answers["a"] = facts(OTHER, replicates=True)
    assert choose().anew == "another server"


def test_a_server_that_is_not_set_up_is_passed_by(answers: Answers, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise PreflightError("checking", "MySQL at b:3307", "binlog_format is STATEMENT", "SET PERSIST ...")

    monkeypatch.setattr(preflight, "refuse", refuse)
    answers.update(a=away(), b=facts(OTHER))
    with pytest.raises(UnreachableError, match="binlog_format is STATEMENT"):
        Servers(two()).choose(checkpoint(), SEEN)
