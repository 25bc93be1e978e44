"""The section `columns`: masks of values, which columns take part, and rules that cannot hold for a table."""

from __future__ import annotations

import hashlib
import hmac
from pathlib import Path

import pytest

from contract.masks import Mask, text_of
from contract.pipeline import PipelineFileError, load
from contract.pipeline_columns import ColumnRuleError, Columns
from contract.schema import Column, TableSchema

FILE = """\
format: 1
name: shop
source: {host: h, user: u, password: "${TEST_PASSWORD}", server_id: 3}
tables: {include: ["shop.*"]}
kafka: {bootstrap: "h:9092"}
lake: {path: lake}
columns:
"""
PEOPLE = TableSchema(
    db="shop",
    table="people",
    columns=(
        Column(name="id", type="bigint", unsigned=True, nullable=False),
        Column(name="Email", type="varchar", length=80, charset="latin1", nullable=False),
        Column(name="level", type="enum", charset="utf8mb4", members=("low", "high")),
        Column(name="weight", type="double"),
    ),
    key=("id",),
)


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_PASSWORD", "x")
    monkeypatch.setenv("TEST_SECRET", "a salt")


def columns(**given: object) -> Columns:
    return Columns.model_validate(given)


def masking(pattern: str, mask: str | None, **more: object) -> Columns:
    return columns(secret="a salt", masks=[{"columns": [pattern], "mask": mask, **more}])


def mistakes(tmp_path: Path, section: str) -> str:
    path = tmp_path / "shop.yaml"
    path.write_text(FILE + section)
    with pytest.raises(PipelineFileError) as caught:
        load(path)
    return str(caught.value)


def test_texts_under_each_mask() -> None:
    texts = {"truncate": "grö", "obfuscate": "*********", "keep_last": "******b😀n"}
    for kind, masked in texts.items():
        assert text_of(Mask(kind, 3))("größe-b😀n") == masked  # type: ignore[arg-type]
    assert text_of(Mask("keep_last", 3))("abc") == "***", "a text no longer than what is kept would be told whole"
    assert text_of(Mask("keep_last", 3))("") == ""
    assert text_of(Mask("null"))("abc") is None


@pytest.mark.parametrize("secret", [b"k", b"k" * 64, b"k" * 65])
def test_the_hash_is_hmac_sha256(secret: bytes) -> None:
    wanted = hmac.new(secret, "größe".encode(), hashlib.sha256).hexdigest()
    assert text_of(Mask("hash", secret=secret))("größe") == wanted


def test_a_masked_column_is_text_and_tells_nothing_of_what_it_was() -> None:
    shown = masking("shop.*.level", "hash").show(PEOPLE)
    assert shown.schema.column("level") == Column(
        name="level", type="varchar", length=64, charset="utf8mb4", mask="hash"
    )
    assert shown.schema.column("Email") == PEOPLE.column("Email")
    kept = masking("shop.people.email", "keep_last", n=4).show(PEOPLE)
    assert kept.schema.column("Email").mask == "keep_last(4)"
    assert not kept.schema.column("Email").nullable
    nothing = masking("shop.people.weight", None).show(PEOPLE)  # as YAML reads a null without quotes
    assert (nothing.schema.column("weight").type, nothing.schema.column("weight").mask) == ("double", "null")


def test_columns_are_chosen_by_glob_and_by_regular_expression_without_regard_to_case() -> None:
    names = [column.name for column in columns(exclude=[r"/shop\.pe.*\.e?mail/"]).show(PEOPLE).schema.columns]
    assert names == ["id", "level", "weight"]
    names = [column.name for column in columns(include=["*.*.id", "SHOP.people.E*"]).show(PEOPLE).schema.columns]
    assert names == ["id", "Email"]
    assert columns(exclude=["shop.other.*"]).show(PEOPLE).schema == PEOPLE


