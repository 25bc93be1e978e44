"""What a person is told of a table's name that is none of the pipeline's."""

from __future__ import annotations

from pathlib import Path

import pytest

from contract import table_names
from contract.pipeline import Pipeline, load

FILE = """format: 1
name: shop
source: {host: h, user: u, password: "${NOT_SET_HERE}", server_id: 7}
tables:
  include: [shop.*, crm.clients, '/new_[0-9]+[.].*/']
  exclude: [shop.*_log, shop.cards]
kafka: {bootstrap: "h:9092"}
lake: {path: lake}
"""


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    (tmp_path / "shop.yaml").write_text(FILE)
    return load(tmp_path / "shop.yaml", secrets=False)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("orders", "'orders' is no table's name: write it as db.table"),
        ("shop.cards", "shop.yaml:6: tables.exclude[1], which is shop.cards: take that out to follow it"),
        ("shop.web_log", "shop.yaml:6: tables.exclude[0], which is shop.*_log: take that out to follow it"),
        ("crm.cleints", "is not one of the pipeline's tables (shop.*, crm.clients, "),
        ("crm.cleints", "did you mean crm.clients? See tables in "),
        ("CRM.Clients", "did you mean crm.clients? See tables in "),
        ("shpo.orders", "did you mean shop.orders? See tables in "),
        ("other.things", "): see tables in "),
        ("mysql.user", "is one of the server's own tables"),
    ],
)
def test_why_a_name_is_none_of_the_pipelines_tables(pipeline: Pipeline, name: str, words: str) -> None:
    assert words in str(table_names.refused(pipeline, name))


def test_a_name_that_may_be_one_is_not_refused(pipeline: Pipeline) -> None:
    for name in ("shop.orders", "shop.anything", "crm.clients", "new_7.t"):
        assert table_names.refused(pipeline, name) is None


def test_the_one_that_may_be_meant_is_told_with_the_name() -> None:
    known = ["shop.orders", "shop.Items", "shop.a"]
    assert table_names.told("shop.oders", known) == "shop.oders (did you mean shop.orders?)"
    assert table_names.told("shop.items", known) == "shop.items (did you mean shop.Items?)"
    assert table_names.told("shop.b", known) == "shop.b"
