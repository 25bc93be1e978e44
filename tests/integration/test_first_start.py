"""Where a first start begins, on each server: file and position, a time, and what is told of a wrong one."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from contract.checkpoint import Checkpoint
from contract.start_at import FIRST
from stack.database import Database
from streamer import source
from streamer.delivery_errors import StartError
from streamer.errors import PurgedError
from streamer.protocol.model import Commit
from streamer.start import first as first_start
from tests.integration.decoding import executed, found_of, items, nothing, pipeline, purge, run
from tests.integration.decoding import source as read_from

Another = Callable[..., Database]
pytestmark = pytest.mark.usefixtures("streams")


def found(server: Database, start: object) -> tuple[Checkpoint, str]:
    chosen = pipeline(server)
    text = start.isoformat() if isinstance(start, datetime) else str(start)
    chosen = chosen.model_copy(update={"streamer": chosen.streamer.model_copy(update={"start": text})})
    return first_start.first(chosen, source.facts(chosen.source))


def behind(server: Database, checkpoint: Checkpoint) -> list[Commit]:
    """The transactions that a stream from there gives."""
    begin = read_from(server).gtids(checkpoint.gtid_set)
    return [item for item in items(server, begin, executed(server)) if isinstance(item, Commit)]


def written(server: Database) -> list[Commit]:
    """Transactions over two files, the last two so far behind the others as the server's times tell apart."""
    begin = executed(server)
    run(server, *(f"INSERT INTO t VALUES ({n}, 'x', NULL)" for n in range(3)), database="streams")
    run(server, "FLUSH BINARY LOGS", "INSERT INTO streams.t VALUES (10, 'x', NULL)")
    time.sleep(2.1 if server.flavor == "mariadb" else 0.2)
    run(server, "INSERT INTO streams.t VALUES (11, 'x', NULL)", "INSERT INTO streams.t VALUES (12, 'x', NULL)")
    return [item for item in items(server, begin, executed(server)) if isinstance(item, Commit)]


def gtids(commits: list[Commit]) -> list[str]:
    return [commit.gtid for commit in commits]


def test_every_boundary_is_a_start_and_nothing_else(server: Database) -> None:
    commits = written(server)
    for at, commit in enumerate(commits):
        checkpoint, told = found(server, f"{commit.file}:{commit.tx_pos}")
        assert (checkpoint.file, checkpoint.pos) == (commit.file, commit.tx_pos)
        assert gtids(behind(server, checkpoint)) == gtids(commits[at:])
        assert checkpoint.gtid_set in told
    end, _ = found(server, f"{commits[-1].file}:{commits[-1].pos}")
    assert behind(server, end) == []
    first, _ = found(server, f"{commits[3].file}:{FIRST}")
    assert gtids(behind(server, first)) == gtids(commits[3:]), "the start of a file"
    commit = commits[1]
    for inside in (commit.tx_pos + 1, commit.tx_pos + 60, commit.pos - 1):
        with pytest.raises(StartError, match="in the middle of a transaction") as error:
            found(server, f"{commit.file}:{inside}")
        assert re.findall(r":(\d+)", error.value.hint) == [str(commit.tx_pos), str(commit.pos)]


