"""From a YAML file to a tree with line numbers, and from a model's mistakes to words a person can act on."""

from __future__ import annotations

import difflib
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, get_args

import yaml
from pydantic import BaseModel, ValidationError

from contract.chosen_section import Choice

Model = TypeVar("Model", bound=BaseModel)
Keys = tuple[str | int, ...]
Lines = dict[Keys, int]

REFERENCE = re.compile(r"\$\{(?:file:(?P<file>[^}]+)|(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?)\}")
SECRET = re.compile(r"(password|secret)$")
DEPTH = 10  # levels of keys; the format has four


@dataclass(frozen=True)
class Problem:
    """One mistake: `line` counts from 1 (0: the file as a whole)."""

    line: int
    key: str
    message: str
    allowed: str
    fix: str


class PipelineFileError(ValueError):
    """Every mistake of one pipeline file, in the order of its lines."""

    def __init__(self, path: Path, problems: list[Problem]) -> None:
        self.path = path
        self.problems = sorted(problems, key=lambda problem: problem.line)
        super().__init__(str(self))

    def __str__(self) -> str:
        count = len(self.problems)
        head = f"{self.path}: {count} mistake{'s' if count != 1 else ''}"
        return "\n".join([head, *(self._line(problem) for problem in self.problems)])

    def _line(self, problem: Problem) -> str:
        where = f"{self.path}:{problem.line}" if problem.line else str(self.path)
        allowed = f"\n    allowed: {problem.allowed}" if problem.allowed else ""
        return f"  {where}: {problem.key}: {problem.message}{allowed}\n    fix: {problem.fix}"


def read_yaml(path: Path) -> tuple[dict[str, Any] | None, Lines, list[Problem]]:
    """The file's tree with `${ENV}` filled in, the line of every key, and what was wrong so far."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8 text"
        return None, {}, [Problem(0, "file", f"cannot be read: {reason}", "", "check the path and its rights")]
    return read_text(text)


def read_text(text: str) -> tuple[dict[str, Any] | None, Lines, list[Problem]]:
    """The same of a file's text."""
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except RecursionError:
        return None, {}, [Problem(0, "yaml", "goes too deep", "", "start from pipelines/flights.yaml")]
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        text = str(getattr(error, "problem", None) or getattr(error, "reason", "is no YAML"))
        return (
            None,
            {},
            [Problem(mark.line + 1 if mark else 0, "yaml", text, "", "mend the YAML on this line or before")],
        )
    if not isinstance(root, yaml.MappingNode):
        problem = Problem(1, "file", "is not a mapping", "key: value lines", "start from pipelines/flights.yaml")
        return None, {}, [problem]
    reader = _Reader()
    tree = reader.value(root, ())
    return tree, reader.lines, reader.problems


def place_of(path: Path, *keys: str | int) -> str:
    """`file:line: key`, for an error that is found after the file was read; the line of the section where the key is
    not given."""
    line = line_of(path, None, *keys)
    return f"{path}:{line}: {dotted(keys)}" if line else f"{path}: {dotted(keys)}"


def line_of(path: Path, text: str | None, *keys: str | int) -> int:
    """Of the key in the text, or in the file where no text is given; of its section where the key is not given."""
    _, lines, _ = read_yaml(path) if text is None else read_text(text)
    return _line(lines, keys)


def problem_at(path: Path, keys: Keys, message: str, allowed: str, fix: str) -> PipelineFileError:
    """A mistake that is found after the file was read."""
    _, lines, _ = read_yaml(path)
    return PipelineFileError(path, [Problem(_line(lines, keys), dotted(keys), message, allowed, fix)])


def _line(lines: Lines, keys: Keys) -> int:
    return next((lines[keys[:n]] for n in range(len(keys), -1, -1) if keys[:n] in lines), 0)


