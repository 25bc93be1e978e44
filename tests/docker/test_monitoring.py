"""The dashboard and the alert rules name metrics that exist, and compose mounts them where they are looked for."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import yaml

from tests.docker.test_compose import DOCKER, SERVICES

DASHBOARD: dict[str, Any] = json.loads((DOCKER / "grafana" / "dashboards" / "headrace.json").read_text())
RULES: list[dict[str, Any]] = yaml.safe_load((DOCKER / "prometheus" / "headrace-alerts.yaml").read_text())["groups"][0][
    "rules"
]
METRICS = (DOCKER.parent / "docs" / "metrics.md").read_text()
OF_THE_CLIENT = {"up", "process_cpu_seconds_total", "process_resident_memory_bytes"}


def named(*expressions: str) -> set[str]:
    """The metrics of these queries."""
    return set(re.findall(r"\b(?:(?:headrace|process)_\w+|up)\b", " ".join(expressions)))


def shown() -> list[str]:
    return [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]


def test_every_metric_of_dashboard_and_rules_is_documented() -> None:
    documented = set(re.findall(r"`((?:headrace|process)_\w+)`", METRICS))
    assert named(*shown(), *(rule["expr"] for rule in RULES)) - OF_THE_CLIENT <= documented


def test_the_dashboard_shows_every_metric() -> None:
    documented = set(re.findall(r"^\| `(headrace_\w+)`", METRICS, re.MULTILINE))
    assert documented <= named(*shown())


def test_every_alert_says_what_and_is_documented() -> None:
    for rule in RULES:
        assert f"`{rule['alert']}`" in METRICS
        assert rule["labels"]["severity"] in ("critical", "warning", "info")
        assert rule["annotations"].keys() == {"summary", "description"}


def test_panels_do_not_overlap_and_have_names_of_their_own() -> None:
    panels = DASHBOARD["panels"]
    assert (
        len({panel["id"] for panel in panels})
        == len({panel["title"] + panel["type"] for panel in panels})
        == len(panels)
    )
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert at["x"] + at["w"] <= 24
        assert not cells & taken, panel["title"]
        taken |= cells


def inside(service: str, path: str) -> Path:
    """The file of the checkout that the container sees at this path."""
    for volume in SERVICES[service]["volumes"]:
        source, target = volume.split(":")[:2]
        if path == target or path.startswith(f"{target}/"):
            return DOCKER / source / path.removeprefix(target).lstrip("/")
    raise AssertionError(f"{service} mounts nothing at {path}")


def test_prometheus_finds_the_rules_and_the_streamer() -> None:
    settings = yaml.safe_load(inside("prometheus", "/etc/prometheus/prometheus.yml").read_text())
    assert all(inside("prometheus", file).is_file() for file in settings["rule_files"])
    [job] = settings["scrape_configs"]
    [target] = job["static_configs"][0]["targets"]
    service, port = target.split(":")
    assert SERVICES[service]["environment"]["HEADRACE_STREAMER_PORT"] == int(port)
    assert f'job="{job["job_name"]}"' in "".join(rule["expr"] for rule in RULES)


def test_grafana_finds_the_dashboard_and_prometheus() -> None:
    folder = inside("grafana", "/etc/grafana/provisioning")
    [provider] = yaml.safe_load((folder / "dashboards" / "headrace.yaml").read_text())["providers"]
    assert (inside("grafana", provider["options"]["path"]) / "headrace.json").is_file()
    assert inside("grafana", SERVICES["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]).is_file()
    [source] = yaml.safe_load((folder / "datasources" / "prometheus.yaml").read_text())["datasources"]
    service, port = source["url"].removeprefix("http://").split(":")
    assert any(published.endswith(f":{port}") for published in SERVICES[service]["ports"])
