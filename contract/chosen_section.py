"""A section of the pipeline file whose key `type` says which form it has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel
from pydantic_core import InitErrorDetails, PydanticCustomError, ValidationError


class Choice:
    """In an annotation of a field: the section's model by its `type`; `other` takes a class by its dotted path."""

    def __init__(self, by_type: Mapping[str, type[BaseModel]], other: type[BaseModel]) -> None:
        self._by_type = by_type
        self._other = other

    def model(self, given: object) -> type[BaseModel] | None:
        """None for what names no form."""
        kind = given.get("type") if isinstance(given, Mapping) else None
        if not isinstance(kind, str):
            return None
        return self._by_type.get(kind) or (self._other if "." in kind else None)

    def validate(self, given: Any) -> BaseModel:
        if isinstance(given, BaseModel):  # made in Python
            return given
        if (model := self.model(given)) is not None:
            return model.model_validate(given)
        allowed = f"{', '.join(self._by_type)}, or a class of your own by its dotted path"
        named = isinstance(given, Mapping) and "type" in given
        message = "is no known type" if named else "is missing"
        details = {"message": message, "allowed": allowed, "fix": f"write type: {next(iter(self._by_type))}"}
        error = PydanticCustomError("key", "{message}", details)
        raise ValidationError.from_exception_data(
            "Section", [InitErrorDetails(type=error, loc=("type",), input=None)], hide_input=True
        )
