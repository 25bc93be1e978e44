"""The pipeline file's `kafka.properties`, which are librdkafka's, in the words of the Java client that Spark uses.

A property of the connection's security is translated, or refused by name: left out in silence, Spark would connect
otherwise than the streamer does. All others tune librdkafka and mean nothing to Spark. Certificates and keys go as
their texts, so that an executor on another machine needs no file.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

from cryptography.hazmat.primitives import serialization

from contract.pipeline import Pipeline
from spark.errors import LakeError

SECURITY = ("ssl.", "sasl.", "security.", "enable.ssl.", "enable.sasl.", "oauthbearer.", "https.")
MODULES = {
    "PLAIN": "plain.PlainLoginModule",
    "SCRAM-SHA-256": "scram.ScramLoginModule",
    "SCRAM-SHA-512": "scram.ScramLoginModule",
}


def spark_options(pipeline: Pipeline) -> dict[str, str]:
    """The options of Spark's Kafka source. Raises LakeError for a property that Spark cannot follow."""
    given = pipeline.kafka.properties
    options: dict[str, str] = {}
    for key, value in given.items():
        if key in RULES:
            options |= RULES[key](key, value)
        elif key.startswith(SECURITY):
            raise _refused(key, "the Java client, by which Spark reads Kafka, has nothing like it: leave it out")
    options |= _login(given) | _private_key(given)
    if ("ssl.keystore.key" in options) != ("ssl.keystore.certificate.chain" in options):
        alone = next(key for key in given if key.startswith(("ssl.key.", "ssl.certificate.")))
        raise _refused(
            alone, "a client's certificate and its key (ssl.certificate.location, ssl.key.location) go together"
        )
    return {f"kafka.{key}": value for key, value in options.items()}


def _refused(key: str, why: str) -> LakeError:
    return LakeError(f"kafka.properties.{key} cannot be used by the Spark jobs: {why}")


Rule = Callable[[str, str], dict[str, str]]


def _same(java: str) -> Rule:
    return lambda key, value: {java: value}


def _elsewhere(key: str, value: str) -> dict[str, str]:
    """A property that has its meaning together with others."""
    return {}


def _upper(java: str) -> Rule:
    return lambda key, value: {java: value.upper()}


def _default(only: str) -> Rule:
    """A property whose one value that Java knows is what Java does anyway."""

    def rule(key: str, value: str) -> dict[str, str]:
        if value.lower() != only:
            raise _refused(key, f"it must be {only}, which is all that the Java client does")
        return {}

    return rule


def _host_check(key: str, value: str) -> dict[str, str]:
    return {key: "" if value == "none" else value}  # Java's word for none is nothing


def _read(key: str, path: str) -> str:
    try:
        pem = Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise _refused(key, f"{path} cannot be read as a file ({error.strerror})") from None
    if "-----BEGIN " not in pem:
        raise _refused(key, f"{path} is no PEM file")
    return pem


def _from_file(text: Rule) -> Rule:
    return lambda key, value: text(key, _read(key, value))


def _authorities(key: str, pem: str) -> dict[str, str]:
    return {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": pem}


def _certificate(key: str, pem: str) -> dict[str, str]:
    return {"ssl.keystore.type": "PEM", "ssl.keystore.certificate.chain": pem}


def _store(key: str, value: str) -> dict[str, str]:
    return {"ssl.keystore.type": "PKCS12", key: value}


def _private_key(given: Mapping[str, str]) -> dict[str, str]:
    """The client's key, opened and in the one form that Java reads: Java 17 knows neither how OpenSSL encrypts keys
    nor the older forms of PEM."""
    key = next((key for key in ("ssl.key.location", "ssl.key.pem") if key in given), None)
    if key is None:
        return {}
    pem = _read(key, given[key]) if key == "ssl.key.location" else given[key]
    password = given.get("ssl.key.password")
    try:
        opened = serialization.load_pem_private_key(pem.encode(), password.encode() if password else None)
    except TypeError:
        raise _refused(key, "the key is encrypted and ssl.key.password missing, or the other way round") from None
    except ValueError:
        raise _refused(key, "it is no private key, or ssl.key.password does not open it") from None
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return {"ssl.keystore.key": opened.private_bytes(*form).decode()}


def _login(given: Mapping[str, str]) -> dict[str, str]:
    """The user's part of SASL."""
    protocol = given.get("security.protocol", "").upper()
    if not protocol.startswith("SASL"):
        return {}
    key = "sasl.mechanism" if "sasl.mechanism" in given else "sasl.mechanisms"
    mechanism = given.get(key, "GSSAPI").upper()  # librdkafka's default
    if mechanism not in MODULES:
        raise _refused(key, f"{mechanism} is not supported there, only {', '.join(MODULES)}")
    # Java's reader of this text knows JSON's escapes, but for \\u.
    user, word = (json.dumps(given.get(f"sasl.{name}", ""), ensure_ascii=False) for name in ("username", "password"))
    module = f"org.apache.kafka.common.security.{MODULES[mechanism]}"
    return {"sasl.jaas.config": f"{module} required username={user} password={word};"}


RULES: dict[str, Rule] = {
    "client.id": _same("client.id"),
    "client.rack": _same("client.rack"),
    "security.protocol": _upper("security.protocol"),
    "sasl.mechanism": _upper("sasl.mechanism"),
    "sasl.mechanisms": _upper("sasl.mechanism"),
    **dict.fromkeys(("sasl.username", "sasl.password"), _elsewhere),  # _login
    "ssl.ca.location": _from_file(_authorities),
    "ssl.ca.pem": _authorities,
    "ssl.certificate.location": _from_file(_certificate),
    "ssl.certificate.pem": _certificate,
    **dict.fromkeys(("ssl.key.location", "ssl.key.pem", "ssl.key.password"), _elsewhere),  # _private_key
    "ssl.keystore.location": _store,
    "ssl.keystore.password": _store,
    "ssl.endpoint.identification.algorithm": _host_check,
    "enable.ssl.certificate.verification": _default("true"),
}
