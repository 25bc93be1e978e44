"""A broker that takes clients by TLS and a password alone, and lets them do what its ACLs say: the streamer, its
election, its checks and the Spark jobs log in as `kafka.properties` says, need the rights that the docs name and no
more, and a refusal tells what to mend."""

from __future__ import annotations

import argparse
import json
import re
import shlex
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest
import yaml
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from pyspark.sql import SparkSession

from contract.pipeline import load
from spark.compaction.compaction import compact
from spark.jobs.snapshot import snapshot
from spark.jobs.verify import verify
from stack.kafka import SHORT_LIVED, Kafka
from stack.mysql import MySQL
from stack.ports import HOST, free_port
from tests.certificates import certificate
from tests.integration.conftest import discard
from tests.integration.streaming import ROOT, Make, Streamer, arrived, fails, insert

PASSWORD = "of-the-broker"  # of a broker on this machine that lives as long as its test
RESOURCES = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional_id": ResourceType.TRANSACTIONAL_ID,
}
OPERATIONS = {
    "Create": AclOperation.CREATE,
    "DescribeConfigs": AclOperation.DESCRIBE_CONFIGS,
    "Read": AclOperation.READ,
    "Write": AclOperation.WRITE,
}
MODULE = "org.apache.kafka.common.security"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Kafka, int, Path]]:
    """The broker, its port for clients who log in, and the folder of the certificates."""
    folder = tmp_path_factory.mktemp("guarded")
    port, secure, controller = free_port(), free_port(), free_port()
    listeners = f"PLAINTEXT://{HOST}:{port},SECURE://{HOST}:{secure}"
    users = " ".join(f'user_{user}="{PASSWORD}"' for user in ("headrace", *RESOURCES))
    options = {
        "listeners": f"{listeners},CONTROLLER://{HOST}:{controller}",
        "advertised.listeners": listeners,
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SECURE:SASL_SSL,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
        "listener.name.secure.plain.sasl.jaas.config": f"{MODULE}.plain.PlainLoginModule required {users};",
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


def grant(kafka: Kafka, name: str, user: str = "headrace", without: Collection[str] = ()) -> None:
    """The rights of the docs' commands, for the pipeline of this name; `without`: kinds of resources left out."""
    page = (ROOT / "docs" / "configuration.md").read_text().replace("\\\n", " ")
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--operation", action="append")
    parser.add_argument("--resource-pattern-type", default="literal")
    for kind in RESOURCES:
        parser.add_argument(f"--{kind.replace('_', '-')}")
    bindings = []
    for line in re.findall(r"^kafka-acls.sh (.*)", page, re.MULTILINE):
        given = vars(parser.parse_known_args(shlex.split(line.replace("shop", name)))[0])
        [kind] = [kind for kind in RESOURCES if given[kind]]
        pattern = ResourcePatternType[given["resource_pattern_type"].upper()]
        about = RESOURCES[kind], given[kind], pattern, f"User:{user}", "*"
        if kind not in without:
            bindings += [AclBinding(*about, OPERATIONS[one], AclPermissionType.ALLOW) for one in given["operation"]]
    client = AdminClient({"bootstrap.servers": kafka.address})
    for done in client.create_acls(bindings).values():
        done.result(timeout=20)


def over(
    make: Make,
    guarded: tuple[Kafka, int, Path],
    name: str,
    mechanism: str,
    authority: str = "broker",
    user: str = "headrace",
) -> Streamer:
    kafka, secure, folder = guarded
    own = {
        "ssl.ca.location": str(folder / f"{authority}.pem"),
        "sasl.mechanisms": mechanism,
        "sasl.username": user,
    }
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
    grant(guarded[0], name)
    streamer = over(make, guarded, name, mechanism).started()
    insert(mysql, name, 1, 3)
    streamer.wait_until_released()
    checked = streamer.command("check")
    assert checked.returncode == 0, checked.stdout
    assert streamer.stop() == 0
    assert arrived(guarded[0], name) == [1, 2, 3]
    assert PASSWORD not in streamer.log()


@pytest.mark.usefixtures("without_expectations")
def test_the_spark_jobs_read_what_the_documented_rights_allow(
    make: Make, mysql: MySQL, guarded: tuple[Kafka, int, Path], monkeypatch: pytest.MonkeyPatch, spark: SparkSession
) -> None:
    monkeypatch.setenv("KAFKA_PASSWORD", PASSWORD)
    monkeypatch.setenv("TEST_PASSWORD", mysql.password)
    name = "saslspark"
    grant(guarded[0], name)
    streamer = over(make, guarded, name, "SCRAM-SHA-512")
    streamer.file.write_text(streamer.file.read_text() + "snapshot: {to_kafka: true}\n")
    streamer.started()
    insert(mysql, name, 1, 3)
    pipeline = load(streamer.file)
    snapshot(spark, pipeline, [])
    insert(mysql, name, 4, 3)
    streamer.wait_until_released()
    compact(spark, pipeline)
    assert verify(spark, pipeline, [])["tables"][f"{name}.t"]["lake_count"] == 6


@pytest.mark.parametrize("missing", ["topic", "group", "transactional_id"])
def test_a_right_that_is_missing_ends_a_start(
    make: Make, guarded: tuple[Kafka, int, Path], missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_PASSWORD", PASSWORD)
    name = f"saslno{missing[:5]}"
    grant(guarded[0], name, missing, [missing])
    streamer = over(make, guarded, name, "PLAIN", user=missing)
    told = fails(streamer, "broker_refused", "uthoriz", "Mend the broker's rights")
    assert PASSWORD not in told


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
