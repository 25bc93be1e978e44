"""The pipeline file's section `source`."""

from __future__ import annotations

import errno
import ipaddress
import re
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, SecretStr, field_validator, model_validator

from contract import gtids, regular_file
from contract.gtid import GtidSet
from contract.gtid_places import MARK, UpTo
from contract.mistake import MistakeError
from contract.pipeline_kafka import Section
from contract.pipeline_secrets import SIZE
from contract.pipeline_tls import Tls

Port = Annotated[int, Field(ge=1, le=65535)]
DEFAULT_PORT = 3306
NAME = re.compile(r"[\w.-]+")


def host_name(text: str) -> str:
    """A name or an address; of IPv6 without brackets. Raises ValueError."""
    bare = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    if ":" in bare:
        with suppress(ValueError):
            return str(ipaddress.IPv6Address(bare))
    elif NAME.fullmatch(bare):
        return bare
    fix = "write a host's name or address, such as db.example.org, 10.0.0.7 or ::1, without a port"
    raise MistakeError(f"{text!r} is no name of a host, nor an address", fix)


class Source(Section):
    """The server whose binlog is read, and from which snapshots are taken; and those that may take its place."""

    flavor: Literal["mysql", "mariadb"] = "mysql"
    host: Annotated[str, AfterValidator(host_name)]
    port: Port = DEFAULT_PORT
    failover: tuple[str, ...] = Field((), description="servers that replicate from it, as host or host:port")
    failover_seconds: float = Field(
        30.0, ge=0, le=3600, description="how long a server that lacks streamed transactions may take to catch up"
    )
    user: str
    password: SecretStr | None = None
    password_file: Path | None = None
    server_id: int = Field(ge=1, le=4294967295, description="unique among the server's replicas")
    heartbeat_seconds: float = Field(5.0, ge=0.5, le=300)
    statements: bool = Field(False, description="records carry the statement that made them, where the server logs it")
    connect_timeout_seconds: float = Field(10.0, gt=0, le=300)
    tls: Tls = Tls()

    @field_validator("failover")
    @classmethod
    def _addresses(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        for text in given:
            address(text)
        return given

    @model_validator(mode="after")
    def _one_secret(self) -> Source:
        if (self.password is None) == (self.password_file is None):
            both = self.password is not None
            fix = "remove one of the two" if both else "add password: ${NAME}, or password_file: and a path"
            raise MistakeError(f"has {'both' if both else 'none'} of password and password_file, and takes one", fix)
        return self

    @model_validator(mode="after")
    def _each_server_once(self) -> Source:
        known = [(self.host, self.port), *map(address, self.failover)]
        for host, port in known:
            if known.count((host, port)) > 1:
                what = f"{host}:{port} stands in host and failover, or twice in failover"
                raise MistakeError(what, "name each server once")
        return self

    @property
    def where(self) -> str:
        """As a URL has it."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def servers(self) -> tuple[Source, ...]:
        """Each server by itself, this one first; the others take user, password and all else from it."""
        return (self.model_copy(update={"failover": ()}), *map(self.at, self.failover))

    def at(self, text: str) -> Source:
        """The server of an address, with all else as here."""
        host, port = address(text)
        return self.model_copy(update={"failover": (), "host": host, "port": port})

    def gtids(self, text: str) -> GtidSet:
        """A set of the server's kind, or one of places. Raises ValueError."""
        if text.startswith(MARK):
            return UpTo.parse(text)
        return gtids.KINDS[self.flavor].parse(text)

    def secret(self) -> str:
        """The password. Raises OSError where `password_file` cannot be read, or is empty."""
        if self.password is not None:
            return self.password.get_secret_value()
        assert self.password_file is not None
        try:
            secret = regular_file.read(self.password_file, SIZE).strip()
        except UnicodeDecodeError:
            raise OSError(errno.EILSEQ, "it is no UTF-8 text") from None
        if secret:
            return secret
        raise OSError(errno.ENODATA, "the file is empty")


def address(text: str) -> tuple[str, int]:
    """`db2`, `db2:3307`, `[::1]:3307`, `::1`. Raises ValueError."""
    host, port = text, str(DEFAULT_PORT)
    if text.startswith("["):
        host, _, rest = text[1:].partition("]")
        port = rest.removeprefix(":") or port
    elif text.count(":") == 1:
        host, _, port = text.partition(":")
    if not host or not port.isdigit() or not 1 <= int(port) <= 65535:
        raise MistakeError(f"{text!r} is no address", "write host or host:port, such as db2.example.org:3306")
    return host_name(host), int(port)
