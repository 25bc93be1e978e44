"""The queries of docs/history.md and docs/readers.md, as they are written there, over a small lake."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from deltalake import write_deltalake
from typer.testing import CliRunner

from contract import names
from contract.pipeline import Pipeline, load
from contract.status import LakeStatus, TableStatus
from readers.lake import query
from streamer.cli import app
from tests.readers.lake_by_hand import FILE, PLACE, append, at, place

DOCS = Path(__file__).parents[2] / "docs"
GTID = "ad1e7f8b-d3d5-11f0-a8b1-0242ac110002"
COLUMNS = {"id": pl.Int64, "state": pl.String, "amount": pl.Int64}


@pytest.fixture
def pipeline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pipeline:
    """Order 7 was new at 10:10, was paid by transaction 42 at 10:41, and sent at 10:50."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "pipelines" / "shop.yaml"
    file.parent.mkdir()
    file.write_text(FILE.format(lake=tmp_path / "lake"))
    made = load(file, secrets=False)
    rows = [{"id": 7, "state": state, "amount": amount} for state, amount in (("new", 5), ("paid", 6), ("sent", 6))]
    changes = []
    for minute, number, before, after in ((10, 41, None, rows[0]), (41, 42, *rows[:2]), (50, 43, *rows[1:])):
        texts = [None if one is None else json.dumps(one) for one in (before, after)]
        change: dict[str, Any] = {"db": "shop", "tbl": "shop.orders", "key": '{"id":7}', "op": "u" if before else "c"}
        change |= {"before": texts[0], "after": texts[1], "_seq": place(minute)}
        changes.append(change | {"gtid": f"{GTID}:{number}", "ts": at(minute)})
    now = pl.DataFrame(
        [{**rows[2], "_seq": place(50), "_ts": at(50)}], {**COLUMNS, "_seq": PLACE, "_ts": pl.Datetime("us", "UTC")}
    )
    write_deltalake(names.lake_table(made, "shop", "orders"), now)
    append(made, changes)
    tables = {"shop.orders": TableStatus(db="shop", table="orders", rows=1, changes=3, version=0)}
    facts: dict[str, Any] = {"run": 1, "written_at": 0, "seconds": 1, "checkpoint": None, "changes_version": 0}
    text = LakeStatus(pipeline="shop", tables=tables, **facts).model_dump_json()
    Path(names.lake_root(made), "_status.json").write_text(text)
    return made


def test_the_queries_of_the_history_page(pipeline: Pipeline) -> None:
    block = re.search(r"```sql\n(.*?)```", (DOCS / "history.md").read_text(), re.DOTALL)
    assert block is not None
    found = [list(query(pipeline, sql).rows()) for sql in block[1].split(";") if sql.strip()]
    assert found[0] == [(7, "paid", 6)]
    assert [row[0] for row in found[1]] == ["new", "paid", "sent"]
    assert [(row[0], *row[3:]) for row in found[2]] == [(f"{GTID}:41", None, 5), (f"{GTID}:42", 5, 6)]
    assert found[3] == [("u", '{"id":7}', ["state", "amount"])]


@pytest.mark.usefixtures("pipeline")
def test_the_commands_of_the_readers_page() -> None:
    lines = re.findall(r"^\$ headrace (.*)$", (DOCS / "readers.md").read_text(), re.MULTILINE)
    told = [CliRunner().invoke(app, shlex.split(line)) for line in lines]
    assert [one.exit_code for one in told] == [0, 0], [one.output for one in told]
    assert "sent" in told[0].output
    assert json.loads(told[1].output) == {"id": 7, "state": "paid", "amount": 6}
