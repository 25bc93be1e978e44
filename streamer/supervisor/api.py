"""The REST API over all pipelines, the page that shows them, and what Prometheus asks.

Every answer that is no success is application/problem+json. A pipeline made or changed here is a file in the served
folder, with the text as it was sent: so there is one contract, whoever writes it.
"""

from __future__ import annotations

from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Query, Request
from fastapi import Path as InPath
from fastapi.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from contract.pipeline import PipelineFileError, Problem
from streamer import VERSION
from streamer.supervisor import metrics, problems, reference, shown
from streamer.supervisor.guard import OPERATE, READ, Home, Limit
from streamer.supervisor.problems import Mistake
from streamer.supervisor.shown import Checked, Detail, Failure, Summary
from streamer.supervisor.supervisor import Supervisor
from streamer.supervisor.tailing import Tail
from streamer.supervisor.tokens import Role, Tokens

PAGE = Path(__file__).with_name("page.html")
YAML = "application/yaml"
YAMLS = (YAML, "text/yaml", "application/x-yaml", "text/plain")
EVENTS = {"text/event-stream": {"schema": {"type": "string"}}}
TABLE = r"^[^\s/.]+\.[^\s/.]+$"
ABOUT = """Pipelines of this instance: one file and one process each. Errors are problem+json, with `kind`, `cause` and
`next_step`. Where tokens are set, `Authorization: Bearer ...` of the role read or operate."""
SENT = {
    "requestBody": {
        "required": True,
        "content": {YAML: {"schema": {"type": "object", "description": "a pipeline file; its text is kept as it is"}}},
    }
}
Name = Annotated[str, InPath(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,79}$", description="the pipeline's name")]


def told(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The problems that an operation may answer with, beside those of every one."""
    content = {problems.MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {
        status: {"description": HTTPStatus(status).phrase, "content": content}
        for status in (400, 401, 403, 413, 422, *statuses)
    }


async def body(request: Request) -> str:
    """The pipeline file's text. Raises PipelineFileError where it is no text."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in YAMLS:
        raise HTTPException(415, f"the body is to be {YAML}")
    try:
        return (await request.body()).decode("utf-8")
    except UnicodeDecodeError:
        mistake = Problem(0, "file", "cannot be read: not UTF-8 text", "", "save it as UTF-8")
        raise PipelineFileError(Path("new.yaml"), [mistake]) from None


Text = Annotated[str, Depends(body)]


def application(supervisor: Supervisor, tokens: Tokens) -> FastAPI:
    app = FastAPI(title="Headrace", version=VERSION, description=ABOUT, docs_url=None, redoc_url=None)
    app.state.tokens = tokens
    app.add_middleware(Limit)
    app.add_middleware(Home, tokens=tokens)
    problems.explain(app)
    _pages(app, supervisor)
    _reading(app, supervisor)
    _files(app, supervisor)
    _orders(app, supervisor)
    _document(app)
    return app


def _pages(app: FastAPI, supervisor: Supervisor) -> None:
    @app.get("/", response_class=HTMLResponse, include_in_schema=False)
    def page() -> str:
        return PAGE.read_text(encoding="utf-8")

    @app.get("/docs", response_class=HTMLResponse, include_in_schema=False)
    def documentation() -> str:
        return reference.page(app.openapi())

    @app.get("/healthz", response_class=PlainTextResponse, tags=["service"])
    def healthz() -> str:
        """The supervisor runs, whatever its pipelines do."""
        return "ok"

    @app.get("/metrics", response_class=PlainTextResponse, dependencies=[READ], responses=told(), tags=["service"])
    def prometheus() -> Response:
        """Of each pipeline its state and restarts; the rest is on the pipeline's own port."""
        text = metrics.render(supervisor.units())
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")


def _reading(app: FastAPI, supervisor: Supervisor) -> None:
    @app.get("/role", responses=told(), tags=["service"])
    def show_role(role: Annotated[Role, READ]) -> shown.Shown:
        """What the caller's token allows; operate, where none is asked for."""
        return shown.Shown(role=role)

    @app.get("/pipelines", dependencies=[READ], responses=told(), tags=["pipelines"])
    def list_pipelines() -> list[Summary]:
        """All, by name; also files with mistakes."""
        return [shown.summary(unit) for unit in supervisor.units()]

    @app.get("/pipelines/{name}", dependencies=[READ], responses=told(404), tags=["pipelines"])
    def show_pipeline(name: Name) -> Detail:
        """How one stands, with its last five minutes."""
        return shown.detail(supervisor.unit(name))

    @app.get("/pipelines/{name}/errors", dependencies=[READ], responses=told(404), tags=["pipelines"])
    def recent_errors(name: Name, limit: Annotated[int, Query(ge=1, le=100)] = 20) -> list[Failure]:
        """The last warnings and errors since the supervisor's start, the newest first."""
        return [Failure(**error) for error in supervisor.unit(name).errors.all()[:limit]]

    @app.get("/pipelines/{name}/events", dependencies=[READ], response_class=StreamingResponse, tags=["pipelines"],
             responses={**told(404, 409), 200: {"content": EVENTS}})  # fmt: skip
    def tail_events(
        name: Name,
        table: Annotated[str, Query(pattern=TABLE, description="`db.table`, with * and ?; all where left out")] = "*.*",
        from_beginning: Annotated[bool, Query(description="what is in the topics first")] = False,
        limit: Annotated[int, Query(ge=1, le=10_000, description="changes, after which it ends")] = 1_000,
        seconds: Annotated[int, Query(ge=1, le=3_600, description="after which it ends")] = 60,
    ) -> StreamingResponse:
        """Changes as they are committed to Kafka, as server-sent events: `change`, whose id is its place in the order;
        `waiting`, `problem`, and `end`. They hold rows' data, masked as the pipeline file says."""
        found = supervisor.files.pipeline(name)
        tail = Tail(found, table, from_beginning, limit, seconds)
        return StreamingResponse(tail.events(), media_type="text/event-stream", headers={"Cache-Control": "no-store"},
                                 background=BackgroundTask(tail.close))  # fmt: skip


def _files(app: FastAPI, supervisor: Supervisor) -> None:
    @app.post("/pipelines", status_code=201, dependencies=[OPERATE], responses=told(409, 415), openapi_extra=SENT,
              tags=["files"])  # fmt: skip
    async def create_pipeline(
        text: Text,
        response: Response,
        start: Annotated[bool, Query(description="false: it is made stopped")] = True,
    ) -> Summary:
        """Make a pipeline: its file, as it was sent, and its process. Secrets are given as ${NAME} alone."""
        unit = await run_in_threadpool(supervisor.files.create, text, start)
        response.headers["Location"] = f"/pipelines/{unit.key}"
        return shown.summary(unit)

    @app.post("/validate", dependencies=[OPERATE], responses=told(415), openapi_extra=SENT, tags=["files"])
    async def validate(text: Text) -> Checked:
        """Check a pipeline file; nothing is written. A pipeline of the same name is no mistake here."""
        try:
            pipeline = await run_in_threadpool(supervisor.files.check, text)
        except PipelineFileError as error:
            return Checked(valid=False, name=None, mistakes=[Mistake(**vars(one)) for one in error.problems])
        return Checked(valid=True, name=pipeline.name, mistakes=[])

    @app.get("/pipelines/{name}/file", response_class=PlainTextResponse, dependencies=[READ], tags=["files"],
             responses={**told(404), 200: {"content": {YAML: {"schema": {"type": "object"}}}}})  # fmt: skip
    def read_file(name: Name) -> Response:
        """The file's text as it is; secrets stand in it as ${NAME}."""
        return Response(supervisor.files.text(name), media_type=YAML)

    @app.put("/pipelines/{name}", dependencies=[OPERATE], responses=told(404, 409, 415), openapi_extra=SENT,
             tags=["files"])  # fmt: skip
    async def change_pipeline(name: Name, text: Text) -> Summary:
        """Replace the file. Other tables are followed without a restart; for other keys the process is restarted."""
        return shown.summary(await run_in_threadpool(supervisor.files.change, name, text))

    @app.delete("/pipelines/{name}", status_code=204, dependencies=[OPERATE], responses=told(404, 409), tags=["files"])
    def delete_pipeline(name: Name) -> None:
        """Deliver what was read, end the process, delete the file. Topics and lake stay."""
        supervisor.files.delete(name)


def _orders(app: FastAPI, supervisor: Supervisor) -> None:
    def order(path: str, work: Any) -> None:
        @app.post(f"/pipelines/{{name}}/{path}", dependencies=[OPERATE], responses=told(404, 409), tags=["orders"],
                  name=f"{path}_pipeline", description=work.__doc__.partition("Raises")[0].strip())  # fmt: skip
        def ordered(name: Name) -> Summary:
            return shown.summary(work(name))

    for path in ("start", "stop", "pause", "resume"):
        order(path, getattr(supervisor, path))

    @app.post("/pipelines/{name}/seek", dependencies=[OPERATE], responses=told(404, 409, 503), tags=["orders"])
    def seek_pipeline(name: Name, wanted: shown.Wanted) -> shown.Moved:
        """Let a pipeline that stands still go on from another place of its server's binlog. What that would mean
        (`dry_run`) is told of one that runs, too."""
        from streamer.seek.command import seek  # Kafka's client is loaded by the first move, not by every supervisor

        if wanted.dry_run:
            return shown.moved(seek(supervisor.files.pipeline(name), wanted.to, wanted.skip_changes, True))
        with supervisor.standing(name, "moving") as pipeline:
            return shown.moved(seek(pipeline, wanted.to, wanted.skip_changes))


def _document(app: FastAPI) -> None:
    """The framework describes its own form of a 422, which is not given here."""
    made = app.openapi

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            found = made()
            schemas = found["components"]["schemas"]
            for name in ("HTTPValidationError", "ValidationError"):
                schemas.pop(name, None)
            schemas["Problem"] = problems.Problem.model_json_schema(ref_template="#/components/schemas/{model}")
            schemas.update(schemas["Problem"].pop("$defs", {}))
        return app.openapi_schema or found

    app.openapi = document  # type: ignore[method-assign]
