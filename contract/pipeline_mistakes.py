"""From what a model finds wrong in a pipeline file's tree to words that a person can act on, each with its line."""

from __future__ import annotations

import difflib
from dataclasses import replace
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from contract.chosen_section import Choice
from contract.pipeline_file import Problem, Read, dotted, place_in
from contract.pipeline_secrets import Keys, is_secret

Model = TypeVar("Model", bound=BaseModel)

OTHERS = "see what docs/configuration.md says of it"
TOLD = 100  # mistakes of values, beyond which they are only counted
OWN = ("value_error", "key")  # kinds of mistakes that our own checks find
SECTIONS = ("model_type", "model_attributes_type", "dict_type")  # what was given is none
TYPES = {
    "array": "a list, such as [a, b]", "boolean": "true or false", "integer": "a whole number", "number": "a number",
    "object": "a section of keys", "string": "a text",
}  # fmt: skip


def problems_of(model: type[Model], read: Read) -> tuple[Model | None, list[Problem]]:
    """The model made from the tree, or None and the mistakes pydantic found, each with its line. None shows a value
    that was filled in."""
    if read.tree is None:
        return None, []
    try:
        return model.model_validate(read.tree), []
    except ValidationError as error:
        found = _that_do_not_follow([dict(item) for item in error.errors(include_url=False)], model, read)
        problems = [_told(item, _problem(model, item, read), read) for item in found[:TOLD]]
        if len(found) > TOLD:
            message = f"has {len(found) - TOLD} more mistakes than are told here"
            problems.append(Problem(0, "file", message, "", "mend these first"))
        return None, problems


def _that_do_not_follow(items: list[dict[str, Any]], model: type[BaseModel], read: Read) -> list[dict[str, Any]]:
    """Without the mistakes that others bring: pydantic calls a list short whose items are wrong, and a key missing
    that is misspelled; what is said of a value that is not there, as a variable's that is not set, is of none."""
    above = {item["loc"][:-1] for item in items}
    meant = {(*item["loc"][:-1], _meant(model, item, read)) for item in items if item["type"] == "extra_forbidden"}
    follows = {"too_short": above, "missing": meant}
    return [item for item in items if item["loc"] not in follows.get(item["type"], ()) and not _of_no_value(item, read)]


def _meant(model: type[BaseModel], item: dict[str, Any], read: Read) -> str | None:
    return _close(str(item["loc"][-1]), _known(_section(model, item["loc"][:-1], read.tree)))


def _of_no_value(item: dict[str, Any], read: Read) -> bool:
    """Our own checks of a section may be about any value in it, but for secrets, of which they know no more than that
    one is there."""
    if item["type"] == "extra_forbidden":  # of the key, not of its value
        return False
    place, own = item["loc"], item["type"] in OWN
    within = [at for at in read.without if own and place and at[: len(place)] == place and not is_secret(at)]
    return bool(within) or any(place[: len(at)] == at for at in read.without)


def _told(item: dict[str, Any], problem: Problem, read: Read) -> Problem:
    """What our own checks say of a value may hold parts of it, or of others; pydantic's do not, nor what is said of a
    key. A check of one value or section knows no others."""
    if item["type"] not in OWN:
        return problem
    place = item["loc"]
    at = next((read.written[place[:n]] for n in range(1, len(place) + 1) if place[:n] in read.written), "")
    if at:
        return replace(problem, message=f"what {at} gives is not allowed here", fix=f"correct the value behind {at}")
    if item["type"] == "value_error" and place and not any(key[: len(place)] == place for key in read.written):
        return problem
    return read.hiding(problem)


