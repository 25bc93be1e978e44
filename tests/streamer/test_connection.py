"""What a server's refusal means: which ones are waited for. The server here answers each login with an error."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from struct import pack
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import SecretStr

from contract.gtid import GtidSet
from contract.pipeline import Source
from streamer import source
from streamer.connection import BinlogConnection, Silence, connect
from streamer.connection_errors import dump_error
from streamer.errors import (
    AccessDeniedError,
    BegunAnewError,
    ConnectionLostError,
    HeadraceError,
    PurgedError,
    ServerIdInUseError,
    SourceRefusedError,
    UnreachableError,
)
from streamer.preflight.checks import run_checks
from streamer.protocol.packets import ServerAnswerError
from tests.streamer.fakes import pipeline


@contextmanager
def refusing(code: int, message: str) -> Iterator[Source]:
    """A server that ends every connection with this error, as MySQL does before the login."""
    body = b"\xff" + pack("<H", code) + message.encode()
    packet = pack("<I", len(body))[:3] + b"\0" + body
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    client, _ = listener.accept()
                except OSError:
                    return
                with client:
                    client.sendall(packet)

        threading.Thread(target=serve, daemon=True).start()
        port = listener.getsockname()[1]
        yield Source(host="127.0.0.1", port=port, user="u", password="s3cret", server_id=7)  # type: ignore[arg-type]
        listener.shutdown(socket.SHUT_RDWR)


def test_a_name_that_no_host_has_and_a_password_that_is_no_text_are_told(tmp_path: Path) -> None:
    given = pipeline().source
    with pytest.raises(SourceRefusedError, match=r"no host has such a name.*source\.host"):
        connect(given.model_copy(update={"host": "a" * 300}), 1)
    (tmp_path / "password").write_bytes(b"\xff\xfe")
    file = given.model_copy(update={"password": None, "password_file": tmp_path / "password"})
    with pytest.raises(AccessDeniedError, match="it is no UTF-8 text"):
        connect(file, 1)


def test_a_frozen_server_is_given_up_within_the_connect_timeout() -> None:
    """Its kernel takes the connection, and nobody greets."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        server = pipeline().source.model_copy(update={"host": "127.0.0.1", "port": port, "connect_timeout_seconds": 1})
        began = time.monotonic()
        with pytest.raises(UnreachableError):
            source.facts(server)
        assert time.monotonic() - began < 5


def test_a_password_is_sent_as_the_server_knows_it_and_the_session_is_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers keep a hash of the password's UTF-8; of foreign keys MariaDB tells by SHOW CREATE TABLE, whose quotes go
    by the session's sql_mode."""
    given: dict[str, Any] = {}

    def login(**settings: Any) -> Any:
        given.update(settings)
        return SimpleNamespace()

    monkeypatch.setattr("pymysql.connect", login)
    connect(pipeline().source.model_copy(update={"password": SecretStr("ключ ß")}), read_timeout=5)
    assert given["password"] == "ключ ß".encode()
    assert "sql_mode = ''" in given["init_command"]
    assert "sql_quote_show_create = 1" in given["init_command"]


def silent_for(*pauses: float) -> Iterator[socket.socket]:
    """A dump's socket, which gives something behind each of the pauses, in seconds, and then no more."""
    ours, theirs = socket.socketpair()

    def speak() -> None:
        for pause in pauses:
            time.sleep(pause)
            theirs.sendall(b"bytes")

    speaking = threading.Thread(target=speak)
    speaking.start()
    yield ours
    speaking.join()
    ours.close()
    theirs.close()


def heard(silence: Silence, *pauses: float) -> str:
    """Why a dump with such pauses ended, where twice the heartbeat is 0.2 s."""
    server = pipeline().source.model_copy(update={"heartbeat_seconds": 0.1})
    for sock in silent_for(*pauses):
        with pytest.raises(ConnectionLostError) as lost:
            list(BinlogConnection(server, GtidSet(), silence=silence)._received(sock))
    return lost.value.cause


