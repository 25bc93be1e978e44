"""The pipeline file's section `transforms`: a user's functions that change or drop the changes of some tables."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator, model_validator

from contract import patterns, regular_file
from contract.mistake import MistakeError
from contract.patterns import TablePattern
from contract.pipeline_kafka import Section

OnError = Literal["stop", "dead_letter", "pass"]
DOTTED = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+")
SIZE = 1_048_576  # bytes of a script


class TransformRule(Section):
    """One function of the changes of the tables that the patterns choose."""

    tables: tuple[TablePattern, ...] = Field(min_length=1)
    script: str | None = Field(None, min_length=1, description="a Python file with transform(event)")
    function: str | None = Field(None, description="package.module.function, on the Python path")
    helpers: dict[str, str] = Field(
        default_factory=dict, description="names in the script, each with its package.module.function"
    )
    on_error: OnError = "stop"

    @field_validator("function")
    @classmethod
    def _dotted(cls, path: str | None) -> str | None:
        if path is not None and not DOTTED.fullmatch(path):
            raise MistakeError(f"{path!r} is no dotted path", "write one, such as package.module.function")
        return path

    @field_validator("helpers")
    @classmethod
    def _names(cls, helpers: dict[str, str]) -> dict[str, str]:
        for name, path in helpers.items():
            if not name.isidentifier():
                raise MistakeError(f"{name!r} is no name in Python", "write letters, digits and _, no digit first")
            cls._dotted(path)
        return helpers

    @model_validator(mode="after")
    def _one_function(self) -> TransformRule:
        if (self.script is None) == (self.function is None):
            given = self.script is not None
            what = "needs one of script, a Python file, and function, a dotted path"
            raise MistakeError(what, "remove one of the two" if given else "add script: or function:")
        if self.helpers and self.script is None:
            raise MistakeError("helpers are names for a script: a function imports what it needs", "remove helpers")
        return self

    @property
    def name(self) -> str:
        return str(self.script or self.function)


def chosen(rules: tuple[TransformRule, ...], db: str, table: str) -> list[int]:
    """The places of the rules of the table's changes, in the order in which they are applied."""
    return [at for at, rule in enumerate(rules) if patterns.any_matches(rule.tables, db, table)]


def mistakes(rules: tuple[TransformRule, ...], folder: Path) -> list[tuple[int, str, str]]:
    """The scripts that are no Python: a rule's place, what is wrong, and the fix. `folder`: of the pipeline file. No
    script is run for it."""
    found = []
    for at, rule in enumerate(rules):
        if rule.script is None:
            continue
        path = folder / rule.script
        try:
            compile(regular_file.read(path, SIZE), rule.script, "exec", dont_inherit=True)
        except OSError as error:
            why = f"{path} cannot be read: {error.strerror}"
            found.append((at, why, "give the path from the pipeline file's folder, or mend the file's rights"))
        except (SyntaxError, ValueError) as error:
            line = f" in line {error.lineno}" if isinstance(error, SyntaxError) else ""
            why = f"is no Python{line}: {error.msg if isinstance(error, SyntaxError) else error}"
            found.append((at, why, "mend the script"))
    return found
