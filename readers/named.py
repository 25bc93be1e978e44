"""The tables, and what stands for one, that a statement names: by DuckDB's own parser, since a column, an alias, a text
or a comment may have the name of a table."""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterator, Set
from dataclasses import dataclass
from typing import Any

BY_TEXT = {"query", "query_table", "pragma_table_info"}  # functions whose tables are in a text, which may be computed
TEXTS = re.compile(r"'(?:[^']|'')*'")
FUNCTION = "TABLE_FUNCTION"  # of which DuckDB's tree has the name in small letters
WORDS = re.compile(r'"((?:[^"]|"")+)"|(\w+)')


@dataclass(frozen=True)
class Named:
    """`names`: each with its database or an empty text. `words`: these, as the statement spells them. `sure`: they are
    no mere words."""

    names: Set[tuple[str, str]]
    words: Set[str]
    sure: bool

    def has(self, name: str, db: str, dbs: Container[str]) -> bool:
        """`dbs`: all there are, in lower case. What is none of them is left to DuckDB, as its own `memory`."""
        return any(
            one.lower() == name.lower() and (not told or told.lower() == db.lower() or told.lower() not in dbs)
            for told, one in self.names
        )


def named_in(connection: Any, sql: str) -> Named:
    """`connection`: DuckDB's. Where the parser's tree does not tell, all words are names."""
    words, tree = _words(sql), _tree(connection, sql)
    paths = [*_paths(tree)] if tree else []
    functions = {name.lower() for kind, path in paths if kind == FUNCTION for name in path}
    if tree is None or BY_TEXT & functions:
        return Named({("", word) for word in words}, words, sure=False)
    names = {(path[-2] if path[1:] else "", path[-1]) for _, path in paths}
    tables = {name for kind, path in paths if kind != FUNCTION for name in path}
    return Named(names, tables | {word for word in words if word.lower() in functions}, sure=True)


def _tree(connection: Any, sql: str) -> Any:
    """None of a PIVOT that has to find its columns, of which DuckDB shows none, and of one that is too deep."""
    [(text,)] = connection.execute("SELECT json_serialize_sql(?)", [sql]).fetchall()
    try:
        tree = json.loads(text)
    except RecursionError:
        return None
    return None if tree["error"] else tree["statements"]


def _paths(tree: Any) -> Iterator[tuple[str, list[str]]]:
    """Of what stands for tables, and what it is. `hidden`: names, in lower case, that a WITH gives to queries."""
    left: list[tuple[Any, frozenset[str]]] = [(tree, frozenset())]
    while left:
        node, hidden = left.pop()
        if isinstance(node, list):
            left += [(one, hidden) for one in node]
        if not isinstance(node, dict):
            continue
        hidden |= {node["cte_name"].lower()} if node.get("type") == "RECURSIVE_CTE_NODE" else set()
        for query in node.get("cte_map", {}).get("map", ()):
            left.append((query["value"], hidden))
            hidden |= {query["key"].lower()}  # not in its own query: that names a table
        if (path := _path(node)) and not (len(path) == 1 and path[0].lower() in hidden):
            yield node["type"], path
        left += [(value, hidden) for key, value in node.items() if key != "cte_map"]


def _path(node: dict[str, Any]) -> list[str]:
    """Of what stands for a table: its name behind those of its catalog and its database, where they are told."""
    kind = node.get("type")
    if kind == FUNCTION:
        node = node["function"]
    found: list[str] = node["qualified_name"]["path"] if kind in ("BASE_TABLE", "SHOW_REF", FUNCTION) else []
    return found


def _words(sql: str) -> set[str]:
    """With texts, and without them: two in which there is a lone double quote would be a quoted name."""
    found = [pair for text in (sql, TEXTS.sub(" ", sql)) for pair in WORDS.findall(text)]
    return {(quoted or plain).replace('""', '"') for quoted, plain in found} | {*re.findall(r"\w+", sql)}
