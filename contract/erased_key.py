"""The keys of an erasure: as a person writes them down, as records have them, and as the source is asked for them.

A key is written as JSON, an object of its columns with the values that records have (`{"region": "eu", "n": 7}`), or,
where it has one column, as that value alone (`7`, `bob@example.org`). Values are the source's: where a column of the
key is masked, the mask is put on here, by the code of the streamer. No message repeats a value.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

from contract import masks
from contract.key_values import MISTAKES, text_of, value_of
from contract.masks import Mask
from contract.schema import Column, TableSchema

HASH: Final = "hash"  # the one mask of a key


class ErasedKeyError(ValueError):
    """What is no key of the table."""


@dataclass(frozen=True)
class ErasedKey:
    """`text`: the key of records, JSON. `values`: the source's, by column, as a statement's parameters. `given`: as
    they are written down; `unmasked`: the texts on which a mask works."""

    text: str
    values: dict[str, Any]
    given: Mapping[str, Any] = field(default_factory=dict, repr=False)
    unmasked: Mapping[str, str] = field(default_factory=dict, repr=False)


def keys_of(given: str, schema: TableSchema, secret: bytes = b"", source: TableSchema | None = None) -> list[ErasedKey]:
    """The keys of a JSON text: one, or a list of them. `schema`: the table's as it is shown; `secret`: of its hashes;
    `source`: the table with the columns of the source, by which values that a mask hides are spelled: without it they
    are taken as they are written. Raises ErasedKeyError."""
    name = f"{schema.db}.{schema.table}"
    if not schema.key:
        raise ErasedKeyError(f"{name} has no key, so that no row of it can be named: choose columns of it in keys")
    if not findable(schema, schema.key, secret):
        raise ErasedKeyError(
            f"{name}: its key is hashed, and the pipeline file has no columns.secret any more: write it there again"
        )
    items = written(given, name)
    if not items:
        raise ErasedKeyError(f"{name}: no key is given; its key is ({', '.join(schema.key)})")
    return [_key(item, at, schema, secret, source) for at, item in enumerate(items, 1)]


def findable(shape: TableSchema, key: Iterable[str], secret: bytes) -> bool:
    """Whether records of the shape tell what they have in the columns of the key: in plain, or by their hash."""
    masks_of = {column.name.lower(): column.mask for column in shape.columns}
    told = {name for name, mask in masks_of.items() if mask is None or (mask == HASH and secret)}
    return all(name.lower() in told for name in key)


def like(shape: TableSchema, name: str) -> Column:
    """The column of that name, in whatever capitals: to a server they are one. Of a shape that has it."""
    return next(column for column in shape.columns if column.name.lower() == name.lower())


def of_key(shape: TableSchema, key: Iterable[str]) -> TableSchema:
    """The shape with the columns of a key alone, in its order, each as the shape spells it."""
    columns = tuple(like(shape, name) for name in key)
    return shape.model_copy(update={"columns": columns, "key": tuple(column.name for column in columns)})


def text_in(shape: TableSchema, key: ErasedKey, secret: bytes) -> str | None:
    """The key in records of another shape of the table, in which it is `findable`: before its mask they have it in
    plain. None where the shape's columns cannot have such a value."""
    wires = {}
    for name, value in key.given.items():
        column = like(shape, name)
        try:
            wire = hashed(key.unmasked[name], secret) if column.mask else value_of(column, value)[0]
        except MISTAKES:
            return None
        wires[column.sent or column.name] = wire
    return _json(wires)


def hashed(text: str, secret: bytes) -> str | None:
    return masks.text_of(Mask(HASH, 0, secret))(text)


def written(given: str, name: str) -> list[Any]:
    """The keys as they are written down: a value each, or an object of columns. `name`: of the table, of which nothing
    need be known. Raises ErasedKeyError."""
    try:
        read = _read(given)
    except ValueError:
        read = given  # a value alone
    items = [item for item in (read if isinstance(read, list) else [read]) if item not in ("", None)]
    return [_opened(item, _where(name, at)) for at, item in enumerate(items, 1)]


def _where(name: str, at: int) -> str:
    return f"{name}: key {at}"


def _opened(item: Any, where: str) -> Any:
    """Of a text that is an object the object."""
    if not isinstance(item, str) or not item.lstrip().startswith("{"):
        return item
    try:
        return _read(item)
    except ValueError as problem:
        raise ErasedKeyError(f"{where} is no JSON: {problem}") from None


def _read(text: str) -> Any:
    """A number that may be written otherwise stays as it is written: of a column of texts it is one. Raises
    ValueError."""
    try:
        return json.loads(text, parse_float=str, parse_int=lambda digits: digits if digits[:2] == "-0" else int(digits))
    except RecursionError:
        raise ValueError("it goes too deep") from None


def _key(item: Any, at: int, schema: TableSchema, secret: bytes, source: TableSchema | None) -> ErasedKey:
    where = _where(f"{schema.db}.{schema.table}", at)
    row = _row(item, schema, where)
    wires, values, unmasked = {}, {}, {}
    for name in schema.key:
        column = schema.column(name)
        plain = _of_source(source, name) if column.mask else column
        try:
            wire, values[name] = value_of(plain, row[name]) if plain else _as_written(row[name])
        except MISTAKES as problem:
            raise ErasedKeyError(f"{where}: its {name} is no {told(plain or column)}: {problem}") from None
        unmasked[name] = text_of(wire)
        wires[name] = hashed(unmasked[name], secret) if column.mask else wire
    return ErasedKey(_json(wires), values, {name: row[name] for name in schema.key}, unmasked)


def _json(wires: Mapping[str, Any]) -> str:
    return json.dumps(wires, separators=(",", ":"), ensure_ascii=False)


def _of_source(source: TableSchema | None, name: str) -> Column | None:
    columns = source.columns if source else ()
    return next((column for column in columns if column.name.lower() == name.lower() and not column.mask), None)


def _as_written(value: Any) -> tuple[str, Any]:
    if not isinstance(value, str | int | Decimal):
        raise ValueError("a text or a number is expected")
    return text_of(value), value


def _row(item: Any, schema: TableSchema, where: str) -> dict[str, Any]:
    wanted = ", ".join(schema.key)
    if not isinstance(item, dict):
        if len(schema.key) > 1:
            raise ErasedKeyError(f"{where} is one value, and the key has the columns {wanted}: write an object of them")
        return {schema.key[0]: item}
    if set(item) != set(schema.key):
        raise ErasedKeyError(f"{where} has the columns {', '.join(item) or 'none'}; the key has {wanted}")
    return item


def told(column: Column) -> str:
    return f"{column.type}{' unsigned' if column.unsigned else ''}"
