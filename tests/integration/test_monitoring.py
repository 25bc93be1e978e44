"""Prometheus' own program reads the alert rules, the dashboard's queries and what a streamer exports."""

from __future__ import annotations

import json
import re
import subprocess
import urllib.request
from pathlib import Path

from stack.mysql import MySQL
from stack.prometheus import promtool
from streamer.supervisor import metrics as supervisor
from tests.docker.test_monitoring import DOCKER, OF_THE_CLIENT, RULES, named, shown
from tests.integration.streaming import Make, execute

ALERTS = DOCKER / "prometheus" / "headrace-alerts.yaml"


def run(*arguments: object, given: str = "") -> str:
    done = subprocess.run([promtool(), *map(str, arguments)], input=given, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_rules_and_the_settings_are_valid(tmp_path: Path) -> None:
    assert f"{len(RULES)} rules found" in run("check", "rules", ALERTS)
    settings = (DOCKER / "prometheus" / "prometheus.yml").read_text()
    (tmp_path / "headrace_streamer_token").write_text("of the test")
    settings = settings.replace("/run/secrets", str(tmp_path))
    (tmp_path / "prometheus.yml").write_text(settings.replace(f"/etc/prometheus/{ALERTS.name}", str(ALERTS)))
    run("check", "config", tmp_path / "prometheus.yml")


def test_each_alert_fires_when_it_should_and_not_otherwise(tmp_path: Path) -> None:
    cases = Path(__file__).with_name("alerts.yaml").read_text()
    (tmp_path / "alerts.yaml").write_text(cases.replace("RULES", str(ALERTS)))
    run("test", "rules", tmp_path / "alerts.yaml")


def test_every_query_of_the_dashboard_is_one(tmp_path: Path) -> None:
    filled = [query.replace("$__rate_interval", "1m").replace("$pipeline", "p") for query in shown()]
    rules = [{"record": f"r{n}", "expr": query} for n, query in enumerate(filled)]
    (tmp_path / "queries.yaml").write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
    run("check", "rules", tmp_path / "queries.yaml")


def test_a_real_streamer_exports_every_metric_that_is_named(make: Make, mysql: MySQL) -> None:
    streamer = make("scraped").started()
    execute(mysql, "INSERT INTO scraped.t VALUES (1, 1, 'x')", "CREATE TABLE scraped.gone (id INT PRIMARY KEY)")
    execute(mysql, "DROP TABLE scraped.gone")
    streamer.wait_until_released()
    with urllib.request.urlopen(f"http://127.0.0.1:{streamer.values['http']}/metrics", timeout=5) as answer:
        text = answer.read().decode()
    assert re.search(r'headrace_ddl_total\{kind="drop",pipeline="scraped"\} 1', text)
    run("check", "metrics", given=text)
    text += supervisor.render([]).decode()
    exported = {name for name, kind in re.findall(r"^# TYPE (\w+) (\w+)", text, re.MULTILINE)}
    assert named(*shown(), *(rule["expr"] for rule in RULES)) - {"up"} <= exported
    assert OF_THE_CLIENT - {"up"} <= exported
