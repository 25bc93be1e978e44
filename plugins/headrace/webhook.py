"""The pipeline's `quality.webhook`: an alert as JSON, by POST. Its URL may be a secret: a log has its host alone."""

from __future__ import annotations

import json
import urllib.request
from http.client import HTTPException
from typing import Any, NoReturn
from urllib.error import HTTPError
from urllib.parse import urljoin, urlsplit

TIMEOUT_SECONDS = 10


class Unfollowed(urllib.request.HTTPRedirectHandler):
    """To where a redirect leads a GET without the alert would go, and its answer would count for the alert's."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> NoReturn:
        raise HTTPError(req.full_url, code, msg, headers, fp)


def took(log: Any, url: str, alert: dict[str, Any]) -> bool:
    """Whether it did; else the log says why not."""
    try:
        post(url, alert)
    except (OSError, ValueError, HTTPException) as error:  # URLError and HTTPError are OSErrors
        log.error("quality.webhook (%s) did not take the alert: %s", urlsplit(url).hostname, _cause(error))
        return False
    return True


def _cause(error: Exception) -> str:
    """Its kind, and the system's own words: those of the HTTP library repeat the URL."""
    if isinstance(error, HTTPError):
        return f"HTTPError {error.code}{_redirect(error)}"
    reason = getattr(error, "reason", None)
    cause = reason if isinstance(reason, OSError) else error
    return " ".join(filter(None, (type(cause).__name__, getattr(cause, "strerror", None))))


def _redirect(error: HTTPError) -> str:
    if not 300 <= error.code < 400:
        return ""
    host = urlsplit(urljoin(error.url, error.headers.get("Location", ""))).hostname
    return f", a redirect to {host}, which no alert follows: write the address that it leads to"


def post(url: str, alert: dict[str, Any]) -> None:
    """Raises OSError, ValueError, HTTPException."""
    body = json.dumps(alert, default=str).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    with urllib.request.build_opener(Unfollowed).open(request, timeout=TIMEOUT_SECONDS):
        pass
