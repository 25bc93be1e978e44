"""What a transform may do to an event, and what is an error of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from contract import transforms
from contract.pipeline import Pipeline, PipelineFileError, load
from contract.schema import Column, TableSchema
from contract.transform_event import Event
from contract.transforms import Chain, TransformFaultError, TransformLoadError

FILE = """\
format: 1
name: sales
source: {{host: h, user: u, password_file: none, server_id: 7}}
tables: {{include: ["shop.*"]}}
transforms:
  - {rule}
kafka: {{bootstrap: "h:9092"}}
lake: {{path: lake}}
"""
SCHEMA = TableSchema(
    db="shop", table="t",
    columns=tuple(Column(name=name, type=kind) for name, kind in {"id": "bigint", "v": "double", "s": "text"}.items()),
    key=("id",),
)  # fmt: skip
ROW = {"id": 1, "v": 0.5, "s": "quokka"}


def pipeline(folder: Path, script: str, more: str = "") -> Pipeline:
    (folder / "t.py").write_text(script)
    (folder / "sales.yaml").write_text(FILE.format(rule=f'{{tables: ["shop.*"], script: t.py{more}}}'))
    return load(folder / "sales.yaml", secrets=False)


def chain(folder: Path, script: str, more: str = "") -> Chain:
    given = pipeline(folder, script, more)
    return Chain(given, SCHEMA, [(step, step.load()) for step in transforms.steps(given)])


def event(op: str = "c", before: Any = None, after: Any = ROW) -> Event:
    images = [None if image is None else dict(image) for image in (before, after)]
    return Event(op, "shop", "t", {"id": 1}, images[0], images[1], "sales.shop.t", {"gtid": "g:1"})


def body(*lines: str) -> str:
    return "def transform(event):\n" + "".join(f"    {line}\n" for line in lines)


def test_it_changes_drops_and_moves_and_the_columns_keep_their_order(tmp_path: Path) -> None:
    script = body("row = event.after", "event.after = {'s': len(row['s']) * '*', 'v': None, 'id': 1}", "return event")
    changed = chain(tmp_path, script).apply(event())
    assert changed is not None
    assert list(changed.after.items()) == [("id", 1), ("v", None), ("s", "******")]
    assert chain(tmp_path, body("return None")).apply(event()) is None
    moved = chain(tmp_path, body("event.topic = 'visits'", "event.after['id'] = -1", "return event")).apply(event())
    assert moved is not None
    assert (moved.topic, moved.key) == ("visits", {"id": -1}), "the key is that of the row"


def test_a_helper_is_a_name_in_the_script_and_a_function_may_be_of_a_package(tmp_path: Path) -> None:
    script = body("event.after['s'] = digest(b'x').hexdigest()[:4]", "return event")
    changed = chain(tmp_path, script, ", helpers: {digest: hashlib.sha256}").apply(event())
    assert changed is not None
    assert changed.after["s"] == "2d71"
    (tmp_path / "sales.yaml").write_text(FILE.format(rule='{tables: ["*.*"], function: copy.copy}'))
    given = load(tmp_path / "sales.yaml", secrets=False)
    assert [step.load()({}) for step in transforms.steps(given)] == [{}]


REFUSED = {
    "return 1": "returned int",
    "event.before = {}; return event": "made before",
    "event.after = None; return event": "removed after",
    "del event.after['s']; return event": "lacking: s",
    "event.after['more'] = 1; return event": "other columns",
    "event.after['v'] = 'x'; return event": "column v",
    "event.after['v'] = float('nan'); return event": "column v",
    "event.after['id'] = 2**63; return event": "column id a value that is not a whole number",
    "event.after['id'] = True; return event": "column id",
    "event.after['s'] = '\\ud800'; return event": "column s a value that is not a text",
    "event.after['id'] = None; return event": r"the key \(id\) without a value",
    "event.key = {'id': 9}; return event": "a key that is not the row's",
    "event.key = None; return event": "a key that is not the row's",
    "event.topic = 'a b'; return event": "no name of one",
    "event.topic = 'other.commit-log'; return event": "is its own",
    "event.topic = 'sales.shop.u'; return event": "reads other tables",
    "event.op = 'd'; return event": "AttributeError at t.py:2",
    "event.source['gtid'] = 'x'; return event": "TypeError at t.py:2",
    "raise SystemExit(3)": "SystemExit at t.py:2",
}


@pytest.mark.parametrize(("line", "told"), REFUSED.items())
def test_what_would_break_the_lake_is_an_error_of_the_transform(tmp_path: Path, line: str, told: str) -> None:
    with pytest.raises(TransformFaultError, match=told) as caught:
        chain(tmp_path, body(line)).apply(event())
    assert caught.value.on_error == "stop"


def test_an_update_has_one_key(tmp_path: Path) -> None:
    script = body("event.after['id'] += 1", "return event")
    with pytest.raises(TransformFaultError, match="in one image and not in the other"):
        chain(tmp_path, script).apply(event("u", ROW, ROW))


def test_an_error_s_own_words_are_not_told_since_they_may_hold_a_value(tmp_path: Path) -> None:
    with pytest.raises(TransformFaultError) as caught:
        chain(tmp_path, body("return int(event.after['s'])")).apply(event())
    assert caught.value.cause == "ValueError at t.py:2"
    assert "quokka" not in repr(event())


def test_an_event_passes_as_it_was_before_the_transform_that_failed(tmp_path: Path) -> None:
    made = chain(tmp_path, body("event.after['s'] = 'half'", "raise ValueError"), ", on_error: pass")
    passed = made.apply(event())
    assert passed is not None
    assert passed.after == ROW
    assert made.passed == 1
    assert made.fault is not None
    assert made.fault.cause == "ValueError at t.py:3"


MISTAKES = {
    '{tables: ["shop.*"]}': r"sales.yaml:6: transforms\[0\]: needs one of script",
    '{tables: ["shop.*"], script: none.py}': r"sales.yaml:6: transforms\[0\].script: .*none.py cannot be read",
    '{tables: ["shop.*"], script: bad.py}': r"sales.yaml:6: transforms\[0\].script: is no Python in line 1",
    '{tables: ["shop.*"], function: x}': r"sales.yaml:6: transforms\[0\].function: 'x' is no dotted path",
    '{tables: ["shop.*"], function: a.b, helpers: {x: a.b}}': "helpers are names for a script",
    '{tables: ["shop.*"], script: bad.py, helpers: {1x: a.b}}': "'1x' is no name",
}


@pytest.mark.parametrize(("rule", "told"), MISTAKES.items())
def test_mistakes_of_the_file_have_their_line(tmp_path: Path, rule: str, told: str) -> None:
    (tmp_path / "bad.py").write_text("def transform(event)\n")
    (tmp_path / "sales.yaml").write_text(FILE.format(rule=rule))
    with pytest.raises(PipelineFileError, match=told):
        load(tmp_path / "sales.yaml", secrets=False)


UNUSABLE = {
    "x = 1\n": "t.py cannot be used: it has no function",
    "import nowhere_to_be_found\n": "ModuleNotFoundError at t.py:1",
    "raise SystemExit\n": "SystemExit at t.py:1",
}


@pytest.mark.parametrize(("script", "told"), UNUSABLE.items())
def test_a_script_that_cannot_be_used_is_told_with_its_rule(tmp_path: Path, script: str, told: str) -> None:
    [step] = transforms.steps(pipeline(tmp_path, script))
    with pytest.raises(TransformLoadError, match=rf"sales.yaml:6: transforms\[0\]: .*{told}"):
        step.load()
