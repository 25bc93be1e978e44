"""An alert goes by the notifier that the pipeline file names, in words; one that fails hides nothing."""

from __future__ import annotations

import base64
import email
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from headrace import notifier, pipeline_files
from headrace.alerts import Alert, AllClear
from quality import folder
from tests.plugins.failures_by_hand import failed, pipeline_file, succeeded
from tests.plugins.told_by_hand import Mail, Told

PAGE = Path(__file__).parents[2] / "docs" / "configuration.md"
TOLD = {
    "type": "tests.plugins.told_by_hand.Told",
    "settings": {"subject": "{{ alert.title }}", "words": "{{ ti.run_id }}: {{ alert.text }}"},
}


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Told, "got", [])


def file_with(tmp_path: Path, chosen: Any) -> str:
    file = Path(pipeline_file(tmp_path))
    file.write_text(file.read_text() + f"quality:\n  notifier: {json.dumps(chosen)}\n")
    return str(file)


def test_a_failure_and_its_all_clear_go_by_the_notifier_in_words(tmp_path: Path) -> None:
    file = file_with(tmp_path, TOLD)
    for _ in range(2):
        Alert(file)(failed())
    AllClear(file)(succeeded())
    (subject, words), clear = Told.got
    assert subject == "shop.quality verify failed"
    assert words.splitlines()[0] == "r1: shop.quality verify failed: 1 of 2 tables differ"
    assert "next step: Start the DAG shop.repair" in words
    assert "shop.orders: rows 5 in the source, 4 in the lake" in words
    [_, newest, _] = folder.read_alerts(pipeline_files.load(file))
    since = newest["since"]["shop.orders"]
    told = f"r2: shop.quality verify: all clear\nshop.orders: all clear, at fault since {since}"
    assert clear == ("shop.quality verify: all clear", told)


def test_a_template_can_ask_whether_it_is_an_all_clear(tmp_path: Path) -> None:
    settings = {"subject": "{{ 'well' if alert.clear else 'wrong' }}", "words": "{{ alert['task'] }}"}
    file = file_with(tmp_path, {**TOLD, "settings": settings})
    Alert(file)(failed())
    AllClear(file)(succeeded())
    assert Told.got == [("wrong", "verify"), ("well", "verify")]


def test_an_alert_that_it_did_not_take_is_kept_and_sent_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = file_with(tmp_path, TOLD)
    monkeypatch.setattr(Told, "away", True)
    Alert(file)(failed())
    [kept] = folder.read_alerts(pipeline_files.load(file))
    assert (kept["message"], kept["posted"]) == ("1 of 2 tables differ", False)
    logged = capsys.readouterr().out
    assert "ALERT shop.orders" in logged
    assert (
        f"quality.notifier ({TOLD['type']}) did not take the alert: ConnectionRefusedError: nobody is there" in logged
    )
    monkeypatch.setattr(Told, "away", False)
    Alert(file)(failed())
    monkeypatch.setattr(Told, "away", True)
    AllClear(file)(succeeded())
    monkeypatch.setattr(Told, "away", False)
    for _ in range(2):
        AllClear(file)(succeeded())
    assert [subject for subject, _ in Told.got] == ["shop.quality verify failed", "shop.quality verify: all clear"]


@pytest.mark.parametrize(
    ("chosen", "told", "fix"),
    [
        ({"type": "no_package.Notifier"}, "type: no_package cannot be imported: ModuleNotFoundError", "install"),
        ({"type": "tests.plugins.told_by_hand.Tolt"}, "type: the module tests.plugins.told_by_hand has no", "correct"),
        ({"type": "pathlib.Path"}, "type: pathlib.Path is no notifier of Airflow's", "derives from"),
        ({**TOLD, "settings": {"words": "w", "topic": "t"}}, "settings: are refused by .*'topic'", "by its arguments"),
    ],
)  # fmt: skip
def test_one_that_cannot_be_made_is_a_mistake_of_the_file_and_the_alert_is_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], chosen: Any, told: str, fix: str
) -> None:
    file = file_with(tmp_path, chosen)
    [mistake] = notifier.mistakes([pipeline_files.load(file)])
    assert re.search(rf"shop\.yaml:8: quality\.notifier\.{told}", mistake)
    assert fix in mistake
    Alert(file)(failed())
    assert len(folder.read_alerts(pipeline_files.load(file))) == 1
    assert "did not take the alert: PipelineFileError" in capsys.readouterr().out


@pytest.fixture
def mail(monkeypatch: pytest.MonkeyPatch) -> Iterator[Mail]:
    server = Mail()
    monkeypatch.setenv("AIRFLOW_CONN_SMTP_DEFAULT", server.connection)
    yield server
    server.close()


def test_the_mail_of_the_page_arrives(tmp_path: Path, mail: Mail) -> None:
    [block] = [one for one in re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL) if "SmtpNotifier" in one]
    file = file_with(tmp_path, yaml.safe_load(block)["quality"]["notifier"])
    assert notifier.mistakes([pipeline_files.load(file)]) == []
    Alert(file)(failed())
    [kept] = folder.read_alerts(pipeline_files.load(file))
    assert kept["posted"] is True
    sent = email.message_from_string(mail.text.partition("data\r\n")[2])
    assert (sent["To"], sent["Subject"]) == ("data@example.org", "shop.quality verify failed")
    [body] = [base64.b64decode(str(part.get_payload())).decode() for part in sent.walk() if not part.is_multipart()]
    assert "<pre>shop.quality verify failed: 1 of 2 tables differ\nnext step: " in body
