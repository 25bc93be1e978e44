"""A database server with certificates of an authority of the test's own, and users whom it takes by TLS alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from contract.pipeline_source import Source
from stack.database import USER, Database
from stack.ports import HOST, free_port
from tests.certificates import certificate
from tests.integration.conftest import FreshData, copy_fresh_data, discard
from tests.integration.decoding import run

PAGE = Path(__file__).parents[2] / "docs" / "configuration.md"
PASSWORD = "pa%ss word"  # of a server on this machine that lives as long as its tests
USERS = {"by_tls": "SSL", "by_x509": "X509"}


class Guarded(NamedTuple):
    """`folder`: of the certificates: `authority`, `server`, `client` and the `stranger` as .pem and -key.pem."""

    server: Database
    folder: Path

    def source(self, user: str = USER, host: str = HOST, **tls: Any) -> Source:
        """`tls`: its files by their names in the folder."""
        files = {key: self.folder / f"{name}.pem" for key, name in tls.items() if key != "mode"}
        return Source.model_validate(
            {
                "flavor": self.server.flavor, "host": host, "port": self.server.port, "user": user, "server_id": 4790,
                "password": self.server.password if user == USER else PASSWORD, "heartbeat_seconds": 1,
                "tls": tls | files,
            }
        )  # fmt: skip

    def documented(self) -> dict[str, Any]:
        """`source.tls` of the docs' example, with this server's files."""
        [example] = [one for one in re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL) if "tls:" in one]
        tls: dict[str, str] = yaml.safe_load(example)["source"]["tls"]
        own = {"ca.pem": "authority", "client.pem": "client", "client-key.pem": "client-key"}
        return {key: own.get(Path(value).name, value) for key, value in tls.items()}


@contextmanager
def guarded(kind: type[Database], folder: Path, fresh_data: FreshData) -> Iterator[Guarded]:
    for name, by in (("authority", None), ("server", "authority"), ("client", "authority"), ("stranger", None)):
        certificate(folder, name, by, older=True)
    files = [f"ssl_ca={folder}/authority.pem", f"ssl_cert={folder}/server.pem", f"ssl_key={folder}/server-key.pem"]
    on = ["ssl=ON"] if kind.flavor == "mariadb" else []
    server = kind(folder / "data", free_port(), options=[*on, *files])
    copy_fresh_data(server, fresh_data)
    server.start()
    try:
        for user, asks in USERS.items():
            run(
                server,
                f"CREATE USER {user} IDENTIFIED BY '{PASSWORD}' REQUIRE {asks}",
                f"GRANT {server.grants} ON *.* TO {user}",
            )
        run(server, "CREATE DATABASE safe", "CREATE TABLE safe.t (id INT PRIMARY KEY, v VARCHAR(9))")
        yield Guarded(server, folder)
    finally:
        discard(server)
