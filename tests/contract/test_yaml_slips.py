"""A text that YAML cannot read is told with line, key and what to write instead, and without a secret."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import yaml

from contract.pipeline import PipelineFileError, parse
from contract.pipeline_file import dotted
from contract.yaml_slips import Slip, slip

HIDDEN = "hunter2"
SIGNS = "\"'{}[]*&!@%`:,-#|>?\t \n\r\u2028\x85~$\\"


def slip_of(text: str) -> Slip:
    with pytest.raises(yaml.YAMLError) as caught:
        yaml.compose(text, Loader=yaml.SafeLoader)
    return slip(text, caught.value)


@pytest.mark.parametrize(
    ("text", "line", "key", "message", "fix"),
    [
        ("tables:\n  include: *.orders\n", 2, "tables.include", "* begins an alias", '["*.orders"]'),
        ("tables:\n  include: [shop.*, *.orders]\n", 2, "tables.include", "* begins an alias", '"*.orders"'),
        ("tables:\n  include:\n  - *orders\n", 3, "tables.include", "* begins an alias", '"*orders"'),
        ("a: {b: {x: 1}, schedule: *x}\n", 1, "a.schedule", "* begins an alias", '"*x"'),
        ("c:\n  schedule: * * * * *  # all\n", 2, "c.schedule", "* begins an alias", '"* * * * *"'),
        ("c:\n  schedule: */5 * * * *\n", 2, "c.schedule", "* begins an alias", '"*/5 * * * *"'),
        ("c:\n  schedule: @hourly\n", 2, "c.schedule", "no value begins with @", '"@hourly"'),
        ("name: %name\n", 1, "name", "no value begins with %", '"%name"'),
        ("name: `x`\n", 1, "name", "no value begins with `", '"`x`"'),
        ("a:\n\tb: 1\n", 2, "a.b", "a tab stands where", "write blanks in its place"),
        ("a:\n  b:\t1\n", 2, "a.b", "a tab stands where", "write blanks in its place"),
        ("kafka:\n  topic: {a}.{b}\n", 2, "kafka.topic", "{ begins a mapping in YAML", '"{a}.{b}"'),
        ("name: [a]b\n", 1, "name", "[ begins a list in YAML", '"[a]b"'),
        ('include: ["/shop_\\d+/"]\n', 1, "include", "\\d is no escape", "single quotes: '/shop_\\d+/'"),
        ("a: 1\n---\nb: 2\n", 2, "", "a second document", "make a file of each"),
        ("a: 1\n...\nb: 2\n", 3, "", "a second document", "make a file of each"),
        ('a: "x\nb: 1\n', 1, "a", 'the quote " that begins here is not closed', 'close it with "'),
        ('x: 1\na: "x\nb: 1\nc: "d"\ne: 2\n', 2, "a", 'the quote " that begins here is not closed', 'close it with "'),
        ("a: 'it's'\n", 1, "a", "goes on behind the '", "quote the value as a whole"),
        ("a:\n  b: 1\n  port:3\n  c: 2\n", 3, "", "lacks the blank behind the :", "with a blank before the value"),
        ("port:3\nb: 2\n", 1, "", "lacks the blank behind the :", "with a blank before the value"),
        ("a: 1\nword\nb: 2\n", 2, "", "is no line of the form key: value", "write key: value"),
        ("a: x: y\n", 1, "a", "holds a : with a blank behind it", "in quotes"),
        ("a:\n  b: 1\n    c: 2\n", 3, "a.b.c", "is indented deeper", "in the same column"),
        ("a:\n  b: 1\n c: 2\n", 3, "a.c", "is indented otherwise", "in the same column"),
        ("a: [x, y\nb: 1\n", 1, "a", "the [ that begins here is not closed", "close it with ]"),
        ("a: {x: 1\nb: 1\n", 1, "a", "the { that begins here is not closed", "close it with }"),
        ("a: {x: ${Y}}\n", 1, "a.x", "${...} stands without quotes", "write the whole value in quotes"),
        ("path: &\n", 1, "path", "& has a meaning of its own", '"&"'),
        ("a: |x\n", 1, "a", "cannot be read here (column 5: expected chomping", "mend the YAML"),
        ("a: 1\nb: \x01\n", 2, "", "holds a sign that YAML does not take", "remove the sign"),
    ],
)  # fmt: skip
def test_a_slip_is_told_with_its_place_and_its_fix(text: str, line: int, key: str, message: str, fix: str) -> None:
    found = slip_of(text)
    assert (found.line, dotted(found.keys)) == (line, key)
    assert message in found.message
    assert fix in found.fix


@pytest.mark.parametrize(
    "text",
    [
        "password: @{}", "password: *{}", "source: {{host: h, password: *{}}}", "a:\n  password:\n  - *{}\n",
        'password: "{}\\q"', 'password: "{}" {}', "webhook: @{}", "password: {}: b", "password: &{}/ x",
        "password: |{}", "password: !{}!x y", "{{password: @{}}}", "'a b': *{}", "url: @x://me:{}@h/",
        "password: {}\n  a: b", 'password: "{}\na: b', "password: {}\nb\nc: d", "password:{}\nb: c", "{}\nb: c: d",
        "pasword: @{}", "password: [{}", "password: {{{}}}x", "private_key: `{}", "password: >{}",
        "source:\n  user: u\n  password: >-\n  {}:abc\n  b: c", "source:\n  password:\n  {}:abc\n  b: c",
        "password: x\n{}:abc\nb: c", "token:\n- {}:x\nb: c: d",
    ],
)  # fmt: skip
def test_what_may_be_a_secret_is_not_told(text: str) -> None:
    found = slip_of(text.replace("{}", HIDDEN).replace("{{", "{").replace("}}", "}"))
    assert HIDDEN not in found.message + found.fix + dotted(found.keys)


def test_it_is_a_mistake_of_the_pipeline_file(tmp_path: Path) -> None:
    with pytest.raises(PipelineFileError) as caught:
        parse("tables:\n  include: *.orders\n", tmp_path / "shop.yaml")
    told = (
        f'{tmp_path}/shop.yaml:2: tables.include: * begins an alias in YAML\n    fix: write it in quotes: ["*.orders"]'
    )
    assert told in str(caught.value)


def test_no_text_at_all_ends_in_a_traceback_or_shows_a_password(tmp_path: Path) -> None:
    plain = f"source:\n  password: {HIDDEN}\n  options: {{a: b, key: {HIDDEN}}}\ntables:\n  include: ['shop.*']\n"
    drawn = random.Random(7)
    for _ in range(200):
        text = plain
        for _ in range(drawn.randint(1, 3)):
            at = drawn.randrange(len(text))
            text = (
                text[:at] + drawn.choice("\"'{}[]*&!@%`:,-#|>?\t \n\r\u2028\x85~$\\") + text[at + drawn.randint(0, 1) :]
            )
        with pytest.raises(PipelineFileError) as caught:
            parse(text, tmp_path / "shop.yaml")
        if not yaml_takes(text):
            assert HIDDEN not in str(caught.value), text


def yaml_takes(text: str) -> bool:
    try:
        yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError:
        return False
    return True
