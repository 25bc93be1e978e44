"""A broker that takes clients by TLS and a password alone: the streamer, its election and its checks log in as
`kafka.properties` says, and a refusal tells what to mend."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from confluent_kafka.admin import AdminClient, ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion

from stack.kafka import SHORT_LIVED, Kafka
from stack.mysql import MySQL
from stack.ports import HOST, free_port
from tests.certificates import certificate
from tests.integration.conftest import discard
from tests.integration.streaming import ROOT, Make, Streamer, arrived, insert

PASSWORD = "of-the-broker"  # of a broker on this machine that lives as long as its test
MODULE = "org.apache.kafka.common.security"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Kafka, int, Path]]:
    """The broker, its port for clients who log in, and the folder of the certificates."""
    folder = tmp_path_factory.mktemp("guarded")
    port, secure, controller = free_port(), free_port(), free_port()
    listeners = f"PLAINTEXT://{HOST}:{port},SECURE://{HOST}:{secure}"
    options = {
        "listeners": f"{listeners},CONTROLLER://{HOST}:{controller}",
        "advertised.listeners": listeners,
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SECURE:SASL_SSL,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
        "listener.name.secure.plain.sasl.jaas.config": (
            f'{MODULE}.plain.PlainLoginModule required user_headrace="{PASSWORD}";'
        ),
        "listener.name.secure.scram-sha-512.sasl.jaas.config": f"{MODULE}.scram.ScramLoginModule required;",
        "listener.name.secure.ssl.keystore.type": "PEM",
        "listener.name.secure.ssl.keystore.location": str(certificate(folder, "broker")),
    }
    kafka = Kafka(folder / "kafka", port, controller, options, java_options=SHORT_LIVED)
    kafka.start()
    scram = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    change = UserScramCredentialUpsertion("headrace", scram, PASSWORD.encode())
    client = AdminClient({"bootstrap.servers": kafka.address})
    for done in client.alter_user_scram_credentials([change]).values():
        done.result(timeout=20)
    yield kafka, secure, folder
    discard(kafka)


def documented() -> dict[str, str]:
    """The example of the docs."""
    page = (ROOT / "docs" / "configuration.md").read_text()
    [example] = [block for block in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL) if "sasl.mechanisms" in block]
    properties: dict[str, str] = yaml.safe_load(example)["kafka"]["properties"]
    return properties


def over(
    make: Make, guarded: tuple[Kafka, int, Path], name: str, mechanism: str, authority: str = "broker"
) -> Streamer:
    kafka, secure, folder = guarded
    own = {"ssl.ca.location": str(folder / f"{authority}.pem"), "sasl.mechanisms": mechanism}
    properties = json.dumps(documented() | own)
    streamer = make(
        name, kafka=kafka, kafka_more=f", properties: {properties}", start="latest\n  high_availability: true"
    )
    streamer.file.write_text(streamer.file.read_text().replace(kafka.address, f"{HOST}:{secure}"))
    return streamer


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_changes_arrive_over_tls_and_sasl(
    make: Make, mysql: MySQL, guarded: tuple[Kafka, int, Path], mechanism: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_PASSWORD", PASSWORD)
    name = "sasl" + mechanism[:5].lower()
    streamer = over(make, guarded, name, mechanism).started()
    insert(mysql, name, 1, 3)
    streamer.wait_until_released()
    assert streamer.command("check").returncode == 0
    assert streamer.stop() == 0
    assert arrived(guarded[0], name) == [1, 2, 3]
    assert PASSWORD not in streamer.log()


@pytest.mark.parametrize("wrong", ["password", "authority"])
def test_a_broker_that_refuses_or_is_another_is_told_without_the_password(
    make: Make, mysql: MySQL, guarded: tuple[Kafka, int, Path], wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_PASSWORD", "guessed" if wrong == "password" else PASSWORD)
    certificate(guarded[2], "stranger")
    authority = "stranger" if wrong == "authority" else "broker"
    found = over(make, guarded, f"saslwrong{wrong}", "PLAIN", authority).command("check")
    assert found.returncode == 1
    text = found.stdout + found.stderr
    assert ("uthentication" if wrong == "password" else "certificate") in text
    assert "kafka.properties" in text
    assert "guessed" not in text
    assert PASSWORD not in text
    assert "Traceback" not in text
