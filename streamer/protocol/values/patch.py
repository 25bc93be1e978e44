"""A JSON document with the server's differences applied: what PARTIAL_UPDATE_ROWS events hold instead of a document.

Source: MySQL's source documentation, sql-common/json_diff.cc: an operation, a path and, but for a removal, a value
each. Raises ValueError, IndexError or struct.error for differences that do not fit the document.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from streamer.protocol.lengths import lenenc
from streamer.protocol.values.document import ARRAY, OBJECT, Room, elements, members
from streamer.protocol.values.document import value as scalar
from streamer.protocol.values.text import escape

REPLACE, INSERT, REMOVE = 0, 1, 2
# A step into an array, from its begin or its end, or into an object by a name that is quoted where it is no plain word.
STEP = re.compile(
    r'\[(?:(?P<place>\d+)|last(?:-(?P<back>\d+))?)\]|\.(?:(?P<quoted>"(?:[^"\\]|\\.)*")|(?P<plain>[^.\[\]"\s]+))',
    re.DOTALL,
)

Node = bytes | list["Node"] | dict[bytes, "Node"]  # a scalar's text, an array, an object by its members' names
Step = int | bytes


def patched(raw: bytes, differences: bytes) -> bytes:
    """The text of the binary document `raw` as the differences make it."""
    whole: list[Node] = [_tree(raw[0], raw, 1, Room(raw))] if raw else [b"null"]
    for operation, path, value in _differences(differences):
        parent: Node = whole
        steps: list[Step] = [0, *path]
        for step in steps[:-1]:
            parent = _child(parent, step)
        _apply(parent, operation, steps[-1], value)
    return _text(whole[0])


def _differences(d: bytes) -> Iterator[tuple[int, list[Step], Node]]:
    o = 0
    while o < len(d):
        operation = d[o]
        size, o = lenenc(d, o + 1)
        path, o = _steps(d[o : o + size].decode()), o + size
        value: Node = b""
        if operation != REMOVE:
            size, o = lenenc(d, o)
            raw, o = d[o : o + size], o + size
            value = _tree(raw[0], raw, 1, Room(raw))
        if o > len(d):
            raise ValueError("a difference of JSON longer than its event")
        yield operation, path, value


def _steps(path: str) -> list[Step]:
    steps: list[Step] = []
    at = 1
    while at < len(path) or path[:1] != "$":
        match = STEP.match(path, at)
        if match is None or path[0] != "$":
            raise ValueError("a path into a JSON document that is none")
        if match["plain"] or match["quoted"]:
            steps.append((match["plain"] or json.loads(match["quoted"], strict=False)).encode())
        else:
            steps.append(int(match["place"]) if match["place"] else -1 - int(match["back"] or 0))
        at = match.end()
    return steps


def _child(node: Node, step: Step) -> Node:
    if isinstance(node, list) and isinstance(step, int):
        return node[step]
    if isinstance(node, dict) and isinstance(step, bytes):
        return node[step]
    raise ValueError("a difference of JSON that does not fit its document")


def _apply(parent: Node, operation: int, step: Step, value: Node) -> None:
    if operation == INSERT and isinstance(parent, list) and isinstance(step, int):
        parent.insert(step if step >= 0 else len(parent) + step + 1, value)
        return
    if operation == INSERT and isinstance(parent, dict) and isinstance(step, bytes) and step not in parent:
        parent[step] = value
        return
    _child(parent, step)  # is there
    if operation == REPLACE:
        parent[step] = value  # type: ignore[index]
    elif operation == REMOVE:
        del parent[step]  # type: ignore[arg-type, union-attr]
    else:
        raise ValueError(f"a difference of JSON of the unknown kind {operation}")


def _tree(kind: int, d: bytes, o: int, room: Room) -> Node:
    made: Node
    if kind in OBJECT:
        made = {name: _tree(one, d, at, room) for name, one, at in members(kind, d, o, room)}
    elif kind in ARRAY:
        made = [_tree(one, d, at, room) for one, at in elements(kind, d, o, room)]
    else:
        return scalar(kind, d, o, room)
    room.depth += 1
    return made


def _text(node: Node) -> bytes:
    if isinstance(node, bytes):
        return node
    if isinstance(node, list):
        return b"[" + b", ".join(map(_text, node)) + b"]"
    names = sorted(node, key=lambda name: (len(name), name))  # as the server sorts them
    return b"{" + b", ".join([b'"%b": %b' % (escape(name), _text(node[name])) for name in names]) + b"}"
