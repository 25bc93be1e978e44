"""`source.tls` on real servers: what is encrypted, whom the streamer trusts, and what it says where it does not."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from contract.pipeline_source import Source
from stack.database import Database
from stack.mariadb import MariaDB
from stack.mysql import MySQL
from stack.mysql80 import MySQL80
from streamer.connection import BinlogConnection, connect
from streamer.errors import AccessDeniedError, TlsError
from streamer.source import facts
from streamer.transaction import BinlogDecoder
from tests.integration.conftest import FreshData
from tests.integration.decoding import run, source
from tests.integration.guarded import PASSWORD, Guarded, guarded

KINDS: dict[str, type[Database]] = {"mysql": MySQL, "mysql80": MySQL80, "mariadb": MariaDB}


@pytest.fixture(scope="module", params=KINDS)
def own(request: pytest.FixtureRequest, tmp_path_factory: Any, fresh_data: FreshData) -> Iterator[Guarded]:
    with guarded(KINDS[request.param], tmp_path_factory.mktemp("guarded"), fresh_data) as made:
        yield made


def version(chosen: Source) -> str:
    """Of TLS, as the server tells of the connection; empty without."""
    with connect(chosen, read_timeout=10) as connection, connection.cursor() as cursor:
        cursor.execute("SHOW SESSION STATUS LIKE 'Ssl_version'")
        return str(cursor.fetchone()[1])


def streamed(own: Guarded, chosen: Source, number: int) -> bool:
    """Whether the binlog comes by TLS; the row of that number must have come by it."""
    begin = facts(chosen).executed
    run(own.server, f"INSERT INTO safe.t VALUES ({number}, 'x')")
    connection, decoder = BinlogConnection(chosen, begin), BinlogDecoder(lambda db, table: db == "safe")
    for chunk in connection.chunks():
        found = [item for item in decoder.feed(chunk) if getattr(item, "rows", None)]
        if found:
            encrypted = isinstance(connection._connection._sock, ssl.SSLSocket)  # type: ignore[union-attr]
            connection.close()
            return encrypted
    raise AssertionError("it ended")


MODES: list[tuple[dict[str, Any], bool]] = [
    ({}, True),
    ({"mode": "disabled"}, False),
    ({"mode": "required"}, True),
    ({"mode": "verify_ca", "ca_file": "authority"}, True),
    ({"mode": "verify_identity", "ca_file": "authority"}, True),
]


@pytest.mark.parametrize(("number", "tls", "encrypted"), [(n, *mode) for n, mode in enumerate(MODES)])
def test_each_mode(own: Guarded, number: int, tls: dict[str, Any], encrypted: bool) -> None:
    chosen = own.source(**tls)
    assert version(chosen) in (("TLSv1.2", "TLSv1.3") if encrypted else ("",))
    assert streamed(own, chosen, number) is encrypted


def test_a_user_that_the_server_takes_by_tls_alone(own: Guarded) -> None:
    with pytest.raises(AccessDeniedError, match=r"needs source\.tls"):
        facts(own.source("by_tls", mode="disabled"))
    assert streamed(own, own.source("by_tls", mode="required"), 10)


def test_a_certificate_of_the_clients_as_documented(own: Guarded) -> None:
    with pytest.raises(AccessDeniedError, match=r"X509 needs source\.tls"):
        facts(own.source("by_x509", mode="verify_identity", ca_file="authority"))
    assert streamed(own, own.source("by_x509", **own.documented()), 11)


@pytest.mark.parametrize(
    ("host", "tls", "words"),
    [
        ("127.0.0.1", {"mode": "verify_ca", "ca_file": "stranger"}, "is not trusted"),
        ("127.0.0.1", {"mode": "verify_identity", "ca_file": "stranger"}, "is not trusted"),
        ("localhost", {"mode": "verify_identity", "ca_file": "authority"}, "Hostname mismatch"),
        ("127.0.0.1", {"mode": "verify_identity"}, "is not trusted"),  # by the machine's own authorities
    ],
)
def test_a_server_that_is_not_trusted(own: Guarded, host: str, tls: dict[str, Any], words: str) -> None:
    with pytest.raises(TlsError, match=words) as caught:
        facts(own.source(host=host, **tls))
    assert "source.tls.ca_file" in caught.value.hint
    assert own.server.password not in str(caught.value)
    with pytest.raises(TlsError, match=words):
        list(BinlogConnection(own.source(host=host, **tls), own.source().gtids("")).chunks())


def test_another_name_is_nothing_to_verify_ca(own: Guarded) -> None:
    assert version(own.source(host="localhost", mode="verify_ca", ca_file="authority"))


def test_a_server_that_takes_nothing_but_tls(own: Guarded) -> None:
    run(own.server, "SET GLOBAL require_secure_transport = ON")
    try:
        with pytest.raises(TlsError, match=r"takes connections by TLS alone\. Write source\.tls"):
            facts(own.source(mode="disabled"))
        assert facts(own.source()).executed
    finally:
        run(own.server, "SET GLOBAL require_secure_transport = OFF")


def test_the_first_login_of_caching_sha2_password(own: Guarded) -> None:
    if own.server.flavor == "mariadb":
        pytest.skip("mariadb: it has no such plugin")
    run(
        own.server,
        f"CREATE USER sha2 IDENTIFIED WITH caching_sha2_password BY '{PASSWORD}' REQUIRE SSL",
        f"GRANT {own.server.grants} ON *.* TO sha2",
        "FLUSH PRIVILEGES",  # it remembers nobody
    )
    chosen = own.source("sha2", mode="verify_ca", ca_file="authority")
    assert streamed(own, chosen, 12)
    assert facts(chosen).executed, "and the second"


def test_a_server_without_tls(mariadb: MariaDB) -> None:
    chosen = source(mariadb)
    assert version(chosen) == ""
    required = chosen.model_copy(update={"tls": chosen.tls.model_copy(update={"mode": "required"})})
    asked: tuple[Callable[[], Any], ...] = (
        lambda: facts(required),
        lambda: list(BinlogConnection(required, chosen.gtids("")).chunks()),
    )
    for ask in asked:
        with pytest.raises(TlsError, match=r"the server offers no TLS\. Set ssl_ca"):
            ask()
