"""The pipeline file's section `source.tls`: how the connections to the server are encrypted, and whom they trust."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from contract.mistake import MistakeError
from contract.pipeline_kafka import Section

Mode = Literal["disabled", "preferred", "required", "verify_ca", "verify_identity"]
VERIFYING: tuple[Mode, ...] = ("verify_ca", "verify_identity")
ENCRYPTING: tuple[Mode, ...] = ("required", *VERIFYING)


class Tls(Section):
    """As MySQL's own clients know it. Files are PEM."""

    mode: Mode = Field("preferred", description="preferred: where the server offers it, and with whoever answers")
    ca_file: Path | None = Field(None, description="authorities to trust; without it those of the machine")
    cert_file: Path | None = Field(None, description="the client's certificate, and those above it")
    key_file: Path | None = Field(None, description="its key, without a password")

    @model_validator(mode="after")
    def _trusts_by_its_file(self) -> Tls:
        if self.ca_file is not None and self.mode not in VERIFYING:
            raise MistakeError(
                f"ca_file says whom to trust, and mode {self.mode} trusts whoever answers",
                "write mode: verify_identity (or verify_ca, which does not look at the host's name), or remove ca_file",
            )
        return self

    @model_validator(mode="after")
    def _shows_a_certificate(self) -> Tls:
        if (self.cert_file is None) != (self.key_file is None):
            missing = "key_file" if self.key_file is None else "cert_file"
            what = "cert_file and key_file, a client's certificate and its key, go together"
            raise MistakeError(what, f"add {missing}, or remove the other one")
        if self.cert_file is not None and self.mode not in ENCRYPTING:
            raise MistakeError(
                f"cert_file is for a connection by TLS, and mode {self.mode} may be without it",
                "write mode: verify_identity, verify_ca or required",
            )
        return self
