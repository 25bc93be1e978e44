"""compose.yaml names what exists: Dockerfiles, mounted files, secrets, services, pipeline files, pinned images."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from contract import names, pipeline
from docker import make_secrets
from stack import versions
from streamer import VERSION

ROOT = Path(__file__).resolve().parents[2]
DOCKER = ROOT / "docker"
COMPOSE: dict[str, Any] = yaml.safe_load((DOCKER / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
DEFAULT = re.compile(r"\$\{\w+:-([^}]*)\}")

every_service = pytest.mark.parametrize("name", sorted(SERVICES))


def plain(text: object) -> str:
    """The text with every ${NAME:-default} replaced by its default."""
    return DEFAULT.sub(r"\1", str(text))


def test_the_platform_is_whole() -> None:
    assert set(SERVICES) == {"mysql", "kafka", "kafka-ui", "streamer", "prometheus", "grafana", "airflow"}


@every_service
def test_images_are_pinned(name: str) -> None:
    _, _, tag = SERVICES[name]["image"].partition(":")
    assert re.fullmatch(r"v?\d+\.\d+\.\d+", tag), f"{name} has the tag {tag!r}"


def test_own_images_carry_the_products_version_and_kafka_the_tested_one() -> None:
    assert SERVICES["streamer"]["image"] == f"headrace-streamer:{VERSION}"
    assert SERVICES["airflow"]["image"] == f"headrace-airflow:{VERSION}"
    assert SERVICES["kafka"]["image"] == f"apache/kafka:{versions.KAFKA}"
    assert SERVICES["mysql"]["image"].startswith(f"mysql:{versions.MYSQL_SERIES}.")


@every_service
def test_ports_are_published_on_the_loopback_alone(name: str) -> None:
    assert SERVICES[name]["ports"]
    for port in SERVICES[name]["ports"]:
        assert re.fullmatch(r"127\.0\.0\.1:\d+:\d+", plain(port))


def test_no_two_services_take_one_port() -> None:
    taken = [plain(port).split(":")[1] for service in SERVICES.values() for port in service["ports"]]
    assert len(taken) == len(set(taken))


@every_service
def test_health_is_checked(name: str) -> None:
    if "build" in SERVICES[name]:
        dockerfile = DOCKER.parent / SERVICES[name]["build"]["dockerfile"]
        assert "\nHEALTHCHECK " in dockerfile.read_text()
    else:
        assert SERVICES[name]["healthcheck"]["test"][0] == "CMD"


@every_service
def test_dependencies_exist_and_are_waited_for(name: str) -> None:
    for other, how in SERVICES[name].get("depends_on", {}).items():
        assert other in SERVICES
        assert how == {"condition": "service_healthy"}


@every_service
def test_mounts_exist(name: str) -> None:
    for volume in SERVICES[name].get("volumes", []):
        source = volume.split(":")[0]
        known = (DOCKER / source).exists() if source.startswith(".") else source in COMPOSE["volumes"]
        assert known, f"{name} mounts {source}"


@every_service
def test_secrets_are_files_that_make_secrets_makes(name: str) -> None:
    for secret in SERVICES[name].get("secrets", []):
        assert Path(COMPOSE["secrets"][secret]["file"]) == Path("secrets") / secret
        assert secret in {*make_secrets.PASSWORDS, *make_secrets.KEYS}


@every_service
def test_no_password_stands_in_the_environment(name: str) -> None:
    for key, value in SERVICES[name].get("environment", {}).items():
        if re.search("PASSWORD|SECRET|KEY", key):
            assert str(value).startswith("/run/secrets/")


@pytest.mark.parametrize("name", ["streamer", "airflow"])
def test_builds_name_what_exists(name: str) -> None:
    build = SERVICES[name]["build"]
    assert (DOCKER / build["context"]).resolve() == ROOT
    assert (ROOT / build["dockerfile"]).is_file()


def test_jars_are_those_that_make_install_fetches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEADRACE_CACHE", raising=False)
    folder = (DOCKER / plain(SERVICES["airflow"]["build"]["additional_contexts"]["jars"])).resolve()
    pinned = f"spark-jars-{versions.SPARK}-{versions.DELTA}-{versions.MYSQL_CONNECTOR}"
    assert folder == ROOT / ".stack" / pinned


def test_the_pipeline_fits_the_services(monkeypatch: pytest.MonkeyPatch) -> None:
    service = SERVICES["streamer"]
    for key, value in service["environment"].items():
        monkeypatch.setenv(key, str(value))
    file = service["command"][1]
    shop = pipeline.load(DOCKER / "pipelines" / Path(file).name)
    assert shop.source.host in SERVICES
    assert shop.kafka.bootstrap.split(":")[0] in SERVICES
    assert shop.source.password_file == Path("/run/secrets") / service["secrets"][0]
    assert shop.streamer.http.host == "0.0.0.0"
    assert f":{shop.streamer.http.port}" in service["ports"][0]
    assert float(service["stop_grace_period"].rstrip("s")) > shop.streamer.shutdown_seconds
    lake = names.lake_root(shop)
    assert any(volume.split(":")[1] == Path(lake).parent.as_posix() for volume in SERVICES["airflow"]["volumes"])


def test_airflow_reaches_the_streamer_by_its_services_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEADRACE_STREAMER_HOST", raising=False)
    assert pipeline.load(DOCKER / "pipelines" / "shop.yaml").streamer.http.host == "streamer"


def test_mysql_is_set_as_the_streamer_needs_it() -> None:
    lines = (DOCKER / "mysql" / "headrace.cnf").read_text().splitlines()
    settings = dict(line.replace(" ", "").split("=", 1) for line in lines if "=" in line)
    wanted = {
        "gtid_mode": "ON",
        "enforce_gtid_consistency": "ON",
        "binlog_format": "ROW",
        "binlog_row_image": "FULL",
        "binlog_row_metadata": "FULL",
    }
    assert wanted.items() <= settings.items()
