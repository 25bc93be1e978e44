"""The pipeline file's section `columns`: which columns take part, and what stands in the place of their values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pydantic import Field, SecretStr, field_validator, model_validator

from contract import masks, patterns, types
from contract.masks import Kind, Mask
from contract.mistake import MistakeError
from contract.patterns import ColumnPattern
from contract.pipeline_file import place_of
from contract.pipeline_kafka import Section
from contract.schema import Column, TableSchema
from contract.types import Type

ALL = "*.*.*"
COUNTED = ("truncate", "keep_last")
Place = tuple[str | int, ...]  # keys of the pipeline file


class ColumnRuleError(ValueError):
    """A rule that cannot hold for a table: `place` are the keys of the file at which it stands."""

    def __init__(self, place: Place, cause: str, fix: str) -> None:
        super().__init__(f"{cause}. {fix}")
        self.place, self.cause, self.fix = place, cause, fix

    def told(self, path: Path) -> str:
        """With file, line and key."""
        return f"{place_of(path, *self.place)}: {self.cause}. {self.fix}"


class MaskRule(Section):
    """The mask of the columns that a pattern chooses."""

    columns: tuple[ColumnPattern, ...] = Field(min_length=1)
    mask: Kind
    n: int | None = Field(None, ge=1, description="characters that truncate and keep_last leave")
    keys: bool = Field(False, description="also where a column is a part of the primary key")

    @field_validator("mask", mode="before")
    @classmethod
    def _null(cls, given: object) -> object:
        return "null" if given is None else given  # as YAML reads it without quotes

    @model_validator(mode="after")
    def _fits(self) -> MaskRule:
        if (self.n is None) == (self.mask in COUNTED):
            what = f"n is for {' and '.join(COUNTED)}, and they need it: how many characters they leave"
            raise MistakeError(
                what, f"add n, such as n: 4, to a mask {' or '.join(COUNTED)}, and remove it from others"
            )
        if self.keys and self.mask != "hash":
            what = f"two keys may have one {self.mask}, so that rows would be lost: only hash can mask a key"
            raise MistakeError(what, "write mask: hash, or remove keys: true")
        return self

    def chooses(self, column: Column, schema: TableSchema) -> bool:
        return patterns.any_matches(self.columns, schema.db, schema.table, column.name, ignore_case=True)


@dataclass(frozen=True)
class Shown:
    """A table of the source as the pipeline shows it. `schema`: as the schema topic and the lake have it; its columns
    are some of `source`'s, in their order, those of `masks` masked. `rounded`: the columns of whose values the source's
    texts are others, as those of a DOUBLE(10,2) are, for whoever asks for them."""

    source: TableSchema
    schema: TableSchema
    masks: Mapping[str, Mask]
    rounded: frozenset[str] = frozenset()

    def type_of(self, name: str, flavor: str) -> Type:
        """The type table's row of a shown column. Its SQL works on the source's column."""
        column, mask = self.source.column(name), self.masks.get(name)
        if mask:
            return masks.type_of(column, mask, flavor)
        made = types.of(column.model_copy(update={"unfit": self.schema.column(name).unfit}), flavor)
        return types.rounded(made) if name in self.rounded else made


class Columns(Section):
    """Names without regard to case, as servers take columns' names. A column is in when it is included and not
    excluded; of the masks that choose it the first one counts."""

    include: tuple[ColumnPattern, ...] = (ALL,)
    exclude: tuple[ColumnPattern, ...] = ()
    secret: SecretStr | None = Field(None, description="of the hashes, as ${NAME}")
    masks: tuple[MaskRule, ...] = ()

    @model_validator(mode="after")
    def _secret_for_hashes(self) -> Columns:
        if self.secret is None and any(rule.mask == "hash" for rule in self.masks):
            raise MistakeError("a hash needs a secret", "write columns.secret: ${NAME} and set the variable NAME")
        return self

    @property
    def hides(self) -> bool:
        """Whether there is a rule at all."""
        return bool(self.masks or self.exclude or self.include != (ALL,))

    def key(self) -> bytes:
        """The secret of the hashes; empty without one."""
        return self.secret.get_secret_value().encode() if self.secret else b""

    def session(self) -> dict[str, str]:
        """Variables that a session of the server needs for the masks."""
        return masks.session(self.key()) if any(rule.mask == "hash" for rule in self.masks) else {}

    def show(self, source: TableSchema) -> Shown:
        """Raises ColumnRuleError."""
        if not self.hides:
            return Shown(source, source, {})
        kept = [column for column in source.columns if not self._left_out(column, source)]
        found = {column.name: mask for column in kept if (mask := self._mask(column, source))}
        columns = tuple(masks.shown(c, found[c.name]) if c.name in found else c for c in kept)
        return Shown(source, source.model_copy(update={"columns": columns}), found)

    def as_it_is(self, db: str, table: str, column: str) -> bool:
        """Whether a column's values take part, and not masked."""

        def chosen(by: tuple[str, ...]) -> bool:
            return patterns.any_matches(by, db, table, column, ignore_case=True)

        masked = any(chosen(rule.columns) for rule in self.masks)
        return chosen(self.include) and not chosen(self.exclude) and not masked

    def unused(self, sources: list[TableSchema]) -> list[tuple[Place, str]]:
        """The patterns of masks and of `exclude` that choose no column of these tables, with their places."""
        places: list[tuple[Place, str]] = [
            (("columns", "exclude", n), pattern) for n, pattern in enumerate(self.exclude)
        ]
        for at, rule in enumerate(self.masks):
            places += [(("columns", "masks", at, "columns", n), text) for n, text in enumerate(rule.columns)]
        every = [(schema.db, schema.table, column.name) for schema in sources for column in schema.columns]
        chosen = partial(patterns.matches, ignore_case=True)
        return [(place, text) for place, text in places if not any(chosen(text, *names) for names in every)]

    def _left_out(self, column: Column, schema: TableSchema) -> bool:
        names = schema.db, schema.table, column.name
        place: Place | None = None
        if not patterns.any_matches(self.include, *names, ignore_case=True):
            place = ("columns", "include")
        for n, pattern in enumerate(self.exclude):
            if place is None and patterns.matches(pattern, *names, ignore_case=True):
                place = ("columns", "exclude", n)
        if place and column.name in schema.key:
            cause = f"it takes out {'.'.join(names)}, a column of the primary key, by which a row is known"
            raise ColumnRuleError(place, cause, "Leave the column in; a mask hash with keys: true hides its values")
        return place is not None

    def _mask(self, column: Column, schema: TableSchema) -> Mask | None:
        chosen = ((at, rule) for at, rule in enumerate(self.masks) if rule.chooses(column, schema))
        at, rule = next(chosen, (0, None))
        if rule is None:
            return None
        name, place = f"{schema.db}.{schema.table}.{column.name}", ("columns", "masks", at)
        if column.name in schema.key and not rule.keys:
            cause = f"it masks {name}, a column of the primary key, and does not say that keys are masked"
            raise ColumnRuleError(place, cause, "Write mask: hash and keys: true, or choose other columns")
        mask = Mask(rule.mask, rule.n or 0, self.key() if rule.mask == "hash" else b"")
        if not masks.takes(column, mask):
            cause = f"it masks {name} of type {column.type}, whose values have no one text to mask"
            raise ColumnRuleError(place, cause, "Write mask: null, or exclude the column")
        return mask
