"""A real S3 server over a folder, S3Proxy: buckets are the folder's folders."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path

from stack import maven, versions
from stack.database import secret
from stack.kafka import java
from stack.ports import HOST
from stack.process import Server

KEY = "headrace"
LOGGING = """\
<configuration>
  <appender name="out" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%d %level %logger: %msg%n</pattern></encoder>
  </appender>
  <root level="warn"><appender-ref ref="out"/></root>
</configuration>
"""  # it would else log every packet


class S3(Server):
    """`key` and `secret` log in; `endpoint` is its URL; a bucket's name has three letters or more."""

    name = "s3"
    title = "S3"
    port_option = "--s3-port"
    key = KEY

    @property
    def endpoint(self) -> str:
        return f"http://{HOST}:{self.port}"

    @property
    def secret(self) -> str:
        return secret(self.home / "secret")

    def lake_section(self, path: str) -> str:
        """Of a pipeline file, for a lake here; the environment's S3_SECRET is `secret`."""
        return (
            f"lake:\n  path: s3a://{path}\n  s3:\n"
            f"    {{endpoint_url: '{self.endpoint}', key: {KEY}, secret: '${{S3_SECRET}}',\n"
            "     client: {multiobjectdelete.enable: false}}\n"  # such stores know no request to delete many
        )

    def make_bucket(self, name: str) -> None:
        (self.home / "data" / name).mkdir(parents=True, exist_ok=True)

    def command(self) -> Sequence[str]:
        jars = maven.jars(f"s3proxy-{versions.S3PROXY}", versions.S3PROXY_JARS)
        quiet = f"-Dlogback.configurationFile={self._logging}"
        return [
            java(),
            "-Xmx256m",
            quiet,
            "-cp",
            f"{jars}/*",
            "org.gaul.s3proxy.Main",
            "--properties",
            str(self._properties),
        ]

    def environment(self) -> Mapping[str, str]:
        return {**os.environ, "TZ": "UTC"}

    def prepare(self) -> None:
        (self.home / "data").mkdir(exist_ok=True)
        settings = {
            "s3proxy.endpoint": self.endpoint,
            "s3proxy.authorization": "aws-v2-or-v4",
            "s3proxy.identity": self.key,
            "s3proxy.credential": self.secret,
            "jclouds.provider": "filesystem",
            "jclouds.filesystem.basedir": str(self.home / "data"),
        }
        self._properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        self._properties.chmod(0o600)
        self._logging.write_text(LOGGING)

    def healthy(self) -> bool:
        """Whether it takes connections."""
        try:
            with socket.create_connection((HOST, self.port), timeout=1):
                return True
        except OSError:
            return False

    @property
    def _logging(self) -> Path:
        return self.home / "logback.xml"

    @property
    def _properties(self) -> Path:
        return self.home / "s3proxy.properties"
