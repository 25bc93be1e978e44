"""The lock, its subsets and the pins that stand elsewhere agree."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from stack import versions
from stack.paths import CHECKOUT

SUBSETS = ("requirements.txt", "docker/streamer/requirements.txt", "docker/airflow/requirements.txt")


def pins(path: Path) -> dict[str, str]:
    """Each pinned package with its version and marker, and its hashes."""
    text = path.read_text().replace("\\\n", " ")
    lines = (line.split("--hash=") for line in text.splitlines() if re.match(r"^[a-z0-9]", line))
    return {head.split("==")[0].split("[")[0]: " ".join([head.strip(), *sorted(hashes)]) for head, *hashes in lines}


@pytest.fixture(scope="module")
def lock() -> dict[str, str]:
    return pins(CHECKOUT / "requirements.lock")


def version(pin: str) -> str:
    return pin.split("==")[1].split()[0].rstrip(";")


@pytest.mark.parametrize("name", SUBSETS)
def test_a_subset_has_the_locks_versions_and_hashes(name: str, lock: dict[str, str]) -> None:
    subset = pins(CHECKOUT / name)
    assert subset
    for package, pin in subset.items():
        assert version(pin) == version(lock[package]), package
        hashes = {word.strip() for word in pin.split() if word.startswith("sha256:")}
        assert hashes <= {word.strip() for word in lock[package].split()}, package
        assert hashes, f"{package} has no hash"


def test_every_package_asked_for_is_locked(lock: dict[str, str]) -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    asked = [*project["dependencies"], *(line for lines in project["optional-dependencies"].values() for line in lines)]
    names = {re.split(r"[=<>~!;\[ ]", line)[0].lower().replace("_", "-") for line in asked}
    assert names <= lock.keys()


def test_the_streamers_image_stays_slim() -> None:
    packages = pins(CHECKOUT / "docker/streamer/requirements.txt").keys()
    assert not {name for name in packages if "airflow" in name or "spark" in name or name in ("pandas", "pyarrow")}


def test_servers_and_python_packages_are_of_one_version(lock: dict[str, str]) -> None:
    assert version(lock["uv"]) == versions.UV
    assert version(lock["pyspark"]) == version(lock["pyspark-client"]) == versions.SPARK
    assert version(lock["delta-spark"]) == versions.DELTA


def test_no_address_of_a_registry_stands_in_the_lock() -> None:
    for name in ("requirements.lock", *SUBSETS):
        assert "://" not in (CHECKOUT / name).read_text()
