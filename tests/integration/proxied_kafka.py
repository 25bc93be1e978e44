"""A broker that can be reached in two ways, one of which goes through a proxy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from stack.kafka import Kafka
from stack.ports import HOST, free_port
from tests.integration.conftest import SHORT_LIVED, discard
from tests.integration.proxy import Proxy

Kind = TypeVar("Kind", bound=Proxy)


@contextmanager
def proxied(folder: Path, kind: type[Kind]) -> Iterator[tuple[Kafka, Kind]]:
    """`kafka.address` leads past the proxy, whose `port` is the other way."""
    inner, port, controller = free_port(), free_port(), free_port()
    proxy = kind(inner)
    options = {
        "listeners": f"PLAINTEXT://{HOST}:{port},CUT://{HOST}:{inner},CONTROLLER://{HOST}:{controller}",
        "advertised.listeners": f"PLAINTEXT://{HOST}:{port},CUT://{HOST}:{proxy.port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CUT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
    }
    kafka = Kafka(folder / "proxied-kafka", port, controller, options, java_options=SHORT_LIVED)
    kafka.start()
    try:
        yield kafka, proxy
    finally:
        proxy.flows.set()
        proxy.cut()
        discard(kafka)
