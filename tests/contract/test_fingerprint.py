"""By the fingerprint two parts know whether they show rows alike."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from contract import fingerprint, transforms
from contract.pipeline import Pipeline
from contract.shown_by import Rule, changed
from tests.checkpoints import checkpoint
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
        shown(tmp_path, "x = 1", events=[{"tables": ["shop.t"], "drop": ["delete"]}]),
    ]
    assert len({first, *others}) == len(others) + 1
    assert shown(tmp_path, "x = 1", events=[{"tables": ["shop.t"], "drop": ["ddl"]}]) == first


def test_what_was_left_out_once_is_lacking_until_a_snapshot(tmp_path: Path) -> None:
    """Also where the rule is taken back: no record brings those deletes."""
    plain = pipeline()
    left_out, whole = (
        Pipeline.model_validate(plain.model_dump() | {"source": plain.source, "events": events})
        for events in ([{"tables": ["shop.orders"], "drop": ["delete"]}], [])
    )
    told = checkpoint(pos=20)
    for one, pos in ((whole, 20), (left_out, 30), (whole, 40)):  # each is a start of the streamer
        told = told.model_copy(update={"pos": pos})
        told = told.showing(fingerprint.of(one, []), fingerprint.rules(one, []))
    rules = fingerprint.of(whole, [])
    assert told.shown_otherwise("shop", "orders", [0, 1, 10, -1, -1], rules) is not None
    assert told.shown_otherwise("shop", "orders", [0, 1, 41, -1, -1], rules) is None
    assert told.shown_otherwise("shop", "items", [0, 1, 10, -1, -1], rules) is None


def each(folder: Path, script: str = "x = 1", **sections: Any) -> tuple[Rule, ...]:
    (folder / "t.py").write_text(script)
    rules = [{"tables": ["shop.t"], "script": "t.py", "on_error": "stop"}]
    plain = pipeline()
    given = plain.model_dump() | {
        "source": plain.source,
        "path": folder / "sales.yaml",
        "transforms": rules,
        **sections,
    }
    made = Pipeline.model_validate(given)
    return fingerprint.rules(made, transforms.steps(made))


def test_rule_by_rule_it_tells_of_which_tables_a_change_is(tmp_path: Path) -> None:
    (tmp_path / "sales.yaml").write_text("transforms: []\n")

    def masked(secret: str, *columns: str) -> dict[str, Any]:
        return {"secret": secret, "masks": [{"columns": columns, "mask": "hash"}], "exclude": ["shop.late.x"]}

    first = each(tmp_path, columns=masked("a", "shop.a.b"))
    assert changed(first, each(tmp_path, columns=masked("a", "shop.a.b"))) == ()
    assert changed(first, each(tmp_path, "x = 2", columns=masked("a", "shop.a.b"))) == ("shop.t",)
    assert changed(first, each(tmp_path, columns=masked("b", "shop.a.b"))) == ("shop.a",)
    assert changed(first, each(tmp_path, columns=masked("a", "/.*b/"))) == ("shop.a", "*.*")
    keys = [{"tables": ["shop.k"], "columns": ["id"]}]
    assert changed(first, each(tmp_path, columns=masked("a", "shop.a.b"), keys=keys)) == ("shop.k",)
    assert set(changed(first, each(tmp_path))) == {"shop.late", "shop.a"}
    assert set(changed(first, each(tmp_path, columns={"include": ["shop.a.*"]}))) == {"*.*", "shop.late", "shop.a"}
