"""Who may do what: bearer tokens of two roles, from the environment or from files.

`HEADRACE_API_READ_TOKENS` and `HEADRACE_API_OPERATE_TOKENS` hold tokens, `..._TOKENS_FILE` names a file of them; blanks
and lines part them. Operate includes read. Without any token the API serves this machine alone, and everyone on it.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from pathlib import Path
from typing import Literal

from contract.pipeline_http import SHORTEST, loopback
from streamer.supervisor.errors import ServeError

Role = Literal["read", "operate"]
VARIABLE = "HEADRACE_API_{role}_TOKENS"


class Tokens:
    """Keeps hashes alone."""

    def __init__(self, read: list[str], operate: list[str]) -> None:
        self._known: list[tuple[bytes, Role]] = [(_hash(token), "operate") for token in operate]
        self._known += [(_hash(token), "read") for token in read]

    @property
    def any(self) -> bool:
        return bool(self._known)

    def role(self, token: str) -> Role | None:
        """Of whoever shows the token; None where nobody knows it. Takes the same time whichever it is."""
        given = _hash(token)
        found: Role | None = None
        for known, role in self._known:
            if hmac.compare_digest(given, known):
                found = found or role
        return found


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


def from_environment() -> Tokens:
    """Takes them out of the environment, which the pipelines' files and processes see. Raises ServeError."""
    return Tokens(_of("READ"), _of("OPERATE"))


def _of(role: str) -> list[str]:
    name = VARIABLE.format(role=role)
    text = os.environ.pop(name, "")
    if file := os.environ.pop(f"{name}_FILE", ""):
        try:
            text = f"{text} {Path(file).read_text(encoding='utf-8')}"
        except (OSError, ValueError) as error:
            cause = getattr(error, "strerror", None) or "it is no text"
            hint = f"Name a file that the supervisor may read in {name}_FILE."
            raise ServeError("reading the tokens of", file, cause, hint) from None
        if not text.split():
            raise ServeError("reading the tokens of", file, "it is empty", "Write a token into it.")
    tokens = text.split()
    if any(len(token) < SHORTEST for token in tokens):
        hint = "Make one with: openssl rand -hex 32"
        raise ServeError("reading", name, f"a token has less than {SHORTEST} characters", hint)
    return tokens


def refuse_open(host: str, tokens: Tokens) -> None:
    """Raises ServeError for an address that others reach while nobody has to show a token."""
    if tokens.any or loopback(host):
        return
    operate = VARIABLE.format(role="OPERATE")
    raise ServeError(
        "listening on",
        host,
        "whoever reaches this address could stop and change pipelines, for there is no token",
        f"Set {operate} (or {operate}_FILE) to a token, made with: openssl rand -hex 32; or listen on 127.0.0.1.",
    )
