"""Parents, and children whose rows change by their keys when the parents do: by each rule that a key may have.

Of `owned` rows go with their parents; `linked` has a column for each rule that changes a row.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from contract.pipeline import Pipeline
from spark.lake.lake import Lake
from stack.database import Database
from tests.faults.kit import Expected
from tests.integration.decoding import run

CHILDREN = ("owned", "linked")
RULES = {"follows": "ON UPDATE CASCADE", "emptied": "ON UPDATE SET NULL", "bereft": "ON DELETE SET NULL"}
STILL = 9  # a row of `linked` whose parents keep still: it is for others to write to


def make(server: Database, db: str) -> None:
    keys = ", ".join(f"FOREIGN KEY ({name}) REFERENCES owners (id) {rule}" for name, rule in RULES.items())
    columns = ", ".join(f"{name} int" for name in RULES)
    run(
        server, "CREATE TABLE owners (id int PRIMARY KEY)",
        "CREATE TABLE owned (id int PRIMARY KEY, owner int, FOREIGN KEY (owner) REFERENCES owners (id) "
        "ON DELETE CASCADE)",
        f"CREATE TABLE linked (id int PRIMARY KEY, v int, {columns}, {keys})",
        "INSERT INTO owners VALUES (1), (2), (3), (4), (5)",
        "INSERT INTO owned VALUES (1, 1), (2, 2), (3, 2), (4, 3)",
        f"INSERT INTO linked VALUES (1, 0, 4, 1, 1), (2, 0, 1, 5, 1), (3, 0, 1, 1, 2), ({STILL}, 0, 1, 1, 1)",
        database=db,
    )  # fmt: skip


def change_parents(server: Database, db: str) -> None:
    run(
        server, "DELETE FROM owners WHERE id = 2", "UPDATE owners SET id = 40 WHERE id = 4",
        "UPDATE owners SET id = 50 WHERE id = 5", database=db,
    )  # fmt: skip


def unlogged(server: Database, db: str) -> list[Expected]:
    """What a check finds behind that: MySQL writes rows that keys changed into its binlog from 9.6 on, the others of
    the tests do not."""
    if server.name == "mysql":
        return []
    linked = [(1, "follows"), (2, "emptied"), (3, "bereft")]
    return [
        *(Expected(f"{db}.owned", "extra", id) for id in (2, 3)),
        *(Expected(f"{db}.linked", "changed", id, frozenset({column})) for id, column in linked),
    ]


def assert_followed(spark: SparkSession, pipeline: Pipeline, db: str) -> None:
    """The lake's rows are what the source's are then."""
    lake = Lake(spark, pipeline)
    owned, linked = (spark.read.format("delta").load(lake.table(db, name)).collect() for name in CHILDREN)
    assert {row["id"]: row["owner"] for row in owned} == {1: 1, 4: 3}
    assert {row["id"]: tuple(row[name] for name in RULES) for row in linked} == {
        1: (40, 1, 1), 2: (1, None, 1), 3: (1, 1, None), STILL: (1, 1, 1),
    }  # fmt: skip