class _Reader:
    def __init__(self) -> None:
        self.lines: Lines = {}
        self.problems: list[Problem] = []

    def value(self, node: yaml.Node, keys: Keys) -> Any:
        self.lines.setdefault(keys, node.start_mark.line + 1)
        if len(keys) > DEPTH:  # only an alias of what it stands in goes so deep
            self.problems.append(Problem(self.lines[keys], dotted(keys[:2]), "goes too deep", "", "remove the alias"))
            return None
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, keys)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, (*keys, index)) for index, item in enumerate(node.value)]
        value = self._scalar(node, keys)
        value = self._filled(value, keys) if isinstance(value, str) else value
        if value is not None and SECRET.search(str(keys[-1])):
            self._check_secret(node.value, str(value), keys)
        return value

    def _scalar(self, node: yaml.Node, keys: Keys) -> Any:
        """Python's value of what YAML takes the text for, such as a date; the text itself where it is none."""
        try:
            return yaml.SafeLoader("").construct_object(node)
        except (ValueError, LookupError, AttributeError, yaml.YAMLError):
            kind = node.tag.rpartition(":")[2]
            message = f"YAML takes the value for one of the kind {kind}, and it is none"
            self.problems.append(Problem(self.lines[keys], dotted(keys), message, "", "write it in quotes"))
            return str(node.value)

    def _check_secret(self, written: str, value: str, keys: Keys) -> None:
        """Neither its text nor a default for it may stand in the file. The message does not show it."""
        found = list(REFERENCE.finditer(written))
        name = str(keys[-1])
        also = ", or give password_file instead" if keys == ("source", "password") else ""
        if not found or any(one["default"] for one in found):
            file = f"{name}: ${{file:/run/secrets/NAME}}"
            fix = f"write {file}, or {name}: ${{NAME}} and set the environment variable NAME{also}"
            self._problem(keys, "stands in the file as plain text", fix)
        elif not value:
            first = found[0]
            where = f"a text into {first['file']}" if first["file"] else f"the environment variable {first['name']}"
            self._problem(keys, "is empty", f"{'write' if first['file'] else 'set'} {where}{also}")

    def _problem(self, keys: Keys, message: str, fix: str) -> None:
        self.problems.append(Problem(self.lines[keys], dotted(keys), message, "", fix))

    def _mapping(self, node: yaml.MappingNode, keys: Keys) -> dict[str, Any]:
        tree: dict[str, Any] = {}
        for key_node, value_node in node.value:
            name = str(key_node.value)
            at = (*keys, name)
            if name in tree:
                fix = "keep one of the two"
                self.problems.append(Problem(key_node.start_mark.line + 1, dotted(at), "given twice", "", fix))
            self.lines[at] = key_node.start_mark.line + 1
            tree[name] = self.value(value_node, at)
        return tree

    def _filled(self, text: str, keys: Keys) -> str:
        return REFERENCE.sub(lambda match: self._value(match, keys), text)

    def _value(self, match: re.Match[str], keys: Keys) -> str:
        secret = SECRET.search(str(keys[-1]))
        if match["file"]:
            return self._read(match["file"], keys) if secret else self._no_secret(keys)
        name, default = match["name"], match["default"]
        if (value := os.environ.get(name, default)) is None:
            fix = f"export {name}=..."
            if not secret:  # for which a default would be a password in the file
                fix += f", or write ${{{name}:-default}}"
            self._problem(keys, f"the environment variable {name} is not set", fix)
            return "0"
        return value

    def _read(self, name: str, keys: Keys) -> str:
        """A secret's file, less the line's end that editors leave behind it."""
        try:
            return Path(name).read_text(encoding="utf-8").strip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "not UTF-8 text"
            self._problem(keys, f"the file {name} cannot be read: {reason}", "check its path and its rights")
            return "0"

    def _no_secret(self, keys: Keys) -> str:
        self._problem(keys, "is no secret, and files are read for those alone", "write the value, or ${NAME}")
        return "0"


def problems_of(
    model: type[Model], path: Path, tree: dict[str, Any] | None, lines: Lines
) -> tuple[Model | None, list[Problem]]:
    """The model made from the tree, or None and the mistakes pydantic found, each with its line."""
    if tree is None:
        return None, []
    try:
        return model.model_validate(tree), []
    except ValidationError as error:
        return None, [_problem(model, dict(item), lines, tree) for item in error.errors(include_url=False)]


def _problem(model: type[BaseModel], item: dict[str, Any], lines: Lines, tree: dict[str, Any]) -> Problem:
    keys: Keys = tuple(item["loc"])
    line = _line(lines, keys)
    field = _section(model, keys[:-1], tree)
    name = str(keys[-1]) if keys else ""
    if item["type"] == "extra_forbidden":
        return _unknown_key(keys, name, field, line)
    if item["type"] == "missing":
        return Problem(line, dotted(keys), "is missing", _allowed(field, name), f"add {name}: ... here")
    allowed = item.get("ctx", {}).get("allowed") or _allowed(field, name)
    message = item["msg"].removeprefix("Value error, ").replace("a valid tuple", "a list")
    known = item.get("ctx", {}).get("fix")
    fix = known or "; ".join(filter(None, [f"write {allowed}" if allowed else "change it", _description(field, name)]))
    return Problem(line, dotted(keys) or "file", message, allowed, fix)


def _unknown_key(keys: Keys, name: str, field: type[BaseModel] | None, line: int) -> Problem:
    known = sorted(key for key, info in field.model_fields.items() if not info.exclude) if field else []
    close = difflib.get_close_matches(name, known, 1)
    fix = f"did you mean {close[0]}?" if close else "remove it"
    return Problem(line, dotted(keys), "is no known key", ", ".join(known), fix)


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


TYPES = {
    "array": "a list", "boolean": "true or false", "integer": "a whole number", "number": "a number",
    "object": "a section of keys", "string": "a text",
}  # fmt: skip


def _allowed(section: type[BaseModel] | None, name: str) -> str:
    if section is None or name not in section.model_fields:
        return ""
    schema = section.model_json_schema()["properties"].get(name, {})
    words = {"minimum": "at least", "maximum": "at most", "exclusiveMinimum": "above", "pattern": "pattern"}
    parts = [", ".join(map(str, schema["enum"]))] if "enum" in schema else []
    parts += [str(schema["const"])] if "const" in schema else []
    parts += [TYPES.get(schema["type"], schema["type"])] if "type" in schema and not parts else []
    return ", ".join(parts + [f"{word} {schema[key]}" for key, word in words.items() if key in schema])


def _description(section: type[BaseModel] | None, name: str) -> str:
    info = section.model_fields.get(name) if section else None
    return (info.description or "") if info else ""


def dotted(keys: Keys) -> str:
    """`("tables", "include", 0)` as `tables.include[0]`."""
    text = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys)
    return text.removeprefix(".")
