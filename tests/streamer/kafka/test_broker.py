"""A broker that shows a certificate of somebody else is refused with the reason, and not waited for."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from contract.pipeline import Kafka
from stack.ports import HOST
from streamer.delivery_errors import BrokerRefusedError, BrokerUnreachableError
from streamer.kafka import broker
from tests.certificates import certificate


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    """Of a server that speaks TLS, and nothing else."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate(tmp_path, "broker"))
    certificate(tmp_path, "stranger")

    def serve() -> None:
        while True:
            client, _ = listener.accept()
            with suppress(OSError), context.wrap_socket(client, server_side=True) as secured:
                secured.recv(1)

    def until_closed() -> None:
        with suppress(OSError):
            serve()

    with socket.create_server((HOST, 0)) as listener:
        threading.Thread(target=until_closed, daemon=True).start()
        yield listener.getsockname()[1]


def settings(port: int, authority: Path) -> Kafka:
    properties = {"security.protocol": "SSL", "ssl.ca.location": str(authority)}
    return Kafka(bootstrap=f"{HOST}:{port}", properties=properties)


def test_a_certificate_of_somebody_else_is_refused_with_the_next_step(port: int, tmp_path: Path) -> None:
    with pytest.raises(BrokerRefusedError, match=r"certificate.*kafka\.properties"):
        broker.answers(settings(port, tmp_path / "stranger.pem"), 1)


def test_one_that_says_nothing_behind_a_good_certificate_is_waited_for(port: int, tmp_path: Path) -> None:
    with pytest.raises(BrokerUnreachableError):
        broker.answers(settings(port, tmp_path / "broker.pem"), 1)
