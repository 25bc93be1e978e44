"""The streamer's own port: whether it is free, and the token that is asked for there can be had."""

from __future__ import annotations

from collections.abc import Iterator

from contract.pipeline import Pipeline
from contract.pipeline_file import place_of
from streamer.control.http import take_port, token_of
from streamer.delivery_errors import PortInUseError, TokenError
from streamer.preflight.findings import Result


def port(pipeline: Pipeline, runs: bool) -> Iterator[Result]:
    """`runs`: the pipeline's own streamer, which has the port."""
    http = pipeline.streamer.http
    try:
        token_of(http)
    except TokenError as error:
        key = "token" if http.token is not None else "token_file"
        place = place_of(pipeline.path, "streamer", "http", key)
        yield Result("error", "token", f"{place}: {error.cause}", error.hint)
    if runs:
        yield Result("ok", "port", f"{http.where}: this pipeline's streamer runs there")
        return
    try:
        take_port(http.host, http.port).close()
    except PortInUseError as error:
        yield Result("error", "port", f"{error.object}: {error.cause}", error.hint)
    else:
        yield Result("ok", "port", f"{http.where} is free")
