"""The printed decoder is the one that decodes."""

from __future__ import annotations

import json
from collections.abc import Callable
from struct import Struct

import pytest

from contract.pipeline import Pipeline
from contract.schema import Column, TableSchema
from streamer import outputs, present_table, show_decoder
from streamer.delivery_errors import UnknownSchemaError
from streamer.errors import UnreachableError
from streamer.present_table import PresentTable
from streamer.protocol.fields import field
from streamer.protocol.values.text import PLAIN, escape

SCHEMA = TableSchema(
    db="shop", table="orders", version=3, key=("id",),
    columns=(
        Column(name="id", type="int", nullable=False),
        Column(name="status", type="enum", charset="utf8mb4", members=("new", "paid")),
        Column(name="note", type="varchar", length=20, charset="utf8mb4"),
    ),
)  # fmt: skip
ROW = (7).to_bytes(4, "little") + b"\x02" + b'\x04a"b\\'
MASKED = {"masks": [{"columns": ["*.*.note"], "mask": "obfuscate"}]}
Answers = Callable[[TableSchema | None], None]


def pipeline(**columns: object) -> Pipeline:
    source = {"flavor": "mysql", "host": "h", "user": "u", "password": "p", "server_id": 1}
    return Pipeline.model_validate(
        {
            "format": 1, "name": "shop", "source": source, "tables": {"include": ["shop.*"]}, "columns": columns,
            "kafka": {"bootstrap": "localhost:9092"}, "lake": {"path": "lake"},
        }
    )  # fmt: skip


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Answers:
    """What the server has by now."""

    def now(schema: TableSchema | None) -> None:
        found = schema and PresentTable(schema, tuple(map(field, schema.columns)))
        monkeypatch.setattr(present_table, "ask", lambda *_: found)

    return now


def run(printed: str, **names: object) -> tuple[dict[str, object], list[bytes]]:
    """The row that it gives, and the keys."""
    scope = {"Struct": Struct, "PLAIN": PLAIN, "escape": escape, "x1": (b'""', b'"new"', b'"paid"'), **names}
    exec(printed, scope)
    rows: list[bytes] = []
    keys: list[bytes] = []
    assert scope["plan"](ROW, 0, rows.append, keys.append) == len(ROW)  # type: ignore[operator]
    return json.loads(rows[0]), keys


def test_what_is_printed_runs_and_decodes_a_row(answers: Answers) -> None:
    answers(SCHEMA.model_copy(update={"version": 0}))
    printed = show_decoder.source(pipeline(), SCHEMA)
    assert "shop.orders, schema version 3" in printed
    assert "# x1: gives the text of 'status', enum" in printed
    assert "<row" not in printed
    assert "Of the schema alone" not in printed
    assert run(printed) == ({"id": 7, "status": "paid", "note": 'a"b\\'}, [b'{"id":7}'])


def test_what_the_pipeline_leaves_out_is_read_past_and_what_it_masks_is_masked(answers: Answers) -> None:
    answers(SCHEMA)
    hiding = pipeline(exclude=["*.*.status"], **MASKED)
    printed = show_decoder.source(hiding, hiding.show(SCHEMA).schema)
    assert "# x2: gives the text of 'note', varchar; x2[1] masks it (obfuscate)" in printed
    assert run(printed, x2=(None, lambda wire: b'"***"')) == ({"id": 7, "note": "***"}, [b'{"id":7}'])


def test_it_says_where_the_schema_alone_tells(answers: Answers, monkeypatch: pytest.MonkeyPatch) -> None:
    answers(SCHEMA.model_copy(update={"columns": SCHEMA.columns[:2]}))
    assert "for the table has another shape by now" in show_decoder.source(pipeline(), SCHEMA)
    answers(None)
    assert "for the server no longer has the table" in show_decoder.source(pipeline(), SCHEMA)
    hiding = pipeline(exclude=["*.orders.id"])
    answers(SCHEMA)
    assert "for a rule of the pipeline file cannot hold" in show_decoder.source(hiding, SCHEMA)

    def away(*_: object) -> None:
        raise UnreachableError("connect to", "MySQL", "no answer", "start it")

    monkeypatch.setattr(present_table, "ask", away)
    printed = show_decoder.source(pipeline(), SCHEMA)
    assert "for the server could not be asked" in printed
    assert run(printed)[0] == {"id": 7, "status": "paid", "note": 'a"b\\'}


def test_a_masked_column_is_not_told_by_the_schema_alone(answers: Answers) -> None:
    answers(None)
    masked = pipeline(**MASKED).show(SCHEMA).schema
    with pytest.raises(UnknownSchemaError, match=r"the mask of note covers.*no longer has the table"):
        show_decoder.source(pipeline(), masked)


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ("shop.ordres", "has no schema of it. Did you mean shop.orders?"),
        ("orders", "'orders' is no table's name: write it as db.table"),
        ("store.orders", "store.orders is not one of the pipeline's tables (shop.*): see tables in"),
        ("shop.lines", "has no schema of it. It is written before the table's first record"),
    ],
)
def test_a_table_without_a_schema_is_told_with_the_one_that_may_be_meant(
    table: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outputs, "known_schemas", lambda _: [SCHEMA])
    with pytest.raises(UnknownSchemaError) as caught:
        show_decoder.printed(pipeline(), table, None)
    assert told in str(caught.value)


def test_a_name_ends_no_comment(answers: Answers) -> None:
    odd = SCHEMA.model_copy(update={"table": "or\nimport os\n"})
    answers(odd)
    assert "# shop.or\\nimport os\\n, schema" in show_decoder.source(pipeline(), odd)
