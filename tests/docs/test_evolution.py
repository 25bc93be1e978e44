"""docs/operations.md has a rule for every kind of change of a table's definition, and for no other."""

from __future__ import annotations

import re
from pathlib import Path

from contract.ddl_record import UNSEEN
from spark.evolution.shape_changes import TOLD

PAGE = Path(__file__).parents[2] / "docs" / "operations.md"


def test_every_kind_of_change_has_its_rule_in_the_page() -> None:
    section = PAGE.read_text().split("## When a table's definition changes")[1].split("\n## ")[0]
    rows = [row.split("|")[1:4] for row in section.splitlines() if row.startswith("| `")]
    kinds = [kind for row in rows for kind in re.findall(r"`([a-z ]+)`", row[0])]
    assert sorted(kinds) == sorted([*TOLD, *UNSEEN, "truncate", "shape", "harmless"])
    assert all(re.search(r"carried|stale|stopped", row[2]) for row in rows)
