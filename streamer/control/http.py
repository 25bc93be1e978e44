"""An HTTP port, and an application that is served on it in a thread.

The port is taken before anything else is touched, so a second streamer of the same file stops at once.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI

from contract.pipeline_http import Http
from streamer.delivery_errors import PortInUseError, TokenError

STREAMER = (
    "Another streamer may run there (headrace status tells); stop it, or change streamer.http in the pipeline file."
)


def token_of(http: Http) -> str:
    """What the port asks for; empty where nothing. Raises TokenError."""
    try:
        return http.secret()
    except (OSError, UnicodeDecodeError) as error:
        what = f"the token of {http.where}"
        cause = getattr(error, "strerror", None) or "it is no text"
        hint = "Make one with: openssl rand -hex 32, and name its file in streamer.http.token_file."
        raise TokenError("reading", what, cause, hint) from None


def take_port(host: str, port: int, hint: str = STREAMER) -> socket.socket:
    """Raises PortInUseError, also where the address is not this machine's. `hint`: what the operator can do."""
    taken = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        taken.bind((host, port))
        taken.listen(64)
    except OSError as error:
        taken.close()
        raise PortInUseError(
            "listening on",
            f"{host}:{port}",
            error.strerror or str(error),
            hint,
        ) from None
    return taken


@contextmanager
def serving(app: FastAPI, listener: socket.socket) -> Iterator[None]:
    """Serves in a thread of its own for as long as the block lasts."""
    config = uvicorn.Config(app, log_config=None, access_log=False, lifespan="off")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="http", daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.should_exit = True
        thread.join(timeout=2)
        listener.close()
