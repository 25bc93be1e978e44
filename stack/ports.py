"""Ports of the loopback: free ones, taken ones, and by whom."""

from __future__ import annotations

import contextlib
import secrets
import socket
from collections import deque

import psutil

from stack.errors import StackError

HOST = "127.0.0.1"
# Every process of a server carries its home in the environment: so none is missed, whoever its parent is by then.
MARK = "HEADRACE_SERVER_HOME"
FREE = range(10_240, 32_000)
_given: set[int] = set()
_claims: deque[socket.socket] = deque(maxlen=100)  # the oldest are let go: their servers run, or ran


def refuse_taken_port(title: str, port: int, option: str) -> None:
    """Raises StackError where something listens on the port, naming its process where the system tells."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
            return
        except OSError as error:
            reason = error.strerror
    owner = listener(port)
    by = f" by process {owner.pid} ({described(owner)})" if owner else f" ({reason})"
    raise StackError(f"port {port} of {HOST}, meant for {title}, is taken{by}", f"Stop that, or change {option}.")


def listener(port: int) -> psutil.Process | None:
    """The process that listens on the port; None where the system does not tell (another user's)."""
    try:
        for connection in psutil.net_connections("tcp"):
            local = connection.laddr
            if connection.status == psutil.CONN_LISTEN and local and local.port == port and connection.pid:
                return psutil.Process(connection.pid)
    except (psutil.AccessDenied, psutil.NoSuchProcess):
        pass
    return None


def described(process: psutil.Process) -> str:
    """The program's name, or which Headrace server of another data folder it is."""
    with contextlib.suppress(psutil.Error, OSError):
        home = process.environ().get(MARK)
        if home:
            return f"Headrace's server in {home}"
    try:
        return process.name()
    except psutil.Error:
        return "its name is hidden"


def free_port() -> int:
    """A port that nothing uses, for tests; none is given twice by a process. It is below those that systems give to
    outgoing connections: none of these takes it before the server that it is meant for. So that no other process is
    given it meanwhile either, it stays bound here, in a way that lets a server listen there (SO_REUSEADDR)."""
    while True:
        port = FREE.start + secrets.randbelow(len(FREE))
        claim = socket.socket()
        try:
            claim.bind((HOST, port))  # without SO_REUSEADDR: fails beside another's claim
        except OSError:
            claim.close()
            continue
        claim.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if port not in _given:
            _given.add(port)
            _claims.append(claim)
            return port
