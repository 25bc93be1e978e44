"""A notifier as a provider has them, and a mail server of a few words."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Sequence
from typing import Any, ClassVar

from airflow.sdk import BaseNotifier


class Told(BaseNotifier):
    """Keeps what it was called with. `away`: nobody is there to take it."""

    template_fields: Sequence[str] = ("subject", "words")
    got: ClassVar[list[tuple[str, str]]] = []
    away: ClassVar[bool] = False

    def __init__(self, subject: str, words: str) -> None:
        super().__init__()
        self.subject, self.words = subject, words

    def notify(self, context: Any) -> None:
        if self.away:
            raise ConnectionRefusedError("nobody is there")
        self.got.append((self.subject, self.words))


class Mail:
    """Takes one mail. `text`: all that it was sent; `connection`: of Airflow, to it."""

    def __init__(self) -> None:
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.server.getsockname()[1]
        self.text = ""
        more = {"disable_ssl": True, "disable_tls": True}
        self.connection = json.dumps({"conn_type": "smtp", "host": "127.0.0.1", "port": self.port, "extra": more})
        self.thread = threading.Thread(target=self._answer, daemon=True)
        self.thread.start()

    def _answer(self) -> None:
        caller, _ = self.server.accept()
        with caller, caller.makefile("rwb", buffering=0) as lines:
            lines.write(b"220 mail\r\n")
            inside = False
            while line := lines.readline():
                self.text += line.decode()
                if inside and line != b".\r\n":
                    continue
                inside = line.upper() == b"DATA\r\n"
                lines.write(b"354 go on\r\n" if inside else b"250 well\r\n")

    def close(self) -> None:
        self.server.close()
        self.thread.join(5)
