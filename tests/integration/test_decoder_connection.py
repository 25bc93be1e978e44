"""How a dump from a real server begins and ends: purged, refused, cut, closed."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest
from pydantic import SecretStr

from contract.pipeline import Source
from contract.pipeline_tls import Tls
from spark.source.source import Source as LakesSource
from stack.database import Database
from streamer.connection import BinlogConnection, Silence
from streamer.errors import (
    AccessDeniedError,
    ConnectionLostError,
    HeadraceError,
    PurgedError,
    ServerIdInUseError,
    UnreachableError,
)
from streamer.protocol.model import Item
from streamer.source import facts
from streamer.transaction import BinlogDecoder
from tests.integration.decoding import endless, executed, items, nothing, pipeline, purge, run, shape, source
from tests.integration.proxy import Proxy

pytestmark = pytest.mark.usefixtures("streams")
Another = Callable[..., Database]


def test_a_purged_start_says_what_to_do(another: Another) -> None:
    """Pitfall "Purged position": by the dump itself."""
    server = another()
    run(server, "CREATE DATABASE a", "FLUSH BINARY LOGS", "CREATE DATABASE b", "FLUSH BINARY LOGS")
    purge(server, "binlog.000003")
    with pytest.raises(PurgedError, match="snapshot"):
        list(items(server, nothing(server), executed(server)))


def test_the_second_of_two_streamers_with_one_id_ends_the_first(server: Database) -> None:
    """Pitfall "Two replicas with one server id"."""
    first = items(server, executed(server), endless(server), server_id=4720)
    ended: list[BaseException] = []

    def wait() -> None:
        try:
            list(first)
        except HeadraceError as error:
            ended.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    second = _dumping(server, 4720)
    waiting.join(10)
    second.close()
    assert [type(error) for error in ended] == [ServerIdInUseError]
    assert "4720" in str(ended[0])


def _dumping(server: Database, server_id: int) -> BinlogConnection:
    """A second dump that has begun."""
    time.sleep(1)
    connection = BinlogConnection(source(server, server_id), executed(server))
    threading.Thread(target=lambda: list(connection.chunks()), daemon=True).start()
    time.sleep(1)
    return connection


def test_close_ends_the_chunks_without_an_error(server: Database) -> None:
    connection = BinlogConnection(source(server, 4721), executed(server))
    received: list[bytes] = []
    reading = threading.Thread(target=lambda: received.extend(connection.chunks()))
    reading.start()
    time.sleep(1.5)
    connection.close()
    reading.join(5)
    assert not reading.is_alive()
    assert received, "the start of the file at least"


def test_what_comes_before_a_close_is_whole_however_much_waits_behind(server: Database) -> None:
    begin = executed(server)
    run(server, "CREATE TABLE streams.much (id int primary key, v longtext)")
    run(server, *(f"INSERT INTO much VALUES ({n}, repeat('x', 500000))" for n in range(40)), database="streams")
    connection = BinlogConnection(source(server, 4722), begin)
    decoder = BinlogDecoder(lambda db, table: True)
    for number, chunk in enumerate(connection.chunks()):
        assert all(item.gtid for item in decoder.feed(chunk))
        if number == 5:
            connection.close()
    assert number == 5, "nothing comes behind it: the kernel's rest may lack bytes"


def test_a_server_that_goes_away_is_a_lost_connection(another: Another) -> None:
    server = another()
    threading.Timer(2, server.kill).start()
    with pytest.raises(ConnectionLostError):
        list(items(server, executed(server), endless(server)))
    with pytest.raises(UnreachableError, match="Start the server"):
        list(BinlogConnection(source(server), nothing(server)).chunks())


class Searching(Proxy):
    """As before a server that says where a dump begins, and then looks for the place there for a while."""

    SECONDS = 2.5

    def _forward(self, source: socket.socket, target: socket.socket, answers: bool) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if answers and b"binlog.0" in data:
                    first = 4 + int.from_bytes(data[:3], "little")
                    target.sendall(data[:first])
                    time.sleep(self.SECONDS)
                    target.sendall(data[first:])
                    answers = False
                else:
                    target.sendall(data)


def test_a_server_that_looks_long_for_a_beginning_is_given_more_time_each_time(server: Database) -> None:
    begin = executed(server)
    run(server, "INSERT INTO t (id) VALUES (1)", database="streams")
    proxy = Searching(server.port)
    chosen = source(server, 4725, heartbeat_seconds=0.5).model_copy(
        update={"port": proxy.port, "tls": Tls(mode="disabled")}
    )
    silence, given = Silence(), list[Item]()
    for seconds in (1, 2):
        with pytest.raises(ConnectionLostError, match=rf"nothing came for {seconds}\.\d s"):
            list(BinlogConnection(chosen, begin, silence=silence).chunks())
    reading, decoder = BinlogConnection(chosen, begin, silence=silence), BinlogDecoder(lambda db, table: True)
    until = time.monotonic() + 20
    for chunk in reading.chunks():
        given += decoder.feed(chunk)
        if (given and silence.times == 1) or time.monotonic() > until:
            reading.close()
    assert shape(given) == ["c", "Commit"]
    assert silence.times == 1, "it has answered, so that silence is what it was"
    proxy.cut()


def test_a_wrong_password_is_access_denied(server: Database) -> None:
    wrong = source(server).model_copy(update={"password": type(source(server).password)("no")})
    with pytest.raises(AccessDeniedError) as error:
        list(BinlogConnection(wrong, nothing(server)).chunks())
    assert server.password not in str(error.value)


@pytest.fixture
def someone(server: Database) -> Iterator[Source]:
    """A user of the test's own, whose password is no Latin-1."""
    password = "ключ ß%"
    run(server, "DROP USER IF EXISTS someone", f"CREATE USER someone IDENTIFIED BY '{password}'",
        f"GRANT {server.grants} ON *.* TO someone")  # fmt: skip
    yield source(server, 4724).model_copy(update={"user": "someone", "password": SecretStr(password)})
    run(server, "DROP USER someone")


