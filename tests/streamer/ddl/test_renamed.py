"""Which columns a statement renames, and when it does nothing else to any."""

from __future__ import annotations

import pytest

from streamer.ddl.renamed import Renamed, renamed

ONE = (("a", "b"),)


@pytest.mark.parametrize(
    ("statement", "columns", "alone"),
    [
        ("ALTER TABLE t RENAME COLUMN a TO b", ONE, True),
        ("alter table `shop`.`t` rename column `a` to `b`, ALGORITHM=INSTANT, ADD INDEX (b)", ONE, True),
        ("ALTER TABLE t RENAME COLUMN IF EXISTS a TO b", ONE, True),
        ("ALTER TABLE t CHANGE a b INT", ONE, True),
        ("ALTER TABLE t CHANGE COLUMN `a` `b` VARCHAR(9) NOT NULL COMMENT 'generated as float'", ONE, True),
        ("ALTER TABLE t RENAME COLUMN a TO b, RENAME COLUMN `c,d` TO `e``f`", (*ONE, ("c,d", "e`f")), True),
        ("ALTER TABLE t CHANGE a b INT, CHANGE b a INT", (*ONE, ("b", "a")), True),
        ("ALTER TABLE t RENAME COLUMN a TO b, MODIFY c BIGINT", ONE, False),
        ("ALTER TABLE t RENAME COLUMN a TO b, ADD c INT", ONE, False),
        ("ALTER TABLE t RENAME COLUMN a TO b, RENAME TO u", ONE, False),
        ("ALTER TABLE t RENAME COLUMN a TO b, DROP PARTITION p0", ONE, False),
        ("ALTER TABLE t RENAME COLUMN a TO b, CHANGE c c INT", ONE, False),
        ("ALTER IGNORE TABLE t RENAME COLUMN a TO b", ONE, False),
        ("ALTER TABLE t CHANGE a b INT GENERATED ALWAYS AS (c + 1)", ONE, False),
        ("ALTER TABLE t CHANGE a b FLOAT(7, 2)", ONE, False),
        ("ALTER TABLE t CHANGE a b INT AUTO_INCREMENT", ONE, False),
        ("ALTER TABLE t RENAME COLUMN a TO b" + " " * 100_000, ONE, False),
        ("ALTER TABLE t RENAME COLUMN a TO b, ENGINE=BLACKHOLE", ONE, False),
        ("ALTER TABLE t RENAME COLUMN a TO b, DROP INDEX `PRIMARY`", ONE, False),
        ("ALTER TABLE t RENAME COLUMN a TO b, ADD FOREIGN KEY (b) REFERENCES u (id)", ONE, True),
        ("ALTER TABLE t RENAME COLUMN a TO b, ADD FOREIGN KEY (b) REFERENCES u (id) ON DELETE CASCADE", ONE, False),
        ("ALTER TABLE t CHANGE a a BIGINT", (), False),
        ("ALTER TABLE t CHANGE a A INT", (), False),
        ("ALTER TABLE t RENAME INDEX a TO b", (), False),
        ("ALTER TABLE t RENAME TO u", (), False),
        ("ALTER TABLE t RENAME COLUMN a", (), False),
        ("ALTER TABLE t ADD c INT", (), False),
        ("ALTER DATABASE x CHARACTER SET utf8mb4", (), False),
        ("RENAME TABLE a TO b", (), False),
        ("", (), False),
    ],
)
def test_columns_that_are_renamed(statement: str, columns: tuple[tuple[str, str], ...], alone: bool) -> None:
    assert renamed(statement, "shop") == Renamed(columns, alone)


@pytest.mark.parametrize(
    ("statement", "dropped"),
    [
        ("ALTER TABLE t DROP COLUMN a, ADD COLUMN a INT", ("a",)),
        ("alter table t drop `a`, drop column if exists b, add b text", ("a", "b")),
        ("ALTER TABLE t DROP /* one */ COLUMN a -- and\n, ADD a INT", ("a",)),
        ("ALTER TABLE t DROP `index`", ("index",)),
        ("ALTER TABLE t DROP period, ADD period INT, DROP system", ("period", "system")),
        ("ALTER TABLE t DROP PERIOD FOR p, DROP SYSTEM VERSIONING", ()),
        ("ALTER TABLE t DROP INDEX a, DROP KEY a, DROP CONSTRAINT a, DROP FOREIGN KEY a, DROP CHECK a", ()),
        ("ALTER TABLE t DROP PRIMARY KEY, DROP PARTITION p0", ()),
        ("ALTER TABLE t ADD a INT COMMENT 'drop b, drop c'", ()),
        ("DROP TABLE a", ()),
    ],
)
def test_columns_that_are_dropped(statement: str, dropped: tuple[str, ...]) -> None:
    assert renamed(statement, "shop").dropped == dropped
