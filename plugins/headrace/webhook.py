"""The pipeline's `quality.webhook`: an alert as JSON, by POST. Its URL may be a secret: a log has its host alone."""

from __future__ import annotations

import json
import urllib.request
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit

TIMEOUT_SECONDS = 10


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
        return f"HTTPError {error.code}"
    reason = getattr(error, "reason", None)
    cause = reason if isinstance(reason, OSError) else error
    return " ".join(filter(None, (type(cause).__name__, getattr(cause, "strerror", None))))


def post(url: str, alert: dict[str, Any]) -> None:
    """Raises OSError, ValueError, HTTPException."""
    body = json.dumps(alert, default=str).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS):
        pass