def test_a_time_begins_at_the_first_transaction_that_was_committed_then(server: Database) -> None:
    commits = written(server)
    fourth, fifth = (commits[n].ts_us for n in (3, 4))
    moment = datetime.fromtimestamp((fourth + fifth) / 2_000_000, UTC)
    checkpoint, told = found(server, moment)
    assert gtids(behind(server, checkpoint)) == gtids(commits[4:])
    assert (checkpoint.file, checkpoint.pos) == (commits[4].file, commits[4].tx_pos)
    assert commits[4].gtid in told
    exact, _ = found(server, datetime.fromtimestamp(fifth / 1_000_000, UTC))
    assert gtids(behind(server, exact)) == gtids(commits[4:]), "at it, too"
    earlier, _ = found(server, datetime.fromtimestamp(commits[0].ts_us // 1_000_000 - 1, UTC))
    assert set(gtids(commits)) <= set(gtids(behind(server, earlier))), "from the file before"


def test_a_time_that_the_servers_clock_showed_twice_passes_by_nothing(another: Another) -> None:
    """Pitfall "commit times that go back": a clock that was ahead, and was set back between files, and within one. The
    times of the binlog are those of sessions' clocks here."""
    own = another()
    began = int(time.time()) // 3600 * 3600 - 36_000
    run(own, "CREATE DATABASE a", "CREATE TABLE a.t (id int primary key)")
    made = clocked(own, began, 0, [1])  # the file's minute, and its transactions'
    clocked(own, began, 360, [361, 420])  # ahead
    clocked(own, began, 240, [241, 430])  # set back, and it goes on to the right time once more
    clocked(own, began, 480, [481, 538])  # ahead again, and set back in this file
    clocked(own, began, 490, [491, 540])
    purge(own, made)
    earliest, _ = found(own, "earliest")
    commits = behind(own, earliest)
    minutes = [(commit.ts_us // 1_000_000 - began) // 60 for commit in commits]
    assert minutes == [1, 361, 420, 241, 430, 481, 538, 491, 540]
    for minute in (5, 245, 330, 361, 400, 425, 500, 539):
        first = next(at for at, its in enumerate(minutes) if its >= minute)
        checkpoint, told = found(own, datetime.fromtimestamp(began + 60 * minute, UTC))
        assert gtids(behind(own, checkpoint)) == gtids(commits[first:]), minute
        assert commits[first].gtid in told


def clocked(server: Database, began: int, made: int, commits: list[int]) -> str:
    """A binlog file that is made in a minute since `began`, and transactions; its name."""

    def at(minute: int) -> list[str]:
        second = began + 60 * minute
        its_own = [] if server.flavor == "mariadb" else [f"SET original_commit_timestamp = {second}000000"]
        return [f"SET timestamp = {second}", *its_own]

    run(server, *at(made), "FLUSH BINARY LOGS")
    name = list(source.files(read_from(server)))[-1]
    for commit in commits:
        run(server, *at(commit), f"INSERT INTO a.t VALUES ({commit})")
    return name


def test_a_time_since_which_nothing_was_committed_is_the_end(server: Database) -> None:
    run(server, "INSERT INTO streams.t VALUES (1, 'x', NULL)")
    time.sleep(1.1)
    checkpoint, told = found(server, datetime.now(UTC))
    assert "no transaction was committed since" in told
    assert behind(server, checkpoint) == []


def test_a_time_that_has_not_come_is_refused(server: Database) -> None:
    with pytest.raises(StartError, match="the time has not come"):
        found(server, datetime.now(UTC) + timedelta(hours=1))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda file, size: f"other.{file.rpartition('.')[2]}:4", "has no binlog file other"),
        (lambda file, size: f"{file[:-6]}099999:4", "has no binlog file"),
        (lambda file, size: f"{file}:{size + 1}", "ends at"),
    ],
    ids=["another name", "not yet", "beyond the end"],
)
def test_a_place_that_is_none_is_refused(server: Database, change: Any, words: str) -> None:
    file, size = list(source.files(read_from(server)).items())[-1]
    with pytest.raises(StartError, match=words) as error:
        found(server, change(file, size))
    assert file in str(error.value), "it says what there is"


def test_a_gtid_set_that_the_server_has_not_is_refused(server: Database) -> None:
    run(server, *(f"INSERT INTO t VALUES ({n}, 'x', NULL)" for n in range(3)), database="streams")
    known = str(executed(server))
    assert found(server, known)[0].gtid_set == known
    if server.flavor == "mariadb":
        own = known.split("-")
        wrong = [f"{own[0]}-{own[1]}-{int(own[2]) + 1}", f"{known},9-9-9", f"{own[0]}-999-{int(own[2]) - 1}"]
    else:
        uuid, spans = known.split(":", 1)
        last = int(spans.rpartition("-")[2])
        wrong = [f"{uuid}:1-{last + 1}", f"{known},77777777-7777-7777-7777-777777777777:1-5"]
    for each in wrong:
        with pytest.raises(StartError, match=r"has not executed|not in the master's binlog") as error:
            found(server, each)
        assert "streamer.start" in error.value.hint
        assert error.value.object.endswith(each)


@pytest.mark.lacks("mariadb", "its transactions always have GTIDs")
def test_earliest_is_refused_where_a_binlog_begins_without_gtids(another: Another) -> None:
    """By GTID the server would begin behind all of it, and say nothing."""
    server = another(options=["gtid_mode=OFF", "enforce_gtid_consistency=OFF"])
    run(server, "CREATE DATABASE a", "CREATE TABLE a.t (id int primary key)", "INSERT INTO a.t VALUES (1)")
    [missing] = found_of(pipeline(server))
    run(server, *(statement for statement in missing.statement.split(";") if statement.strip()))
    run(server, "INSERT INTO a.t VALUES (2)")
    with pytest.raises(StartError, match=r"begins, in binlog\.000001, with transactions without GTIDs.*latest"):
        found(server, "earliest")
    latest, _ = found(server, "latest")
    run(server, "INSERT INTO a.t VALUES (3)")
    assert len(behind(server, latest)) == 1
    purge(server, list(source.files(read_from(server)))[-1])
    earliest, _ = found(server, "earliest")
    assert len(behind(server, earliest)) == 2, "those without are purged"


def test_before_a_whole_binlog_is_its_beginning_and_before_a_purged_one_is_refused(another: Another) -> None:
    server = another()
    run(server, "CREATE DATABASE a", "FLUSH BINARY LOGS", "CREATE DATABASE b", "FLUSH BINARY LOGS")
    whole, _ = found(server, datetime(2001, 1, 1, tzinfo=UTC))
    assert whole.gtid_set == str(nothing(server))
    assert len(behind(server, whole)) == 2
    before = datetime.now(UTC)
    time.sleep(1.1)
    run(server, "FLUSH BINARY LOGS", "CREATE DATABASE c")
    last = list(source.files(read_from(server)))[-1]
    purge(server, last)
    with pytest.raises(PurgedError, match=r"has purged binlog\.000001"):
        found(server, "binlog.000001:4")
    with pytest.raises(PurgedError, match="what was before is purged"):
        found(server, before - timedelta(seconds=1))
    earliest, _ = found(server, "earliest")
    assert len(behind(server, earliest)) == 1, "database c"


@pytest.mark.parametrize("start", ["latest", "earliest"])
def test_no_transaction_of_the_stream_stands_before_the_first_checkpoint(server: Database, start: str) -> None:
    run(server, "FLUSH BINARY LOGS")
    purge(server, list(source.files(read_from(server)))[-1])  # other tests write what no stream goes past
    checkpoint, _ = found(server, start)
    run(server, "INSERT INTO streams.t VALUES (1, 'x', NULL)")
    for commit in behind(server, checkpoint):
        assert (commit.file, commit.tx_pos) >= (checkpoint.file, checkpoint.pos)


@pytest.mark.lacks("mysql80", "its build has no plugin that makes a commit wait")
@pytest.mark.lacks("mariadb", "its GTID position is a place in the binlog, and snapshots wait until they see up to it")
def test_positions_ahead_of_visibility_at_latest(another: Another) -> None:
    """Pitfall "Positions ahead of visibility": a transaction that is in the binlog and not yet committed (it waits for
    a replica) when the pipeline begins at latest is streamed, behind the first checkpoint, so that no snapshot's row
    passes for newer than it."""
    server = another()
    run(
        server,
        "INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'",
        "SET GLOBAL rpl_semi_sync_source_timeout = 20000",
        "SET GLOBAL rpl_semi_sync_source_wait_point = 'AFTER_SYNC'",
    )
    run(server, "CREATE DATABASE late", "CREATE TABLE late.t (id INT PRIMARY KEY)")
    run(server, "SET GLOBAL rpl_semi_sync_source_enabled = ON")
    size = list(source.files(read_from(server)).values())[-1]
    writing = threading.Thread(target=lambda: run(server, "INSERT INTO late.t VALUES (1)"))
    writing.start()
    until = time.monotonic() + 10
    while list(source.files(read_from(server)).values())[-1] == size:
        assert time.monotonic() < until
        time.sleep(0.02)
    checkpoint, _ = found(server, "latest")
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT COUNT(*) FROM late.t")
        assert cursor.fetchone() == (0,), "it is not visible yet"
    run(server, "SET GLOBAL rpl_semi_sync_source_enabled = OFF")
    writing.join(30)
    [late] = behind(server, checkpoint)
    assert (late.file, late.tx_pos) >= (checkpoint.file, checkpoint.pos)
