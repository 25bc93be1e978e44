"""What the jobs know of Kafka: the place in the commit log, and how Spark is told to connect."""

from __future__ import annotations

import datetime
import ipaddress
import socket
import ssl
import threading
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from pyspark.sql import SparkSession

from contract.checkpoint import Checkpoint
from contract.pipeline import Pipeline
from spark.errors import LakeError
from spark.kafka.broker import Broker
from spark.kafka.reading import Record
from spark.kafka.settings import spark_options
from tests.checkpoints import checkpoint
from tests.spark.sessions import pipeline_in

PASSWORD = "of-the-key"


def record(epoch: int, file: str, pos: int, gtid_set: str, pipeline: str = "shop") -> Record:
    value = checkpoint(pipeline=pipeline, server_uuid="u", epoch=epoch, file=file, pos=pos, gtid_set=gtid_set)
    return told(pipeline, value.model_dump_json().encode())


def told(key: str, value: bytes | None) -> Record:
    return Record(key.encode(), value, "shop.commit-log", 0, 0)


@pytest.mark.parametrize(
    ("log", "found"),
    [
        ([], None),
        ([record(0, "b.000001", 5, "u:1"), record(0, "b.000001", 9, "u:1-2")], "u:1-2"),
        ([record(0, "b.000001", 9, "u:1-2"), record(0, "b.000001", 5, "u:1")], "u:1-2"),
        ([record(0, "b.000010", 5, "u:1-9"), record(0, "b.000009", 99, "u:1-8")], "u:1-9"),
        ([record(1, "b.000001", 4, "v:1"), record(0, "b.000009", 99, "u:1-8")], "v:1"),
        ([record(0, "b.000001", 5, "u:1"), told("shop", None), record(0, "b.000002", 5, "u:7", "other")], "u:1"),
        ([record(0, "b.000001", 5, ""), record(0, "b.000001", 5, "u:1")], "u:1"),
    ],
    ids=["empty", "in order", "an older one appended", "files by number", "epochs", "others", "the same place"],
)
def test_the_greatest_checkpoint_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: list[Record], found: str | None
) -> None:
    monkeypatch.setattr(Broker, "_records", lambda self, topic: iter(log))
    checkpoint = Broker(pipeline_in(tmp_path)).checkpoint()
    assert (checkpoint.gtid_set if checkpoint else None) == found


