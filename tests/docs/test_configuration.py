"""docs/configuration.md names every key of the pipeline file with its default, and no key that is none."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from contract.pipeline import Pipeline

PAGE = Path(__file__).parents[2] / "docs" / "configuration.md"


def keys(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, info in model.model_fields.items():
        kinds = get_args(info.annotation) or (info.annotation,)
        section = next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)), None)
        if section is not None and kinds[0] is section and Ellipsis not in kinds:  # a section, not a list of them
            yield from keys(section, f"{prefix}{name}.")
        elif not info.exclude:
            yield f"{prefix}{name}", info.get_default(call_default_factory=True)


def shown(default: Any) -> str:
    if default is PydanticUndefined:
        return "needed"
    if default is None:
        return "none"
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    if default == "":  # which keys need it depends on others
        return "none"
    if isinstance(default, tuple):
        default = [one.model_dump() if isinstance(one, BaseModel) else one for one in default]
    return f"`{default}`"


def test_every_key_is_documented_with_its_default() -> None:
    before_environment = PAGE.read_text().split("## Environment")[0]
    documented = dict(re.findall(r"^\| `([a-z0-9_.]+)` \| (.*?) \|", before_environment, re.MULTILINE))
    assert documented == {key: shown(default) for key, default in keys(Pipeline)}


def test_every_link_of_the_pages_leads_to_a_file() -> None:
    root = PAGE.parents[1]
    for page in [root / "README.md", *PAGE.parent.glob("*.md")]:
        for link in re.findall(r"\]\((?!http)([^)#]+)", page.read_text()):
            assert (page.parent / link).exists(), f"{page.name} links to {link}"
