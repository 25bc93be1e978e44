"""What is asked of every request before the application sees it: its size, its origin, its token."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from streamer.control.door import local
from streamer.supervisor.problems import answer
from streamer.supervisor.tokens import Role, Tokens

MAX_BODY = 262_144  # bytes; a pipeline file has a few thousand
TOO_LARGE = f"the body is larger than {MAX_BODY} bytes"
SAFE = ("GET", "HEAD", "OPTIONS")

bearer = HTTPBearer(auto_error=False, description="a token of the role read or operate; none where none is set")
Credentials = Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)]


class Limit:
    """Reads no more of a body than its bound, whatever the headers say of its size."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length) > MAX_BODY:
            await answer(413, "content_too_large", TOO_LARGE, "A pipeline file is smaller than that.")(
                scope, receive, send
            )
            return
        seen = 0

        async def bounded() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > MAX_BODY:
                raise HTTPException(413, TOO_LARGE)
            return message

        await self._app(scope, bounded, send)


class Home:
    """Where no token is asked for, a page of somewhere else that the operator's browser shows must not give orders, nor
    read by a name of its own that leads to this machine."""

    def __init__(self, app: ASGIApp, tokens: Tokens) -> None:
        self._app = app
        self._open = not tokens.any

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and self._open and (cause := _foreign(scope)):
            await answer(403, "foreign_origin", cause, "Open the page by its own address, or set tokens.")(
                scope, receive, send
            )
            return
        await self._app(scope, receive, send)


def _foreign(scope: Scope) -> str:
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    host = headers.get("host", "")
    if not local(host):
        return "without a token this is served to localhost alone, by that name"
    origin = headers.get("origin", "")
    if scope["method"] not in SAFE and origin and urlsplit(origin).netloc != host:
        return "the request comes from a page of another origin"
    return ""


class Needs:
    """A dependency: the caller shows a token of the role, or of one that includes it."""

    def __init__(self, role: Role) -> None:
        self._role = role

    def __call__(self, request: Request, credentials: Credentials) -> Role:
        """The role of whoever asks."""
        tokens: Tokens = request.app.state.tokens
        if not tokens.any:
            return "operate"
        shown = tokens.role(credentials.credentials) if credentials is not None else None
        if shown is None:
            cause = "this token is not known" if credentials is not None else "no token was shown"
            raise HTTPException(401, cause, headers={"WWW-Authenticate": "Bearer"})
        if self._role == "operate" and shown == "read":
            raise HTTPException(403, "the token has the role read, and this needs operate")
        return shown


READ = Depends(Needs("read"))
OPERATE = Depends(Needs("operate"))