def test_a_server_that_says_no_more_than_a_dumps_beginning_is_given_twice_the_time_each_time() -> None:
    """It may look long for the place, in a large file, and begins anew at each connection."""
    silence = Silence()
    assert "nothing came for 0.2 s" in heard(silence, 0)
    assert "nothing came for 0.4 s" in heard(silence, 0)
    assert silence.times == 4
    assert "nothing came for 0.2 s" in heard(silence, 0, 0.6), "it has answered, so that silence is what it was"
    assert silence.times == 1


def test_a_missing_right_is_told_with_its_statement() -> None:
    told = "GRANT SELECT, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO u"
    with (
        refusing(1227, "Access denied; you need (at least one of) the REPLICATION CLIENT privilege(s)") as server,
        pytest.raises(AccessDeniedError, match=re.escape(told)),
    ):
        connect(server, read_timeout=5)


@pytest.mark.parametrize(
    ("code", "message", "kind"),
    [
        (1040, "Too many connections", UnreachableError),
        (1203, "User u already has more than 'max_user_connections' active connections", UnreachableError),
        (1226, "User 'u' has exceeded the 'max_user_connections' resource", UnreachableError),
        (3032, "The server is currently in offline mode", UnreachableError),
        (1053, "Server shutdown in progress", UnreachableError),
        (1045, "Access denied for user 'u'", AccessDeniedError),
        (1129, "Host is blocked", SourceRefusedError),
    ],
)
def test_every_way_to_the_server_says_the_same(code: int, message: str, kind: type[HeadraceError]) -> None:
    with refusing(code, message) as server:
        chosen = pipeline().model_copy(update={"source": server})
        ways = [
            lambda: connect(server, read_timeout=5),
            lambda: source.facts(server),
            lambda: source.tables(chosen),
            lambda: run_checks(chosen),
            lambda: list(BinlogConnection(server, GtidSet()).chunks()),
        ]
        for way in ways:
            with pytest.raises(kind, match=message) as caught:
                way()
            assert caught.value.retryable is (kind is UnreachableError)
            assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("code", [1040, 1053, 1226, 3032])
def test_a_dump_that_ends_with_it_is_opened_again(code: int) -> None:
    server = pipeline().source
    error = dump_error(server, code, "some words")
    assert type(error) is ConnectionLostError
    assert error.retryable


def test_a_dump_of_a_binlog_that_was_reset_meanwhile_is_opened_again() -> None:
    """MySQL's words; what is really gone the next login tells."""
    message = (
        "could not find next log; the first event 'binlog.000003' at 157, the last event read from './binlog.000003'"
    )
    assert type(dump_error(pipeline().source, 1236, message)) is ConnectionLostError


@pytest.mark.parametrize(
    ("message", "kind", "hint"),
    [
        ("connecting slave requested to start from GTID 0-7-3, which is not in the master's binlog", SourceRefusedError,
         "another server"),
        ("Could not find GTID state requested by slave in any binlog files. Probably the slave state is too old and "
         "required binlog files have been purged.", PurgedError, "new snapshot"),
        ("Cannot replicate because the source purged required binary logs", PurgedError, "new snapshot"),
        ("A slave with the same server_uuid/server_id as this slave has connected to the master", ServerIdInUseError,
         "another server_id"),
    ],
)  # fmt: skip
def test_what_a_dump_is_refused_for(message: str, kind: type[HeadraceError], hint: str) -> None:
    error = dump_error(pipeline().source, 1236, message)
    assert type(error) is kind
    assert hint in error.hint
    assert not error.retryable


def test_a_dump_that_cannot_go_on_in_a_file_that_a_reset_removed_is_opened_again() -> None:
    """As 8.0.15 and 9.7 say it; where the file is broken, the third time ends the stream."""
    told = "I/O error reading log event; the first event '' at 4, the last event read from './binlog.000001' at 3398"
    dump = BinlogConnection(pipeline().source, GtidSet())
    assert type(dump.answered(ServerAnswerError(1236, told))) is BegunAnewError
    assert type(dump.answered(ServerAnswerError(1236, "bogus data in log event"))) is SourceRefusedError
