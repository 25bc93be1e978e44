"""What one action of an ALTER TABLE does to the rows that are there."""

from __future__ import annotations

from typing import Literal

from streamer.ddl.engines import keeps_no_rows
from streamer.ddl.options import OPTIONS, options
from streamer.ddl.tokens import END, Token, words

# `cascade` is one of the others, where it also gives a table a foreign key that changes rows in silence: notes.py.
Kind = Literal["truncate", "drop", "rename", "partition", "alter", "unknown", "cascade", "shape", "harmless"]
# What changes rows, or may; then what changes a table's shape alone, then what does neither.
CHANGES_ROWS: tuple[Kind, ...] = ("truncate", "drop", "rename", "partition", "alter", "unknown", "cascade")
KINDS: tuple[Kind, ...] = (*CHANGES_ROWS, "shape", "harmless")

# Actions of ALTER TABLE that leave the rows' values as they are, by their first word; so do most of its options.
ACTIONS = words(
    "ALGORITHM ALTER ANALYZE CHECK COALESCE DISABLE ENABLE FORCE LOCK OPTIMIZE ORDER PARTITION REBUILD REMOVE "
    "REORGANIZE SECONDARY_LOAD SECONDARY_UNLOAD VALIDATION WITH WITHOUT"
)
CHANGING = words("MODIFY CHANGE CONVERT IMPORT DISCARD REPAIR")
ELSEWHERE = words("CONNECTION UNION")  # where the rows of a FEDERATED, and of a MERGE table, are
KEYS = ("CONSTRAINT", "INDEX", "KEY")
INDEXES = words("INDEX KEY FULLTEXT SPATIAL UNIQUE FOREIGN CHECK")
# A new column with one of these words is not simply NULL in the rows that are there.
FILLED = words("NOT GENERATED AS AUTO_INCREMENT PRIMARY KEY SERIAL")
UNLESS_THERE = ["IF", "NOT", "EXISTS"]


def _drops_key(part: list[Token]) -> bool:
    """DROP CONSTRAINT `PRIMARY`, or INDEX, or KEY: it is the primary key's name."""
    first, second, third, *_ = (*(token for token in part if token.word not in UNLESS_THERE), END, END, END)
    return first.word == "DROP" and second.word in KEYS and third.name.upper() == "PRIMARY"


def action(part: list[Token]) -> Kind:
    """The kind of one action of ALTER TABLE."""
    if keeps_no_rows(part) or _drops_key(part):
        return "alter"
    if part and part[0].word in OPTIONS:
        return min(map(_option, options(part)), key=KINDS.index, default="harmless")
    return _kind([token.word for token in part])


def _option(word: str) -> Kind:
    return "alter" if word in ELSEWHERE else "harmless" if word in OPTIONS | ACTIONS else "unknown"


def _kind(words: list[str]) -> Kind:
    first, second, *_ = (*words, "", "")
    if second == "PARTITION" and first in ("DROP", "TRUNCATE", "EXCHANGE", "CONVERT"):
        return "partition"
    if (first, second) == ("CONVERT", "TABLE"):  # to partition p
        return "partition"
    if first == "RENAME":
        return "alter" if second == "COLUMN" else "harmless" if second in ("INDEX", "KEY") else "rename"
    if first in CHANGING:
        return "alter"
    if first == "DROP":
        return "harmless" if second in INDEXES or second == "CONSTRAINT" else "alter"
    if first == "ADD":
        return _added(second, words)
    return "harmless" if first in ACTIONS or not words else "unknown"


def _added(second: str, words: list[str]) -> Kind:
    if second == "CONSTRAINT":
        return "alter" if "PRIMARY" in words else "harmless"
    if second in INDEXES or second == "PARTITION":
        return "harmless"
    if second == "VECTOR" and words[2] in ("INDEX", "KEY"):  # by itself, a column's name
        return "harmless"
    if words[1:4] == UNLESS_THERE or words[2:5] == UNLESS_THERE:  # ADD [COLUMN] IF NOT EXISTS column
        words = words[words.index("EXISTS") + 1 :]
    defaults = any(word == "DEFAULT" and after != "NULL" for word, after in zip(words, [*words[1:], ""], strict=True))
    return "alter" if defaults or FILLED & set(words) or _filled_with_now(words) else "shape"


def _filled_with_now(words: list[str]) -> bool:
    """A new TIMESTAMP that does not say NULL: with explicit_defaults_for_timestamp=OFF it is the time of the ALTER."""
    columns = " ".join(words).split(",")
    return any("TIMESTAMP" in column.split() and "NULL" not in column.split() for column in columns)