def test_a_checkpoint_of_topics_that_the_file_does_not_name_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lake would say that it is complete up to there."""
    template, pipeline = "tables.{db}.{table}", pipeline_in(tmp_path)
    value = checkpoint(pipeline="shop", events=1, templates=(pipeline.kafka.topic, template)).model_dump_json()
    monkeypatch.setattr(Broker, "_records", lambda self, topic: iter([told("shop", value.encode())]))
    with pytest.raises(LakeError, match=r'such as tables\.db\.table.*kafka\.earlier_topics: \["tables\.'):
        Broker(pipeline).checkpoint()
    kafka = pipeline.kafka.model_copy(update={"earlier_topics": (template,)})
    assert Broker(pipeline.model_copy(update={"kafka": kafka})).checkpoint()


@pytest.mark.parametrize(
    "log", [checkpoint(pipeline="shop", gtid_set="u:1-9"), checkpoint(pipeline="shop", by_place=True)]
)
def test_a_commit_log_of_a_server_of_another_flavor_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: Checkpoint
) -> None:
    """By each job: compaction asks no server, and ran on the lake of the other pipeline of that name."""
    monkeypatch.setattr(Broker, "_records", lambda self, topic: iter([told("shop", log.model_dump_json().encode())]))
    mysql = pipeline_in(tmp_path)
    assert Broker(mysql).checkpoint() == log
    maria = mysql.model_copy(update={"source": mysql.source.model_copy(update={"flavor": "mariadb"})})
    with pytest.raises(LakeError, match=r"of another flavor, mysql.*Choose another name"):
        Broker(maria).checkpoint()


def with_properties(folder: Path, properties: dict[str, str]) -> Pipeline:
    pipeline = pipeline_in(folder)
    return pipeline.model_copy(update={"kafka": pipeline.kafka.model_copy(update={"properties": properties})})


def test_a_login_is_said_in_javas_words(tmp_path: Path) -> None:
    given = {
        "security.protocol": "sasl_ssl", "sasl.mechanisms": "SCRAM-SHA-512", "sasl.username": "me",
        "sasl.password": 'a"b\\c é', "socket.keepalive.enable": "true", "client.id": "headrace-1",
    }  # fmt: skip
    assert spark_options(with_properties(tmp_path, given)) == {
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "SCRAM-SHA-512",
        "kafka.sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required "
        'username="me" password="a\\"b\\\\c é";',
        "kafka.client.id": "headrace-1",
    }


@pytest.mark.parametrize(
    ("properties", "key", "why"),
    [
        ({"ssl.cipher.suites": "X"}, "ssl.cipher.suites", "has nothing like it"),
        ({"sasl.kerberos.keytab": "X"}, "sasl.kerberos.keytab", "has nothing like it"),
        ({"enable.ssl.certificate.verification": "false"}, "enable.ssl.certificate.verification", "must be true"),
        ({"security.protocol": "sasl_ssl", "sasl.mechanism": "OAUTHBEARER"}, "sasl.mechanism", "not supported"),
        ({"security.protocol": "SASL_PLAINTEXT", "sasl.username": "u"}, "sasl.mechanisms", "GSSAPI is not supported"),
        ({"ssl.ca.location": "/not/there.pem"}, "ssl.ca.location", "No such file"),
        ({"ssl.ca.location": "/"}, "ssl.ca.location", "Is a directory"),
        ({"ssl.ca.location": "/dev/null"}, "ssl.ca.location", "no PEM file"),
        ({"ssl.key.pem": "-----BEGIN RSA PRIVATE KEY-----"}, "ssl.key.pem", "no private key"),
        ({"ssl.key.location": "/not/there.key"}, "ssl.key.location", "No such file"),
        ({"ssl.certificate.pem": "-----BEGIN CERTIFICATE-----"}, "ssl.certificate.pem", "go together"),
    ],
)
def test_what_spark_cannot_follow_is_refused_by_name(
    tmp_path: Path, properties: dict[str, str], key: str, why: str
) -> None:
    with pytest.raises(LakeError) as caught:
        spark_options(with_properties(tmp_path, properties))
    assert f"kafka.properties.{key} cannot be used by the Spark jobs" in str(caught.value)
    assert why in str(caught.value)


@pytest.mark.parametrize("encrypted", [False, True], ids=["plain key", "key with a password"])
def test_the_java_client_shows_the_certificate_of_the_file(
    spark: SparkSession, tmp_path: Path, encrypted: bool
) -> None:
    """Against a server that wants one: the handshake itself."""
    make_certificate(tmp_path, "server", encrypted=False)
    make_certificate(tmp_path, "client", encrypted)
    seen: list[Any] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(20)
        server = threading.Thread(target=accept, args=(listener, tmp_path, seen), daemon=True)
        server.start()
        files = {"ssl.ca.location": "server.crt", "ssl.certificate.location": "client.crt"}
        given = {key: str(tmp_path / name) for key, name in files.items()}
        given |= {"security.protocol": "ssl", "ssl.key.location": str(tmp_path / "client.key")}
        given |= {"ssl.key.password": PASSWORD} if encrypted else {}
        options = spark_options(with_properties(tmp_path, given))
        jvm: Any = spark._jvm
        settings = jvm.java.util.HashMap()
        settings.put("bootstrap.servers", f"127.0.0.1:{listener.getsockname()[1]}")
        for key, value in options.items():
            settings.put(key.removeprefix("kafka."), value)
        admin = jvm.org.apache.kafka.clients.admin.AdminClient.create(settings)
        admin.listTopics()
        server.join(25)
        admin.close(jvm.java.time.Duration.ZERO)
    assert seen == ["client"]


def test_a_key_that_its_password_does_not_open(tmp_path: Path) -> None:
    make_certificate(tmp_path, "client", encrypted=True)
    given = {"ssl.key.location": str(tmp_path / "client.key"), "ssl.certificate.location": str(tmp_path / "client.crt")}
    for more, why in (({"ssl.key.password": "wrong"}, "does not open it"), ({}, "ssl.key.password missing")):
        with pytest.raises(LakeError, match=f"ssl.key.location cannot be used.*{why}") as caught:
            spark_options(with_properties(tmp_path, given | more))
        assert "wrong" not in str(caught.value)


def accept(listener: socket.socket, folder: Path, seen: list[Any]) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(folder / "client.crt"))
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(folder / "server.crt", folder / "server.key")
    try:
        connection, _ = listener.accept()
        with context.wrap_socket(connection, server_side=True) as tls:
            certificate: Any = tls.getpeercert()
            seen.append(dict(part[0] for part in certificate["subject"])["commonName"])
    except OSError as error:
        seen.append(error)


def make_certificate(folder: Path, name: str, encrypted: bool) -> None:
    """`name`.crt, signed by itself for 127.0.0.1, and `name`.key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    day = datetime.timedelta(days=1)
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(subject).public_key(key.public_key())
    builder = builder.serial_number(x509.random_serial_number()).not_valid_before(now - day).not_valid_after(now + day)
    builder = builder.add_extension(address, critical=False)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    certificate = builder.sign(key, hashes.SHA256())
    (folder / f"{name}.crt").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    locked = serialization.BestAvailableEncryption(PASSWORD.encode()) if encrypted else serialization.NoEncryption()
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, locked)
    (folder / f"{name}.key").write_bytes(pem)
