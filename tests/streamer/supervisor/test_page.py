"""The page of `headrace serve` in a real browser: pipelines, charts of lag and rate, sinks, what went wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape

import pytest
from fastapi.testclient import TestClient
from playwright.sync_api import Page, expect, sync_playwright

from streamer.control.http import serving, take_port
from streamer.supervisor.api import application
from streamer.supervisor.tokens import Tokens
from tests.streamer.browser import FLAGS, chromium, points, shown, text
from tests.streamer.supervisor.conftest import Served


@pytest.fixture
def sections(served: Served, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Each pipeline's part of the page, and the head under the empty name."""
    for name in ("shop", "wants-a-person", "wrong"):
        served.put(name)
    wrong = served.folder / "wrong.yaml"
    wrong.write_text(wrong.read_text().replace("server_id: 7", "server_id: -7") + "tabels: {}\n")
    served.run()
    served.wait(lambda: len(served.supervisor.unit("shop").watch.history) > 5)
    served.wait(lambda: served.state("wants-a-person") == "failed")
    with serving(application(served.supervisor, Tokens([], [])), take_port("127.0.0.1", served.port)):
        document = shown(tmp_path_factory.mktemp("chromium"), f"http://127.0.0.1:{served.port}/#shop")
    parts = dict(re.findall(r'<section data-name="([\w-]+)"[^>]*>(.*?)</section>', document, re.DOTALL))
    return {"": document.partition('<div id="pipelines"')[0], **parts}


def test_the_rest_api_is_told_to_a_reader(served: Served) -> None:
    """Each operation with what it takes and answers; nothing is fetched from elsewhere."""
    app = application(served.supervisor, Tokens([], []))
    api = TestClient(app, base_url="http://127.0.0.1:8180")
    found = api.get("/docs")
    assert found.headers["content-type"].startswith("text/html")
    for path, methods in api.get("/openapi.json").json()["paths"].items():
        for method in methods:
            assert f"<h3>{method.upper()} {path}</h3>" in found.text
    told = text(found.text)
    assert "dry_run boolean left out: false" in told
    assert "limit integer changes, after which it ends; left out: 1000; from 1; to 10000" in told
    assert "Answers 201: application/json Summary or a Problem : 400, 401" in told
    links = set(re.findall(r'href="#(\w+)"', found.text))
    assert {"Wanted", "Moved", "Detail", "Problem"} <= links <= set(re.findall(r'<section id="(\w+)"', found.text))
    assert not re.search(r"https?://|<script", found.text)


def test_what_a_person_sees_of_the_pipelines(sections: dict[str, str]) -> None:
    assert "1 failed" in text(sections[""])
    assert "1 streaming" in text(sections[""])
    assert "⚠ Headrace" in text(sections[""])
    assert 'id="trouble" role="alert" hidden' in sections[""]
    shop = text(sections["shop"])
    assert shop.startswith("shop streaming")
    for told in (
        "1.5 s behind the source last 5 min max 1.5 s",
        "42 events a second last 5 min max 42",
        "7 events delivered in all",
    ):
        assert told in shop
    assert "up to binlog.000001 : 4" in shop
    for details in ("source db1:3306, 9.7.4, connected", "kafka h:9092, answers, 3 events wait", "tables shop.*"):
        assert details in shop
    assert "none since the supervisor's start" in shop
    lines = re.findall(r'<path d="([^"]*)"', sections["shop"])
    assert [points(line) > 5 for line in lines] == [True, True], "charts of lag and rate"


def test_what_went_wrong_stands_at_its_pipeline_with_the_next_step(sections: dict[str, str]) -> None:
    person = text(sections["wants-a-person"])
    assert person.startswith("wants-a-person failed")
    assert "purged The binlog is gone. → Begin anew." in person
    wrong = text(sections["wrong"])
    assert "wrong.yaml is not taken as it is line " in wrong
    found = re.search(r'class="message">(.*?)</p>', sections["wrong"], re.DOTALL)
    lines = found[1].splitlines() if found else []
    keys = [re.match(r"line \d+, ([\w.]+): .+ → .+", unescape(line)) for line in lines]
    assert sorted(key[1] for key in keys if key) == ["source.server_id", "tabels"], "each with its own fix"
    assert len(lines) == 2


