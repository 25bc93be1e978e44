"""By the fingerprint two parts know whether they show rows alike."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from contract import fingerprint, transforms
from contract.pipeline import Pipeline
from tests.streamer.fakes import pipeline


def shown(folder: Path, script: str, **sections: Any) -> str:
    (folder / "t.py").write_text(script)
    rules = [{"tables": ["shop.*"], "script": "t.py", "on_error": "stop"}]
    plain = pipeline()
    given = plain.model_dump() | {
        "source": plain.source, "path": folder / "sales.yaml", "transforms": rules, **sections,
    }  # fmt: skip
    made = Pipeline.model_validate(given)
    return fingerprint.of(made, transforms.steps(made))


def test_it_changes_with_all_that_changes_a_row_and_with_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "sales.yaml").write_text("transforms: []\n")
    first = shown(tmp_path, "x = 1")
    same = shown(tmp_path, "x = 1", lake={"path": "elsewhere"}, kafka={"bootstrap": "other:1"})
    assert same == first
    masks = [{"columns": ["shop.t.v"], "mask": "hash"}]
    others = [
        shown(tmp_path, "x = 2"),
        shown(tmp_path, "x = 1", columns={"exclude": ["shop.t.v"]}),
        shown(tmp_path, "x = 1", columns={"secret": "a", "masks": masks}),
        shown(tmp_path, "x = 1", columns={"secret": "b", "masks": masks}),
        shown(tmp_path, "x = 1", transforms=[]),
    ]
    assert len({first, *others}) == len(others) + 1
