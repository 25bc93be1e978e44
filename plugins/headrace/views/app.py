"""How the page is served: under /headrace of Airflow's API server, to users who are logged in to Airflow.

A plugin's application has no authentication of its own, so every route but the icon asks for Airflow's user.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from airflow.api_fastapi.core_api.security import get_user
from fastapi import Depends, FastAPI, HTTPException
from fastapi.responses import FileResponse, Response

from headrace import pipeline_files, settings
from headrace.views.overview import overview
from quality import folder

PAGE = Path(__file__).with_name("page.html")
LOGGED_IN = [Depends(get_user)]
# A channel above, a wheel below: the water's way.
ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" fill="none" stroke="{colour}" stroke-width="2" '
    'stroke-linecap="round"><path d="M2 7c3-3 5-3 8 0s5 3 8 0 3-2 4-2"/><circle cx="12" cy="16" r="5"/>'
    '<path d="M12 11v10M7 16h10"/></svg>'
)

app = FastAPI(title="Headrace", docs_url=None, redoc_url=None, openapi_url=None)


@app.get("/", dependencies=LOGGED_IN)
def page() -> FileResponse:
    return FileResponse(PAGE, media_type="text/html", headers={"Cache-Control": "no-cache"})


@app.get("/api/pipelines", dependencies=LOGGED_IN)
def pipelines() -> dict[str, Any]:
    return overview()


@app.get("/docs/{pipeline}/{path:path}", dependencies=LOGGED_IN)
def docs(pipeline: str, path: str) -> FileResponse:
    """A page of the data docs: of each table those of its last check, and their index."""
    known = {found.name: found for found in pipeline_files.load_folder(settings.pipelines_folder())[0]}
    if pipeline not in known:
        raise HTTPException(404, f"there is no pipeline {pipeline}")
    root = folder.docs(known[pipeline]).resolve()
    wanted = (root / path).resolve()
    if not wanted.is_relative_to(root) or not wanted.is_file():
        raise HTTPException(404, f"the data docs of {pipeline} have no page {path}")
    return FileResponse(wanted)


@app.get("/icon.svg")
def icon() -> Response:
    return Response(ICON.format(colour="#27303a"), media_type="image/svg+xml")


@app.get("/icon-dark.svg")
def icon_dark() -> Response:
    return Response(ICON.format(colour="#e6edf3"), media_type="image/svg+xml")