def test_the_first_mask_that_chooses_a_column_counts() -> None:
    rules = [{"columns": ["*.*.email"], "mask": "obfuscate"}, {"columns": ["shop.*.*mail"], "mask": "null"}]
    assert columns(masks=rules).show(PEOPLE).masks["Email"].kind == "obfuscate"


def test_a_key_is_masked_only_where_that_is_asked_for() -> None:
    assert masking("shop.people.id", "hash", keys=True).show(PEOPLE).schema.column("id").mask == "hash"
    with pytest.raises(ColumnRuleError, match=r"it masks shop\.people\.id, a column of the primary key.*keys: true"):
        masking("shop.people.i*", "hash").show(PEOPLE)


def test_what_cannot_hold_is_told_with_file_line_key_and_fix(tmp_path: Path) -> None:
    path = tmp_path / "shop.yaml"
    path.write_text(FILE + '  exclude:\n    - "shop.*.email"\n    - "*.*.id"\n')
    with pytest.raises(ColumnRuleError) as caught:
        load(path).columns.show(PEOPLE)
    assert caught.value.told(path) == (
        f"{path}:10: columns.exclude[1]: it takes out shop.people.id, a column of the primary key, by which a row is "
        "known. Leave the column in; a mask hash with keys: true hides its values"
    )
    with pytest.raises(ColumnRuleError, match=r"weight of type double, whose values have no one text.*mask: null"):
        masking("shop.people.weight", "truncate", n=1).show(PEOPLE)


@pytest.mark.parametrize(
    ("section", "told"),
    [
        ('  secret: plain\n  masks: [{columns: ["a.b.c"], mask: hash}]\n', "8: columns.secret: stands in the file as"),
        (
            '  masks: [{columns: ["a.b.c"], mask: hash}]\n',
            "7: columns: a hash needs a secret\n    fix: write columns.secret",
        ),
        ('  masks:\n    - {columns: ["a.b"], mask: obfuscate}\n', "9: columns.masks[0].columns[0]: 'a.b' is not of"),
        (
            '  masks: [{columns: ["a.b.c"], mask: hsh}]\n',
            "fix: write one of null, hash, truncate, obfuscate, keep_last",
        ),
        ('  masks: [{columns: ["a.b.c"], mask: truncate}]\n', "8: columns.masks[0]: n is for truncate and keep_last"),
        ('  masks: [{columns: ["a.b.c"], mask: obfuscate, keys: true}]\n', "only hash can mask a key"),
        ('  masks: [{columns: ["a.b.c"], mask: obfuscate, key: 1}]\n', "did you mean keys?"),
        ('  exclude: ["/a(/"]\n', "8: columns.exclude[0]: '/a(/' is no regular expression"),
    ],
)
def test_mistakes_of_the_section(tmp_path: Path, section: str, told: str) -> None:
    assert told in mistakes(tmp_path, section)


def test_a_statement_would_tell_what_is_hidden(tmp_path: Path) -> None:
    path = tmp_path / "shop.yaml"
    path.write_text(FILE.replace("server_id: 3", "server_id: 3, statements: true") + '  exclude: ["a.b.c"]\n')
    with pytest.raises(PipelineFileError, match=r"3: source\.statements: records would carry statements"):
        load(path)


def test_the_secret_is_in_no_repr(tmp_path: Path) -> None:
    path = tmp_path / "shop.yaml"
    path.write_text(FILE + '  secret: ${TEST_SECRET}\n  masks: [{columns: ["*.*.email"], mask: hash}]\n')
    pipeline = load(path)
    assert "a salt" not in repr(pipeline) + repr(pipeline.columns.show(PEOPLE)) + pipeline.model_dump_json()


def test_patterns_that_choose_nothing_are_told() -> None:
    rules = columns(exclude=["shop.people.emial"], masks=[{"columns": ["*.*.level", "a.b.c"], "mask": "obfuscate"}])
    assert [pattern for _, pattern in rules.unused([PEOPLE])] == ["shop.people.emial", "a.b.c"]