def _problem(model: type[BaseModel], item: dict[str, Any], read: Read) -> Problem:
    keys: Keys = tuple(item["loc"])
    line = place_in(read.lines, keys)
    section = _section(model, keys[:-1], read.tree)
    name = str(keys[-1]) if keys else ""
    if item["type"] == "extra_forbidden":
        return _unknown_key(keys, name, section, line)
    if item["type"] == "missing":
        return Problem(line, dotted(keys), "is missing", _allowed(section, name), f"add {name}: ... here")
    if item["type"] in SECTIONS:
        return Problem(line, dotted(keys) or "file", _message(item), "", "write its keys below it, or remove the line")
    if item["type"] == "string_type" and isinstance(item["input"], bool | int | float | dict):
        why = ": { begins a mapping in YAML" if isinstance(item["input"], dict) else ""
        return Problem(line, dotted(keys), f"is no text{why}", "", "write the value in quotes")
    if item["type"] == "string_pattern_mismatch" and (form := _description(section, name)):
        return Problem(line, dotted(keys), _message(item), form, f"write {form}")  # an expression says less
    # What our own checks refuse is of the right type: to say the type would not help.
    allowed = item.get("ctx", {}).get("allowed") or ("" if item["type"] == "value_error" else _allowed(section, name))
    known = item.get("ctx", {}).get("fix") or getattr(item.get("ctx", {}).get("error"), "fix", None)
    one_of = "one of " if item["type"] == "literal_error" and ", " in allowed else ""
    change = f"write {one_of}{allowed}" if allowed else ""
    fix = known or "; ".join(filter(None, [change, _description(section, name)])) or OTHERS
    return Problem(line, dotted(keys) or "file", _message(item), allowed, fix)


def _message(item: dict[str, Any]) -> str:
    """In words of a file, where pydantic's are of Python."""
    if item["type"] in ("too_short", "string_too_short"):  # no section wants more than one
        return "is empty"
    if item["type"] in SECTIONS:
        return "is empty" if item["input"] is None else "is to be a section of keys"
    if item["type"] == "string_type" and item["input"] is None:
        return "is empty, which ~ and null are in YAML, too"
    if item["type"] == "string_pattern_mismatch":
        return "is not of the form that is wanted"
    message: str = item["msg"]
    return message.removeprefix("Value error, ").replace("a valid tuple", "a list").replace("Input should", "should")


def _unknown_key(keys: Keys, name: str, field: type[BaseModel] | None, line: int) -> Problem:
    known = _known(field)
    close = _close(name, known)
    fix = f"did you mean {close}?" if close else "remove it"
    return Problem(line, dotted(keys), "is no known key", ", ".join(known), fix)


def _known(field: type[BaseModel] | None) -> list[str]:
    return sorted(key for key, info in field.model_fields.items() if not info.exclude) if field else []


def _close(name: str, known: list[str]) -> str | None:
    return next(iter(difflib.get_close_matches(name, known, 1)), None)


def _section(model: type[BaseModel], keys: Keys, tree: Any) -> type[BaseModel] | None:
    """`tree`: what the file gives for the model, by which a section whose form the file chooses is known."""
    choice: Choice | None = None
    for key in keys:
        tree = _given(tree, key)
        if isinstance(key, str):  # else an item of a list
            info = model.model_fields.get(key)
            kinds = (info.annotation, *get_args(info.annotation), *info.metadata) if info else ()
            choice = next((one for kind in kinds for one in (kind, *get_args(kind)) if isinstance(one, Choice)), None)
            found = next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)), None)
        if choice is not None:
            found = choice.model(tree)
            if found is None and isinstance(tree, list):  # the item is the next key
                continue
        if found is None:
            return None
        model = found
    return model


def _given(tree: Any, key: str | int) -> Any:
    try:
        return tree[key]
    except (LookupError, TypeError):
        return None


def _allowed(section: type[BaseModel] | None, name: str) -> str:
    if section is None or name not in section.model_fields:
        return ""
    schema = section.model_json_schema()["properties"].get(name, {})
    words = {"minimum": "at least", "maximum": "at most", "exclusiveMinimum": "above", "pattern": "pattern"}
    schema = next((one for one in schema.get("anyOf", []) if one.get("type") != "null"), schema)  # may be left out
    parts = [", ".join(map(str, schema["enum"]))] if "enum" in schema else []
    parts += [str(schema["const"])] if "const" in schema else []
    parts += [TYPES.get(schema["type"], schema["type"])] if "type" in schema and not parts else []
    return ", ".join(parts + [f"{word} {schema[key]}" for key, word in words.items() if key in schema])


def _description(section: type[BaseModel] | None, name: str) -> str:
    info = section.model_fields.get(name) if section else None
    return (info.description or "") if info else ""
