"""No page of Great Expectations, nor their index, loads anything from elsewhere."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import great_expectations as gx
import great_expectations.expectations as gxe
import pandas as pd
import pytest
from great_expectations.core import ExpectationSuite, RunIdentifier
from great_expectations.core.validation_definition import ValidationDefinition

from contract.pipeline import Pipeline
from quality import pages, suite
from quality.offline import offline
from tests.quality.test_suite import pipeline  # noqa: F401

LOADS = {"src", "srcset", "poster", "data", "background"}
TABLES = ("shop.orders", "shop.items", "shop.a%s<b>")


class Loaded(HTMLParser):
    """Addresses of what a browser loads for the page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found, self.links = list[str](), list[str]()
        self.feed(text)
        self.found += re.findall(r"(?:url\(|@import)\s*[\"']?([^\"')\s]+)", text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        href = [value or "" for name, value in attrs if name == "href"]
        (self.links if tag == "a" else self.found).extend(href)
        self.found += [value or "" for name, value in attrs if name in LOADS]


def judged(context: Any, name: str, frame: pd.DataFrame) -> None:
    batch = context.data_sources.get("lake").add_dataframe_asset(name=name).add_batch_definition_whole_dataframe("now")
    wanted = context.suites.add(ExpectationSuite(name=name))
    wanted.add_expectation(gxe.ExpectColumnValuesToNotBeNull(column="id"))
    wanted.add_expectation(gxe.ExpectColumnValuesToBeInSet(column="state", value_set=["new"]))
    checked = ValidationDefinition(name=name, data=batch, suite=wanted)
    run = RunIdentifier(run_name=f"check of {name}", run_time=datetime.now(UTC))
    context.validation_definitions.add(checked).run(
        batch_parameters={"dataframe": frame}, run_id=run, result_format="SUMMARY"
    )


def test_pages_and_index_load_nothing_and_say_what_was_found(pipeline: Pipeline) -> None:  # noqa: F811
    context: gx.data_context.AbstractDataContext = suite._context()
    context.data_sources.add_pandas("lake")
    for name in TABLES:
        judged(context, name, pd.DataFrame({"id": [1, 2], "state": ["new", "lost"]}))
    found = {name: {"evaluated": 2, "failed": [{}]} for name in TABLES}
    assert pages.write(context, pipeline, found, False) == []
    docs = Path(pipeline.lake.path) / "shop" / "_quality" / "docs"
    written = [*docs.rglob("*.html")]
    assert len(written) == 2 * len(TABLES) + 1
    for page in written:
        text = page.read_text()
        assert Loaded(text).found == [], page
        assert text.count("<script") == text.count("color-scheme: light dark") == 1
    [orders] = (docs / "validations" / "shop" / "orders").rglob("*.html")
    assert "lost" in orders.read_text()
    assert not (docs / "static").exists()
    index = Loaded((docs / "index.html").read_text())
    assert len(index.links) == 2 * len(TABLES)
    assert set(json.loads((docs / "pages.json").read_text())) == set(TABLES)
    assert "shop.a%s&lt;b&gt;" in (docs / "index.html").read_text()


@pytest.mark.parametrize(
    "loaded",
    [
        '<script src="https://x.org/a.js"></script>',
        "<script>\n$('.a').modal();\n</script>",
        '<link rel="stylesheet" href="https://x.org/a.css">',
        "<img\n class='a'\n src='https://x.org/a.png?d=1'\n alt='x' />",
        '<iframe src="//x.org/"></iframe>',
        "<style>@import url('https://x.org/a.css');</style>",
        "<style>.a { background: url(//x.org/a.png) 0 0 }</style>",
    ],
)
def test_what_is_loaded_goes_and_links_stay(loaded: str) -> None:
    link = "<a href='https://docs.example/'>more</a> and url of <b>it</b>"
    told = offline(f"<html><head></head><body>{loaded}{link}</body></html>")
    assert Loaded(told).found == []
    assert "x.org" not in told
    assert "$(" not in told
    assert link in told