def test_the_details_of_a_pipeline_open_by_a_link_to_it(sections: dict[str, str]) -> None:
    assert '<details open="">' in sections["shop"]
    assert "<details>" in sections["wants-a-person"]


@pytest.fixture
def page(served: Served) -> Iterator[Page]:
    """In a window that shows one pipeline's details at a time: `wrong` has a mistake in its file."""
    for name in ("crm", "shop", "wrong"):
        served.put(name)
    wrong = served.folder / "wrong.yaml"
    wrong.write_text(wrong.read_text().replace("server_id: 7", "server_id: -7"))
    served.run()
    served.wait(lambda: len(served.supervisor.unit("shop").watch.history) > 5)
    with (
        serving(application(served.supervisor, Tokens([], [])), take_port("127.0.0.1", served.port)),
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        page = browser.new_page(viewport={"width": 900, "height": 420})
        page.goto(f"http://127.0.0.1:{served.port}/#shop")
        expect(page.locator("section[data-name=shop] dd").first).to_contain_text("db1:3306")
        yield page
        browser.close()


def test_the_address_opens_the_details_of_a_pipeline_also_when_it_changes(page: Page) -> None:
    shop, crm = (page.locator(f"section[data-name={name}]") for name in ("shop", "crm"))
    expect(shop.locator("dl")).to_be_in_viewport()
    expect(crm.locator("dl")).to_be_hidden()
    page.evaluate("location.hash = '#crm'")
    expect(crm.locator("dl")).to_be_in_viewport()
    expect(crm.locator("dd").first).to_contain_text("db1:3306")
    shop.locator("summary").click()
    expect(shop.locator("dl")).to_be_hidden()
    page.go_back()
    expect(shop.locator("dl")).to_be_in_viewport()
    page.evaluate("location.hash = '#%'")
    page.evaluate("location.hash = '#nobody'")
    expect(page.locator("#trouble")).to_be_hidden()


def test_a_pipeline_has_the_buttons_of_what_can_be_done_with_it(page: Page) -> None:
    def buttons(name: str) -> list[str]:
        return page.locator(f"section[data-name={name}] .orders button:visible").all_inner_texts()

    assert buttons("shop") == ["pause", "stop"]
    assert buttons("wrong") == [], "nothing of it runs, and it begins by itself when its file is mended"


def test_a_chart_shows_five_minutes_whenever_the_page_asked(page: Page) -> None:
    """The page of a window that nobody looks at asks seldom: its samples are at their times, not side by side."""
    chart = page.locator("section[data-name=shop] .chart.rate")
    expect(chart.locator(".time")).to_have_text("last 5 min")
    drawn = """() => {
        const made = cards.get("shop"), now = Date.now() / 1000;
        made.history = [[now - 400, 1, 900], [now - 240, 1, 20], [now - 60, 1, 30]];
        show({...made.found, rate_events_per_second: 10});
        return made.node.querySelector(".chart.rate path").getAttribute("d");
    }"""
    places = [float(x) for x in re.findall(r"[ML](\S+) ", page.evaluate(drawn))]
    assert places == pytest.approx([60, 240, 300], abs=2)
    expect(chart.locator(".top-value")).not_to_have_text("max 900")


def test_a_slow_pipeline_has_a_rate_that_is_not_0(page: Page) -> None:
    rates = {0: "0", 0.043: "0.04", 0.4: "0.4", 1.53: "1.5", 9.96: "10", 42: "42", 1234.6: "1,235"}
    assert {given: page.evaluate(f"rate({given})") for given in rates} == rates
    seen = page.evaluate("""() => {
        const made = cards.get("shop");
        made.history = [];
        show({...made.found, rate_events_per_second: 0.4});
        return [".chart.rate .top-value", "b.rate"].map(one => made.node.querySelector(one).textContent);
    }""")
    assert seen == ["max 0.4", "0.4"]
