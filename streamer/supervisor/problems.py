"""Errors over HTTP: application/problem+json (RFC 9457) with the error's kind, cause and next step."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from contract.pipeline import PipelineFileError
from streamer.errors import HeadraceError

MEDIA_TYPE = "application/problem+json"
STATUS = {"unknown_pipeline": 404, "conflict": 409, "serve": 500, "unknown_table": 404}
AWAY = 503
REFUSED = 409
NEXT = {
    400: "Send what the OpenAPI document says.",
    401: "Send the header Authorization: Bearer, with a token of this instance.",
    403: "Use a token of the role operate.",
    404: "See /openapi.json for the paths.",
    405: "See /openapi.json for the methods.",
    413: "A pipeline file is smaller than that.",
    415: "Send the file's text with the header Content-Type: application/yaml.",
}


class Mistake(BaseModel):
    """Of a pipeline file: `line` counts from 1; 0 is the file as a whole."""

    line: int
    key: str
    message: str
    allowed: str
    fix: str


class Problem(BaseModel):
    """What went wrong. `kind` is the same word as in the status, the log and docs/operations.md."""

    type: str
    title: str
    status: int
    detail: str
    kind: str
    cause: str
    next_step: str
    mistakes: list[Mistake] = []


def answer(
    status: int,
    kind: str,
    cause: str,
    next_step: str,
    detail: str = "",
    mistakes: Any = (),
    headers: dict[str, str] | None = None,
) -> JSONResponse:
    problem = Problem(
        type=f"urn:headrace:problem:{kind}", title=HTTPStatus(status).phrase, status=status, detail=detail or cause,
        kind=kind, cause=cause, next_step=next_step, mistakes=mistakes,
    )  # fmt: skip
    return JSONResponse(problem.model_dump(), status, media_type=MEDIA_TYPE, headers=headers)


def explain(app: FastAPI) -> None:
    """Whatever the application raises is answered as a problem."""

    @app.exception_handler(PipelineFileError)
    def file_wrong(_: Request, error: PipelineFileError) -> JSONResponse:
        mistakes = [Mistake(**vars(problem)) for problem in error.problems]
        return answer(422, "pipeline_file", "the pipeline file has mistakes", "Mend them, and send it again.",
                      str(error), mistakes)  # fmt: skip

    @app.exception_handler(HeadraceError)
    def refused(_: Request, error: HeadraceError) -> JSONResponse:
        status = AWAY if error.retryable else STATUS.get(error.kind, REFUSED)
        return answer(status, error.kind, error.cause, error.hint, str(error))

    @app.exception_handler(RequestValidationError)
    def request_wrong(_: Request, error: RequestValidationError) -> JSONResponse:
        """Says where and what, and not what was given: that may be a secret in the wrong place."""
        told = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
        return answer(422, "request", told, NEXT[400])

    @app.exception_handler(HTTPException)
    def http(_: Request, error: HTTPException) -> JSONResponse:
        status = error.status_code
        kind = HTTPStatus(status).phrase.lower().replace(" ", "_")
        return answer(status, kind, str(error.detail), NEXT.get(status, ""), headers=dict(error.headers or {}))

    @app.exception_handler(Exception)
    def broken(_: Request, error: Exception) -> JSONResponse:
        return answer(500, "internal", f"the supervisor failed ({type(error).__name__})", "Its log tells more.")
