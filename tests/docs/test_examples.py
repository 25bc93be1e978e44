"""Every example of a pipeline file in the pages is one: alone, or in a file that has what it leaves out."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from contract import pipeline as pipeline_file

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
OURS = {"contract", "spark", "readers", "quality", "streamer"}


def blocks(language: str) -> list[Any]:
    return [
        pytest.param(block, id=f"{page.stem}-{number}")
        for page in PAGES
        for number, block in enumerate(re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.DOTALL))
    ]


LEFT_OUT: dict[str, Any] = {
    "format": 1,
    "name": "shop",
    "source": {"host": "db1", "user": "headrace", "password": "${EXAMPLE_PASSWORD}", "server_id": 7},
    "tables": {"include": ["shop.*"]},
    "kafka": {"bootstrap": "broker1:9092"},
    "lake": {"path": "/lake"},
}


def whole(block: str) -> dict[str, Any]:
    given: dict[str, Any] = yaml.safe_load(block.replace("{..., ", "{"))
    if "format" in given:
        return given
    found = LEFT_OUT | given
    for section in ("source", "kafka"):
        found[section] = LEFT_OUT[section] | found[section]
    if "password_file" in found["source"]:
        del found["source"]["password"]
    if found.get("records", {}).get("format") == "debezium":
        del found["lake"]
    return found


@pytest.mark.parametrize("block", blocks("yaml"))
def test_an_example_is_a_pipeline_file(block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "secret").write_text("of the test")
    text = re.sub(r"\$\{file:[^}]+\}", f"${{file:{tmp_path}/secret}}", yaml.safe_dump(whole(block), allow_unicode=True))
    for name in re.findall(r"\$\{([A-Z_0-9]+)\}", text):
        monkeypatch.setenv(name, "7")
    for script in re.findall(r"script: (\S+)", text):
        (tmp_path / script).write_text("def transform(event):\n    return event\n")
    (tmp_path / "shop.yaml").write_text(text)
    pipeline_file.load(tmp_path / "shop.yaml")  # raises what is no key, and no value of one


@pytest.mark.parametrize("block", blocks("python"))
def test_what_an_example_imports_is_there(block: str) -> None:
    """Of ours: others' packages may be of a reader's own choice."""
    found = [one for one in ast.walk(ast.parse(block)) if isinstance(one, ast.ImportFrom)]
    for one in found:
        if one.module and one.module.partition(".")[0] in OURS:
            module = importlib.import_module(one.module)
            assert [name.name for name in one.names if not hasattr(module, name.name)] == []