def test_a_password_is_any_text(server: Database, someone: Source) -> None:
    assert facts(someone).executed
    read = BinlogConnection(someone, executed(server))
    for _ in read.chunks():
        read.close()
    with LakesSource(pipeline(server, user=someone.user, password=someone.secret())) as asked:
        assert asked.rows("SELECT 1")[0][0] == 1


def test_a_user_without_a_free_connection_is_waited_for(server: Database, someone: Source) -> None:
    run(server, "ALTER USER someone WITH MAX_USER_CONNECTIONS 1")
    reading = BinlogConnection(someone, executed(server)).chunks()
    assert next(reading)
    with pytest.raises(UnreachableError, match="MAX_USER_CONNECTIONS of someone"):
        facts(someone)
    reading.close()


@pytest.mark.lacks("mariadb", "it has no offline_mode")
def test_a_server_that_is_taken_offline_is_waited_for(server: Database, someone: Source) -> None:
    reading = BinlogConnection(someone, executed(server)).chunks()
    assert next(reading)
    run(server, "SET GLOBAL offline_mode = ON")
    try:
        with pytest.raises(ConnectionLostError):
            list(reading)
        with pytest.raises(UnreachableError, match="offline_mode = OFF"):
            facts(someone)
    finally:
        run(server, "SET GLOBAL offline_mode = OFF")
    assert facts(someone).executed


@pytest.mark.lacks("mariadb", "it has no such plugin")
def test_caching_sha2_password_with_and_without_the_server_s_cache(server: Database) -> None:
    """The first login goes by the server's RSA key, since there is no TLS; the second by what the server remembers."""
    name = "sha2"
    run(
        server,
        f"DROP USER IF EXISTS {name}",
        f"CREATE USER {name} IDENTIFIED WITH caching_sha2_password BY 'pa%ss word'",
        f"GRANT SELECT, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO {name}",
        "FLUSH PRIVILEGES",
    )
    chosen = source(server).model_copy(update={"user": name, "password": SecretStr("pa%ss word")})
    wrong = chosen.model_copy(update={"password": SecretStr("another")})
    for _ in range(2):
        with pytest.raises(AccessDeniedError):
            facts(wrong)
        assert facts(chosen).executed
        connection = BinlogConnection(chosen, executed(server))
        for _ in connection.chunks():
            connection.close()
    run(server, f"DROP USER {name}")
