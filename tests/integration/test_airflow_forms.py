"""The forms of the DAGs, clicked in a browser: what is shown, what a run gets of it, and what its job makes of that.

Each form is sent as it opens where it may be, then with a mistake that the page tells of, and then mended. The DAGs are
paused, so that no job runs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from playwright.sync_api import Page, expect, sync_playwright

from contract.pipeline import load
from headrace import factory, forms
from stack.mysql import MySQL
from tests.integration.airflow_site import Site
from tests.integration.trigger_dialog import PLAIN, SECONDS, Dialog, Field
from tests.streamer.browser import chromium

pytestmark = pytest.mark.soak  # two minutes in the browser, and an Airflow of its own; tests/dags has the templates

PIPELINE = "air-one"
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
FORMS = {
    "snapshot": forms.SNAPSHOT, "quality": forms.QUALITY, "maintenance": forms.MAINTENANCE, "repair": forms.REPAIR,
    "backfill": forms.BACKFILL, "erase": forms.ERASE,
}  # fmt: skip
FIRST = {
    "snapshot": "stage",
    "quality": "verify",
    "maintenance": "maintain",
    "repair": "stage",
    "backfill": "stage",
    "erase": "erase",
}
Opened = Callable[[str], Dialog]
Job = Callable[[str, dict[str, Any]], tuple[str, dict[str, str]]]
RUN = {"run": "r", "by": "ada"}
NO_ROWS: dict[str, Any] = {"keys": [], "from": "", "to": ""}


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    program = chromium()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        page = browser.new_page(viewport={"width": 1280, "height": 1000})
        page.set_default_timeout(SECONDS * 1000)
        expect.set_options(timeout=SECONDS * 1000)
        yield page
        browser.close()


@pytest.fixture
def opened(page: Page, request: pytest.FixtureRequest) -> Opened:
    """The site is started behind the browser: without one there is nothing to start it for."""
    site: Site = request.getfixturevalue("airflow_site")
    return lambda purpose: Dialog(page, site.airflow.url, f"{PIPELINE}.{purpose}")


@pytest.fixture
def job(mysql: MySQL, airflow_site: Site, monkeypatch: pytest.MonkeyPatch) -> Job:
    """The tables and the options with a value that the first task's job gets of a run's conf."""
    monkeypatch.setenv("HEADRACE_MYSQL_PASSWORD", mysql.password)
    pipeline, by = load(airflow_site.pipelines / f"{PIPELINE}.yaml"), SimpleNamespace(triggering_user_name="ada")
    first = SimpleNamespace(try_number=1)

    def of(purpose: str, conf: dict[str, Any]) -> tuple[str, dict[str, str]]:
        dags = {dag.dag_id: dag for dag in factory.dags(pipeline)}  # anew: rendered, a task has no template any more
        task: Any = dags[f"{PIPELINE}.{purpose}"].get_task(FIRST[purpose])
        task.render_template_fields({"params": conf, "run_id": "r", "dag_run": by, "ti": first})
        return task.tables, {name: value for name, value in task.options.items() if value}

    return of


@pytest.mark.parametrize("purpose", FORMS)
def test_every_field_is_shown_with_what_it_is_for_and_its_default(opened: Opened, purpose: str) -> None:
    dialog, params = opened(purpose), FORMS[purpose].params.values()
    sections = dict.fromkeys(param.schema.get("section", PLAIN) for param in params)
    for section in sections:
        if section != PLAIN:
            dialog.open(section)
        wanted = [Field.of(param) for param in params if param.schema.get("section", PLAIN) == section]
        assert dialog.fields() == wanted


def test_snapshot(opened: Opened, job: Job) -> None:
    conf = opened("snapshot").send()
    assert conf == {"tables": [], "existing": False}
    assert job("snapshot", conf) == ("", {})
    dialog = opened("snapshot")
    dialog.write("Tables", "orders")
    dialog.refused("'orders'", "a table, as db.table")
    dialog.write("Tables", "air1.orders\n air1.items\n")
    dialog.switch("Only tables that exist")
    conf = dialog.send()
    assert conf == {"tables": ["air1.orders", " air1.items", ""], "existing": True}
    assert job("snapshot", conf) == ("air1.orders,air1.items", {"existing": "yes"})


def test_quality(opened: Opened, job: Job) -> None:
    conf = opened("quality").send()
    assert conf == {"tables": [], "whole": False, "anew": False}
    assert job("quality", conf) == ("", {})
    dialog = opened("quality")
    dialog.write("Tables", "air1.orders, air1.items")
    dialog.refused("'air1.orders, air1.items'")
    dialog.write("Tables", "")
    dialog.switch("All rows")
    conf = dialog.send()
    assert conf == {"tables": None, "whole": True, "anew": False}, "emptied again, it is of all tables"
    assert job("quality", conf) == ("", {"whole": "yes"})


def test_maintenance(opened: Opened, job: Job) -> None:
    conf = opened("maintenance").send()
    assert conf == {"tables": [], "steps": ["history", "optimize", "vacuum"]}
    dialog = opened("maintenance")
    dialog.write("Tables", "air1.orders")
    for step in ("history", "optimize", "vacuum"):
        dialog.take_out("Steps", step)
    expect(dialog.button).to_be_disabled()
    dialog.choose("Steps", "vacuum")
    dialog.choose("Steps", "history")
    conf = dialog.send()
    assert conf == {"tables": ["air1.orders"], "steps": ["vacuum", "history"]}
    assert job("maintenance", conf) == ("air1.orders", {"steps": "vacuum,history"})


def test_repair(opened: Opened, job: Job) -> None:
    conf = opened("repair").send()
    assert conf == {"tables": [], **NO_ROWS}
    assert job("repair", conf) == ("", {"by": "r"})
    dialog = opened("repair")
    dialog.write("Tables", "air1.items")
    dialog.open(forms.SOME)
    keys = ['{"shop": 1, "id": 2}', '{"shop": 1, "id": 3}']
    dialog.write("Keys", "\n".join(keys))
    conf = dialog.send()
    assert conf == {"tables": ["air1.items"], **NO_ROWS, "keys": keys}
    tables, options = job("repair", conf)
    assert json.loads(options.pop("keys")) == keys
    assert (tables, options) == ("air1.items", {"by": "r"})


def test_backfill_of_a_range(opened: Opened, job: Job) -> None:
    dialog = opened("backfill")
    expect(dialog.field("Tables")).to_contain_text("This field is required")
    expect(dialog.button).to_be_disabled()
    dialog.write("Tables", "\n")
    dialog.refused("at least one")
    dialog.write("Tables", "air1.items")
    dialog.choose("Source", "kafka")
    dialog.open(forms.SOME)
    dialog.write("Keys", "7\n8")
    dialog.write("Keys", "")
    dialog.write("From key", "-2 ")
    dialog.write("To key", "4")
    conf = dialog.send()
    nothing = {"keys": None, "since": None, "until": None}
    assert conf == {"tables": ["air1.items"], "source": "kafka", "from": "-2 ", "to": "4", **nothing}
    assert job("backfill", conf) == ("air1.items", {"source": "kafka", "from": "-2", "to": "4", "by": "r"})


def test_backfill_of_a_time(opened: Opened, job: Job) -> None:
    dialog = opened("backfill")
    dialog.write("Tables", "air1.items")
    dialog.open(forms.SOME)
    dialog.pick("Changed since", "2026/11/22", "10:42")
    dialog.pick("Changed until", "2026/11/23", "")
    conf = dialog.send()
    times = {"since": "2026-11-22T10:42:00.000Z", "until": "2026-11-23T00:00:00.000Z"}
    assert conf == {"tables": ["air1.items"], "source": "changes", **NO_ROWS, **times}
    assert job("backfill", conf) == ("air1.items", {"source": "changes", **times, "by": "r"})


def test_erase(opened: Opened, job: Job) -> None:
    dialog = opened("erase")
    dialog.write("Table", "items")
    expect(dialog.button).to_be_disabled()
    dialog.write("Keys", "\n")
    dialog.refused("as db.table")
    dialog.write("Table", "air1.items")
    dialog.refused("at least one")
    dialog.write("Keys", '{"shop": 1, "id": 2}\n{"shop": 1, "id": 3}')
    dialog.switch("From all files at once")
    conf = dialog.send()
    keys = ['{"shop": 1, "id": 2}', '{"shop": 1, "id": 3}']
    assert conf == {"table": "air1.items", "keys": keys, "present": False, "now": True}
    tables, options = job("erase", conf)
    assert json.loads(options.pop("keys")) == keys
    assert (tables, options) == ("air1.items", {"now": "yes", **RUN})


def test_headraces_page_leads_to_the_dags(page: Page, airflow_site: Site) -> None:
    page.goto(f"{airflow_site.airflow.url}/plugin/headrace")
    link = page.frame_locator("iframe").locator("section", has_text=PIPELINE).get_by_role("link", name="repair")
    with page.expect_popup() as opened:
        link.click(modifiers=["ControlOrMeta"])
    opened.value.wait_for_url(f"**/dags/{PIPELINE}.repair")
    opened.value.close()
    link.click()
    page.wait_for_url(f"**/dags/{PIPELINE}.repair")
