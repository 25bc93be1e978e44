"""What a running streamer of the pipeline says of itself, asked over its port."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from http.client import HTTPException
from typing import Any

from contract.pipeline import Pipeline
from streamer.delivery_errors import NotRunningError


def ask(pipeline: Pipeline) -> dict[str, Any]:
    """The running streamer's status. Raises NotRunningError."""
    http = pipeline.streamer.http
    url = f"http://{http.where}/status"
    try:
        token = http.secret()
        request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"} if token else {})
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=5) as answer:
            found: Any = json.load(answer)
    except urllib.error.HTTPError as error:
        hint = f"See that streamer.http in {pipeline.path} has the token with which the streamer was started."
        raise NotRunningError("asking", f"the streamer at {url}", f"it answered {error.code}", hint) from None
    except (OSError, ValueError, HTTPException) as error:
        reason = getattr(error, "reason", error)
        hint = f"Start it with: headrace run {pipeline.path}; or see that streamer.http there is where it listens"
        raise NotRunningError("asking", f"the streamer at {url}", f"no answer ({reason})", hint) from None
    if not isinstance(found, dict) or "pipeline" not in found:
        hint = f"Something else listens there: stop it, or change streamer.http in {pipeline.path}."
        raise NotRunningError("asking", f"the streamer at {url}", "the answer is no streamer's", hint)
    if found["pipeline"] != pipeline.name:
        cause = f"it runs the pipeline {found['pipeline']}, not {pipeline.name}"
        hint = "Give the two pipelines different ports in streamer.http."
        raise NotRunningError("asking", f"the streamer at {url}", cause, hint)
    return dict(found)
