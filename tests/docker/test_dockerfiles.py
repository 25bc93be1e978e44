"""The Dockerfiles copy what exists, run as nobody special, and the streamer's image stays slim."""

from __future__ import annotations

import fnmatch
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("streamer", "airflow")
every_part = pytest.mark.parametrize("part", PARTS)
PACKAGE = re.compile(r"^([a-z0-9][a-z0-9._-]*)==(\S+)", re.MULTILINE)


def instructions(part: str) -> list[tuple[str, str]]:
    """(instruction, the rest) of a Dockerfile, continued lines joined."""
    text = (ROOT / "docker" / part / "Dockerfile").read_text()
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [(line.split(None, 1)[0], line.split(None, 1)[1]) for line in joined.splitlines()]


def copied(part: str) -> list[str]:
    """What the Dockerfile copies out of the checkout."""
    sources = [rest for word, rest in instructions(part) if word == "COPY" and not rest.startswith("--from")]
    return [source for rest in sources for source in rest.split()[:-1]]


def packages(file: Path) -> dict[str, str]:
    return dict(PACKAGE.findall(file.read_text()))


@every_part
def test_copies_exist_and_pass_the_ignore_file(part: str) -> None:
    allowed = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    assert copied(part)
    for source in copied(part):
        assert (ROOT / source).exists(), source
        assert any(source == path or source.startswith(f"{path}/") for path in allowed), source


def test_the_ignore_file_lets_no_cache_and_no_secret_in() -> None:
    lines = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]
    assert lines[0] == "*"
    assert "**/__pycache__" in lines
    assert not any(fnmatch.fnmatch("docker/secrets", line.removeprefix("!")) for line in lines[1:])


@every_part
def test_runs_as_a_user_without_rights_given_by_number(part: str) -> None:
    user = next(rest for word, rest in reversed(instructions(part)) if word == "USER")
    assert re.fullmatch(r"[1-9]\d{4,}:[1-9]\d{4,}", user)


@every_part
def test_the_base_is_a_name_that_can_be_given(part: str) -> None:
    first = instructions(part)[0]
    assert first[0] == "ARG"
    assert re.fullmatch(r"BASE=[a-z]+:[\w.-]+", first[1])
    assert all(rest.startswith("${BASE}") for word, rest in instructions(part) if word == "FROM")


@every_part
def test_health_check_and_entry_point_are_lists(part: str) -> None:
    found = dict(instructions(part))
    assert '["' in found["HEALTHCHECK"]
    assert found["ENTRYPOINT"].startswith('["')
    assert found["CMD"].startswith('["')


@every_part
def test_packages_are_those_of_the_lock_with_hashes(part: str) -> None:
    file = ROOT / "docker" / part / "requirements.txt"
    locked, found = packages(ROOT / "requirements.lock"), packages(file)
    assert found
    assert found.items() <= locked.items()
    assert "://" not in file.read_text()
    blocks = re.split(r"\n(?=[a-z0-9])", file.read_text())
    assert all("--hash=sha256:" in block for block in blocks if PACKAGE.match(block))


def test_the_streamers_image_is_slim() -> None:
    found = packages(ROOT / "docker" / "streamer" / "requirements.txt")
    heavy = {name for name in found if re.match(r"apache|pyspark|delta|pandas|numpy|pyarrow|sqlalchemy|great", name)}
    assert not heavy
    assert len(found) < 50
    assert {source.split("/")[0] for source in copied("streamer")} == {"docker", "contract", "streamer"}
    assert {"confluent-kafka", "pymysql", "pydantic", "orjson"} <= set(found)


def test_airflows_image_has_what_dags_and_jobs_import() -> None:
    found = packages(ROOT / "docker" / "airflow" / "requirements.txt")
    assert {"apache-airflow", "pyspark", "delta-spark", "great-expectations", "confluent-kafka"} <= set(found)
    assert found["pyspark"] == found["pyspark-client"]
    folders = set(copied("airflow"))
    assert {"contract", "streamer", "spark", "quality", "plugins", "dags"} <= folders
