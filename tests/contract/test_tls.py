"""`source.tls`: what goes together, and files that cannot be used. Real servers: tests/integration/test_tls.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from contract import tls
from contract.pipeline_source import Source
from contract.pipeline_tls import Tls
from tests.certificates import certificate


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"ca_file": "ca.pem"}, "trusts whoever answers"),
        ({"mode": "required", "ca_file": "ca.pem"}, "trusts whoever answers"),
        ({"mode": "verify_ca", "cert_file": "c.pem"}, "go together"),
        ({"cert_file": "c.pem", "key_file": "k.pem"}, "may be without it"),
        ({"mode": "verify"}, "verify_identity"),
    ],
)
def test_what_would_promise_more_than_it_does_is_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        Tls.model_validate(given)


def test_files_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    both = certificate(tmp_path, "a")
    other = certificate(tmp_path, "b")
    empty, wrong = tmp_path / "empty.pem", tmp_path / "wrong.pem"
    empty.write_text("no certificate")
    wrong.write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    for given, words in (
        ({"ca_file": tmp_path / "gone.pem"}, "gone.pem cannot be read"),
        ({"ca_file": empty}, "empty.pem is no PEM file"),
        ({"ca_file": wrong}, "wrong.pem holds no certificate"),
        ({"cert_file": both, "key_file": other}, "no certificate and its key"),
    ):
        with pytest.raises(tls.TlsFileError, match=words):
            tls.settings(Tls.model_validate({"mode": "verify_ca", **given}))
    assert tls.settings(Tls(mode="verify_identity", ca_file=both, cert_file=both, key_file=both))["ssl"].check_hostname


def test_hosts_are_names_and_addresses_and_nothing_else() -> None:
    def source(host: str, *failover: str) -> Source:
        return Source(host=host, user="u", password="p", server_id=1, failover=failover)  # type: ignore[arg-type]

    assert [one.where for one in source("db-1.example.org", "10.0.0.7", "[fe80::1]:3307").servers()] == [
        "db-1.example.org:3306", "10.0.0.7:3306", "[fe80::1]:3307",
    ]  # fmt: skip
    assert source("[::1]").where == "[::1]:3306"
    for wrong in ("evil:3306/?x=#", "a b", "", "h/x", "u@h", "[::1"):
        with pytest.raises(ValidationError, match="no name of a host"):
            source(wrong)
    with pytest.raises(ValidationError, match="no name of a host"):
        source("h", "evil?x=#:3306")
