"""Airflow's dialog that starts a DAG with its form, as a person at a browser uses it."""

from __future__ import annotations

from typing import Any, NamedTuple
from urllib.parse import unquote

import httpx
from airflow.sdk import Param
from playwright.sync_api import Locator, Page, expect

SECONDS = 30.0  # to wait for the page: other tests share the machine
PLAIN = "Run Parameters"  # the section of fields that name none
EMPTY_TIME = "Select date and time"


class Field(NamedTuple):
    """What is to be seen of it. `value`: text, the chosen ones, or on and off."""

    title: str
    starred: bool
    about: str
    value: str

    @classmethod
    def of(cls, param: Param) -> Field:
        """As the form's author means it."""
        about = param.description or param.schema["description_md"].replace("- ", "").replace("**", "")
        return cls(param.schema["title"], "null" not in param.schema["type"], about, _default(param))


def _default(param: Param) -> str:
    value = param.value if param.has_value else ""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, list):
        return "\n".join(value)
    if param.schema.get("format") == "date-time":
        return value or EMPTY_TIME
    return str(param.schema.get("values_display", {}).get(value, value))


class Dialog:
    """Of a DAG that is paused, and stays so: its runs are queued."""

    def __init__(self, page: Page, url: str, dag: str) -> None:
        self.page, self.url, self.dag = page, url, dag
        httpx.patch(f"{url}/api/v2/dags/{dag}", json={"is_paused": True}).raise_for_status()
        page.goto(f"{url}/dags/{dag}")
        page.get_by_role("button", name="Trigger").click()
        self.box = page.get_by_role("dialog")
        self.button = self.box.get_by_role("button", name="Trigger", exact=True)
        expect(self.box.get_by_role("button", name=PLAIN)).to_be_visible()
        self.box.get_by_text("Unpause").click()

    def open(self, section: str) -> None:
        """The page closes the one that was open."""
        self.box.get_by_role("button", name=section).click()
        expect(self._open().get_by_role("button", name=section)).to_be_visible()

    def _open(self) -> Locator:
        """The open section."""
        return self.box.locator("[data-scope=accordion][data-part=item][data-state=open]")

    def _fields(self) -> Locator:
        return self._open().locator("[data-scope=field][data-part=root]:visible")

    def field(self, title: str) -> Locator:
        return self._fields().filter(has=self.page.locator("label", has_text=title))

    def fields(self) -> list[Field]:
        """In their order, of the open section."""
        return [self._seen(one) for one in self._fields().all()]

    def _seen(self, root: Locator) -> Field:
        label = root.locator("[data-part=label]")
        star = label.get_by_text("*", exact=True).count() > 0
        title = label.inner_text().replace("*", "").strip()
        return Field(title, star, root.locator("[data-part=helper-text]").inner_text(), self._value(root))

    def _value(self, root: Locator) -> str:
        written, switch = root.locator("textarea, input[data-part=input]"), root.locator("[data-scope=switch]").first
        if written.count():
            return written.input_value()
        if root.locator("[data-scope=switch]").count():
            return "on" if switch.get_attribute("data-state") == "checked" else "off"
        return root.locator("[data-testid=datetime-input], [id^=element_]").first.inner_text().strip()

    def write(self, title: str, text: str) -> None:
        """Key by key, and on to the next field."""
        area = self.field(title).locator("textarea, input[data-part=input]")
        area.click()
        area.press("ControlOrMeta+a")
        area.press("Delete")
        area.press_sequentially(text)
        area.press("Tab")

    def choose(self, title: str, option: str) -> None:
        self.field(title).get_by_role("combobox").click()
        self.page.get_by_role("option", name=option).click()

    def take_out(self, title: str, option: str) -> None:
        self.field(title).get_by_label(f"Remove {option}").click()

    def switch(self, title: str) -> None:
        self.field(title).locator("[data-scope=switch][data-part=root]").click()

    def pick(self, title: str, day: str, time: str) -> None:
        self.field(title).get_by_test_id("datetime-input").click()
        self.page.get_by_placeholder("YYYY/MM/DD").fill(day)
        self.page.get_by_placeholder("HH:mm").fill(time)
        self.page.keyboard.press("Escape")
        expect(self.field(title).get_by_test_id("datetime-input")).not_to_have_text(EMPTY_TIME)

    def refused(self, *words: str) -> None:
        """The page says these behind the button. What it said the time before stays until the new answer is there."""
        self.button.click()
        for word in words:
            expect(self.box.get_by_text("Invalid input for param")).to_contain_text(word)

    def send(self) -> dict[str, Any]:
        """The conf of the run that the button starts."""
        self.button.click()
        self.page.wait_for_url("**/runs/*")
        run = f"{self.url}/api/v2/dags/{self.dag}/dagRuns/{self.page.url.rpartition('/')[2]}"
        found = httpx.get(run).raise_for_status().json()
        assert (found["state"], found["triggered_by"]) == ("queued", "ui"), unquote(run)
        httpx.delete(run).raise_for_status()
        conf: dict[str, Any] = found["conf"]
        return conf
