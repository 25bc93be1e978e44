"""The pages of checks (data docs): of each table those of its last check, and an index of them.

In: Great Expectations' context behind its validations. Out: `docs` in the folder of the quality records, with
`pages.json`, which says of each table where its pages are and of when. They are built beside it and take its place by
their name, so that no reader and no other check sees half of them, and a check that cannot write them leaves those of
before.
"""

from __future__ import annotations

import json
import os
import shutil
import time
import uuid
from collections.abc import Collection, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

from contract.pipeline import Pipeline
from quality import folder
from quality.offline import offline

Pages = dict[str, dict[str, Any]]
KNOWN = "pages.json"
TIMES = 10  # that another check may put its pages there between two steps of this one, where a folder has no locks
DAY = 86_400  # seconds, behind which a draft is one of a check that was killed
INDEX = (
    "<!DOCTYPE html>\n<html><head><meta charset='UTF-8'><title>Data docs of {name}</title></head><body>\n"
    "<h1>Data docs of {name}</h1>\n<p>Each table's expectations, as its last check found them.</p>\n"
    "<table><tr><th>table</th><th>result</th><th>checked</th><th></th></tr>\n{rows}\n</table></body></html>\n"
)
ROW = "<tr><td><a href='{page}'>{table}</a></td><td class='{met}'>{found}</td><td>{at}</td><td>{suite}</td></tr>"


def write(context: Any, pipeline: Pipeline, tables: Mapping[str, Mapping[str, Any]], some: bool) -> list[str]:
    """`tables`: what was found of each. `some`: these are not all of the pipeline's. Gives the tables without a page,
    though they were judged. Raises OSError, and what Great Expectations raises."""
    docs = folder.docs(pipeline)
    draft = docs.with_name(f"{docs.name}.{uuid.uuid4().hex}")
    try:
        draft.mkdir(parents=True)
        built = _built(context, draft, tables)
        with folder.alone(pipeline):
            kept = _kept(docs, draft, built, None if some else tables)
            _index(pipeline.name, draft, {**kept, **built})
            _put(draft, docs)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return sorted(name for name, found in tables.items() if found["evaluated"] and name not in built)


def _built(context: Any, draft: Path, tables: Mapping[str, Mapping[str, Any]]) -> Pages:
    store = {"class_name": "TupleFilesystemStoreBackend", "base_directory": str(draft)}
    context.add_data_docs_site(site_name="lake", site_config={"class_name": "SiteBuilder", "store_backend": store})
    context.build_data_docs()
    shutil.rmtree(draft / "static", ignore_errors=True)  # nothing of it is shown without what is elsewhere
    for page in draft.rglob("*.html"):
        page.write_text(offline(page.read_text(encoding="utf-8")), encoding="utf-8")
    there = {page.name: page.relative_to(draft) for page in (draft / "validations").rglob("*.html")}
    at = datetime.now(UTC).isoformat(timespec="seconds")
    return {
        name: {
            "page": str(there[file]), "suite": str(_suite(name)), "at": at, "evaluated": found["evaluated"],
            "failed": len(found["failed"]),
        }
        for name, found in tables.items() if (file := f"lake-{name}.html") in there
    }  # fmt: skip


def _suite(name: str) -> Path:
    """Where Great Expectations has the page of the table's suite."""
    *folders, last = name.split(".")
    return Path("expectations", *folders, f"{last}.html")


def _kept(docs: Path, draft: Path, built: Collection[str], wanted: Collection[str] | None) -> Pages:
    """Those of the last pages that this check has no newer ones for, moved into the draft. `wanted`: the pipeline's
    tables; None where others may be too."""
    kept = {
        name: page for name, page in known(docs).items() if name not in built and (wanted is None or name in wanted)
    }
    for name, page in [*kept.items()]:
        try:
            for file in (page["page"], page["suite"]):
                _linked(docs / file, draft / file)
        except FileNotFoundError:
            del kept[name]
    return kept


def known(docs: Path) -> Pages:
    """`db.table` -> its pages; of a folder without any, none."""
    with suppress(OSError, ValueError):
        if isinstance(found := json.loads((docs / KNOWN).read_text()), dict):
            return found
    return {}


def _linked(file: Path, other: Path) -> None:
    """Without a copy where that can be: a page is not written to once it is there."""
    other.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(file, other)
    except FileNotFoundError:
        raise
    except OSError:
        shutil.copyfile(file, other)


def _index(name: str, draft: Path, pages: Pages) -> None:
    (draft / KNOWN).write_text(json.dumps(pages, indent=1))
    rows = "\n".join(_row(table, page) for table, page in sorted(pages.items()))
    (draft / "index.html").write_text(offline(INDEX.format(name=escape(name), rows=rows)), encoding="utf-8")


def _row(table: str, page: Mapping[str, Any]) -> str:
    failed, evaluated = page["failed"], page["evaluated"]
    found = f"{failed} of {evaluated} expectations not met" if failed else f"{evaluated} expectations met"
    suite = f"<a href='{quote(page['suite'])}'>expectations</a>"
    at = escape(f"{datetime.fromisoformat(page['at']):%Y-%m-%d %H:%M} UTC")
    met = "unmet" if failed else "met"
    return ROW.format(page=quote(page["page"]), table=escape(table), met=met, found=found, at=at, suite=suite)


def _put(draft: Path, docs: Path) -> None:
    """In the place of those that are there, which goes in two steps: a folder cannot be replaced in one."""
    for left in reversed(range(TIMES)):
        old = docs.with_name(f"{draft.name}.old")
        with suppress(FileNotFoundError):
            docs.rename(old)
        try:
            draft.rename(docs)
        except OSError:
            if not left:
                raise
        else:
            break
        finally:
            shutil.rmtree(old, ignore_errors=True)
    for one in docs.parent.glob(f"{docs.name}.*"):
        with suppress(OSError):
            if time.time() - one.stat().st_mtime > DAY:
                shutil.rmtree(one, ignore_errors=True)
