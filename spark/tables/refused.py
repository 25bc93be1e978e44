"""A table of the lake that takes no merge because of what somebody made of it: a constraint that a row of the source
does not meet, a property, a feature that this Delta does not know. What was found, when it came, what takes it back.

That is of one table. A failure of the machine (a full disk, a store that is away) is of all, and none of these.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress

from contract.names import quoted
from contract.steps import SNAPSHOT_TABLE
from spark.errors import chain
from spark.lake.broken import broken_table
from spark.lake.commits import FEW, commits
from spark.lake.lake import Lake
from spark.lake.stopped import Name
from spark.tables.merge import misfit
from spark.tables.schema import at

Found = re.Match[str]
OTHERS = "somebody else than Headrace's jobs"
PROPERTIES = "TBLPROPERTIES|UPGRADE PROTOCOL|ADD FEATURE|REPLACE TABLE|CREATE TABLE"


def own_fault(lake: Lake, name: Name, error: BaseException) -> str | None:
    """Why this table cannot be read or written, and the way back; None where the failure is not this table's own."""
    return broken_table(name, lake.table(*name), error) or refused(lake, name, error)


def unfit(lake: Lake, name: Name, error: BaseException) -> str | None:
    """Why the table cannot take what is to be written, and the way back; None where the failure is another than the
    table's own."""
    return own_fault(lake, name, error) or misfit(name, error)


def refused(lake: Lake, name: Name, error: BaseException) -> str | None:
    """What the table has that keeps everybody from writing it, and what takes it back."""
    told, path = "\n".join(chain(error)), lake.table(*name)
    for pattern, operation, words in RULES:
        if found := re.search(pattern, told):
            return f"{'.'.join(name)}: {words(found, path, _when(lake, path, operation))}"
    return None


def _when(lake: Lake, path: str, operation: str) -> str:
    """By which commit it came, as far as that is one of the last: a log of weeks is not read for a message."""
    if not operation:
        return ""
    with suppress(Exception):  # the log may be what is wrong
        behind = (lake.version(path) or 0) - FEW
        done = [one for one in commits(lake, path, max(behind, -1)) if re.search(operation, one.operation)]
        if strange := [one for one in done if not one.ours]:
            return f" ({strange[-1]})"
    return ""


def _constraint(found: Found, path: str, when: str) -> str:
    given, rule = found[1] or found[3], found[2] or found[4]
    name = given if re.fullmatch(r"[A-Za-z_]\w*", given) else quoted(given)
    return (
        f"the lake's table has the constraint {given} {' '.join(rule.split())}, which a row of the source does "
        f"not meet: {OTHERS} added it{when}. Take it back: ALTER TABLE {at(path)} DROP CONSTRAINT {name}"
    )


def _not_null(found: Found, path: str, when: str) -> str:
    column = found[1] or found[2]
    return (
        f"the lake's column {column} takes no NULL, which a row of the source has there: {OTHERS} made it so{when}. "
        f"Take it back: ALTER TABLE {at(path)} ALTER COLUMN {quoted(column)} DROP NOT NULL"
    )


def _append_only(found: Found, path: str, when: str) -> str:
    return (
        f"the lake's table takes no updates and no deletes: {OTHERS} set delta.appendOnly{when}. Take it back: "
        f"ALTER TABLE {at(path)} UNSET TBLPROPERTIES ('delta.appendOnly')"
    )


def _features(found: Found, path: str, when: str) -> str:
    what = f"features that Spark's Delta does not know ({found[1]})" if found[1] else "a newer protocol than Delta's"
    return (
        f"the lake's table has {what}: {OTHERS} gave it these{when}. Take them back with the program that did (ALTER "
        f"TABLE {at(path)} DROP FEATURE ...), or move the folder {path} away and {SNAPSHOT_TABLE}, which makes it anew"
    )


def _one_value(found: Found, path: str, when: str) -> str:
    return (
        "two keys of its changes are one value in the lake, where the source has two rows or wrote the key in two "
        f"ways. Give it a primary key of other types, then {SNAPSHOT_TABLE}; or exclude it"
    )


# What Delta says, by which operation of a log it came (empty: none), and the words. Values of rows are not told on.
RULES: tuple[tuple[str, str, Callable[[Found, str, str], str]], ...] = (
    (
        # A name may have blanks, a rule begins with a bracket or a function, but where it is one column.
        r"\[DELTA_VIOLATE_CONSTRAINT\w*\] CHECK constraint (?:(.+?) (\w*\([\s\S]*?)|(\S+) ([\s\S]*?)) "
        "violated by row",
        f"CONSTRAINT|{PROPERTIES}",
        _constraint,
    ),
    (
        r"(?m)\[DELTA_(?:NOT_NULL_CONSTRAINT\w*\] NOT NULL constraint violated for column: (.+?)\.?\s*$"
        r"|MISSING_NOT_NULL_COLUMN_VALUE\] Column (.+?), which)",
        f"CHANGE COLUMN|{PROPERTIES}",
        _not_null,
    ),
    (r"\[DELTA_CANNOT_MODIFY_APPEND_ONLY\]", PROPERTIES, _append_only),
    (
        r"\[DELTA_(?:UNSUPPORTED_FEATURES\w*\][\s\S]*?unsupported by Delta Lake \S+: ([\w, -]+)"
        r"|INVALID_PROTOCOL_VERSION)",
        PROPERTIES,
        _features,
    ),
    (r"\[DELTA_MULTIPLE_SOURCE_ROW\w*\]", "", _one_value),
)
