"""A broker that shows a certificate of somebody else is refused with the reason, and not waited for; settings that the
client does not take are told with their line."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from contract.pipeline import Kafka, PipelineFileError, load
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


FILE = """format: 1
name: shop
source: {host: h, user: u, password_file: secret, server_id: 7}
tables: {include: ["shop.*"]}
lake: {path: lake}
kafka:
  bootstrap: "127.0.0.1:1"
  properties:
"""


@pytest.mark.parametrize(
    ("properties", "line", "key", "words"),
    [
        (["ssl.ca.locaton: ca.pem"], 9, "kafka.properties.ssl.ca.locaton", "No such configuration property"),
        (["retry.backoff.ms: often"], 9, "kafka.properties.retry.backoff.ms", "Invalid value"),
        (["security.protocol: SSL", "ssl.ca.location: /no/ca.pem"], 10, "kafka.properties.ssl.ca.location", "failed"),
        (["security.protocol: SASL_PLAINTEXT", "sasl.mechanisms: NOPE"], 8, "kafka.properties", "mechanism: NOPE"),
    ],
)
def test_a_setting_that_the_client_does_not_take_is_told_with_its_line(
    tmp_path: Path, properties: list[str], line: int, key: str, words: str
) -> None:
    path = tmp_path / "shop.yaml"
    path.write_text(FILE + "".join(f"    {one}\n" for one in properties))
    found = load(path, secrets=False)
    with pytest.raises(PipelineFileError) as caught:
        broker.check(found)
    assert f"{path}:{line}: {key}: " in str(caught.value)
    assert words in str(caught.value)
    with pytest.raises(BrokerRefusedError, match=r"kafka\.properties"):  # of whoever did not ask before
        broker.answers(found.kafka, 1)
