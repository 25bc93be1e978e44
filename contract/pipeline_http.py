"""The pipeline file's section `streamer.http`: the port of status, metrics and page."""

from __future__ import annotations

import errno
import ipaddress
from pathlib import Path

from pydantic import Field, SecretStr, model_validator

from contract import regular_file
from contract.mistake import MistakeError
from contract.pipeline_kafka import Section
from contract.pipeline_secrets import SIZE
from contract.pipeline_source import Port, host_name

SHORTEST = 16  # characters of a token


class Http(Section):
    """`token`: whoever shows it may look; without one that is everybody on this machine, and nobody else."""

    host: str = "127.0.0.1"
    port: Port = 8181
    token: SecretStr | None = Field(None, description="as ${NAME}; one of this and token_file for another host")
    token_file: Path | None = None

    @model_validator(mode="after")
    def _one_token(self) -> Http:
        host_name(self.host)
        if self.token is not None and self.token_file is not None:
            raise MistakeError("has token and token_file, and takes one of them", "remove one of the two")
        if not self.asks and not loopback(self.host):
            raise MistakeError(
                f"whoever reaches {self.host} could read the pipeline's status",
                "give token_file (or token), made with: openssl rand -hex 32; or listen on 127.0.0.1",
            )
        return self

    @property
    def asks(self) -> bool:
        """Whether a token is to be shown."""
        return self.token is not None or self.token_file is not None

    @property
    def where(self) -> str:
        """As a URL has it."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def secret(self) -> str:
        """The token; empty where none is asked for. Raises OSError where `token_file` cannot be read, or what it holds
        is too short."""
        if not self.asks:
            return ""
        given = self.token.get_secret_value() if self.token else ""
        found = given or (regular_file.read(self.token_file, SIZE).strip() if self.token_file else "")
        if len(found) < SHORTEST:
            raise OSError(errno.EINVAL, f"the token has less than {SHORTEST} characters")
        return found


def loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
