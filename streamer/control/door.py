"""What the streamer's own port asks of a request: the token, where there is one, or that it comes from this machine.

A browser asks for a login by itself: any name, and the token as the password. Without a token a page of somewhere else,
which the operator's browser shows, must not read by a name of its own that leads to this machine.
"""

from __future__ import annotations

import base64
import binascii
import hmac
from urllib.parse import urlsplit

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from contract.pipeline_http import loopback

OPEN = ("/healthz",)  # says the state alone
LOGIN = {"WWW-Authenticate": 'Basic realm="headrace"'}


class Door:
    """`token`: empty where none is asked for."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = None
        if scope["type"] == "http" and scope["path"] not in OPEN:
            headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
            refusal = self._refusal(headers)
        await (refusal or self._app)(scope, receive, send)

    def _refusal(self, headers: dict[str, str]) -> JSONResponse | None:
        if not self._token:
            if local(headers.get("host", "")):
                return None
            cause = "without a token this is served to localhost alone, by that name"
            return JSONResponse({"cause": cause, "next_step": "Set streamer.http.token_file."}, 403)
        if hmac.compare_digest(shown(headers.get("authorization", "")).encode(), self._token.encode()):
            return None
        cause = "the token of streamer.http was not shown"
        return JSONResponse({"cause": cause, "next_step": "Send Authorization: Bearer ..."}, 401, headers=LOGIN)


def local(host: str) -> bool:
    """Whether a request's header Host names this machine; one without it comes from no browser."""
    try:
        return not host or loopback(urlsplit(f"//{host}").hostname or "")
    except ValueError:
        return False


def shown(authorization: str) -> str:
    """The token of a header, as a bearer's or as the password of a login."""
    kind, _, rest = authorization.partition(" ")
    if kind.lower() == "bearer":
        return rest.strip()
    if kind.lower() != "basic":
        return ""
    try:
        return base64.b64decode(rest.strip(), validate=True).decode().partition(":")[2]
    except (binascii.Error, UnicodeDecodeError):
        return ""
