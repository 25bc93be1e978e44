"""What the lines of a text that is no YAML tell of a place in it: the keys above it, and the value that begins
there."""

from __future__ import annotations

import re

from contract.pipeline_secrets import Keys

KEY = re.compile(r"(?P<indent>\s*(?:-\s+)*)(?P<quote>[\"']?)(?P<name>[A-Za-z_][\w.-]*)(?P=quote):(?:\s|$)")
WITHIN = re.compile(r"(?P<sign>[\[\]{},])|(?P<quote>[\"']?)(?P<name>[A-Za-z_][\w.-]*)(?P=quote):(?:\s|$)")
COMMENT = re.compile(r"\s+#.*$")
END = re.compile(r"[\],}]")


def keys_at(lines: list[str], line: int, column: int) -> Keys:
    """The key of the place, behind those of the sections that it is in, by what is indented less; none where the line
    does not tell."""
    text = lines[line] if line < len(lines) else ""
    found: list[str] = []
    deep = len(text) - len(text.lstrip(" -\t"))
    if own := KEY.match(text):
        found = _inner(text[: max(column, own.end())])
    elif not text.lstrip(" \t").startswith("-"):
        return ()
    else:
        deep = len(text) - len(text.lstrip(" \t")) + 1  # its key may stand in the same column
    for above in reversed(lines[:line]):
        if (key := KEY.match(above)) and len(key["indent"]) < deep:
            deep = len(key["indent"])
            found.insert(0, key["name"])
    return tuple(found)


def _inner(text: str) -> list[str]:
    """The keys that are open at the end of a line's beginning."""
    open_at: list[list[str]] = [[]]
    for one in WITHIN.finditer(text):
        if one["name"]:
            open_at[-1] = [one["name"]]
        elif one["sign"] == ",":
            open_at[-1] = open_at[-1] if len(open_at) == 1 else []
        elif one["sign"] in "[{":
            open_at.append([])
        elif len(open_at) > 1:
            open_at.pop()
    return [name for names in open_at for name in names]


def is_listed(line: str, column: int) -> bool:
    """Whether the value is an item already."""
    before = line[:column]
    return before.count("[") > before.count("]") or before.lstrip().startswith("-")


def value_at(line: str, column: int) -> str:
    """The value that begins there, without a comment behind it; within a list or mapping of one line to its end."""
    before, value = line[:column], COMMENT.sub("", line[column:].rstrip())
    within = before.count("[") + before.count("{") > before.count("]") + before.count("}")
    if within and value[:1] in ("'", '"') and (end := value.find(value[0], 1)) > 0:
        return value[: end + 1]
    return END.split(value)[0].rstrip() if within else value
