"""From a YAML file to a tree with line numbers, and what is wrong with the text of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from contract import yaml_slips
from contract.pipeline_references import References
from contract.pipeline_secrets import LOGIN, PRIVATE, REFERENCE, Keys, hidden, is_secret, without

Lines = dict[Keys, int]

DEPTH = 10  # levels of keys; the format has four
NUL = "\0"
FILE = "file"  # stands in a key's place where there is nothing to be read
OTHER_BASE = re.compile(r"[-+]?(0[0-7_]+|[\d_]+(:[0-5]?\d)+(\.[\d_]*)?)")  # octal, or minutes, in YAML 1.1
NODES = 20_000  # keys and values, those behind each alias counted again


@dataclass(frozen=True)
class Problem:
    """One mistake: `line` counts from 1 (0: the file as a whole). `outside`: the file is right, and what it refers to
    is not there, or not yet."""

    line: int
    key: str
    message: str
    allowed: str
    fix: str
    outside: bool = False


class PipelineFileError(ValueError):
    """Every mistake of one pipeline file, in the order of its lines."""

    def __init__(self, path: Path, problems: list[Problem]) -> None:
        self.path = path
        self.problems = sorted(problems, key=lambda problem: problem.line)
        super().__init__(str(self))

    @property
    def of_file(self) -> bool:
        """Whether it is one mistake, of the file as a whole."""
        return [problem.key for problem in self.problems] == [FILE]

    def __str__(self) -> str:
        if self.of_file:
            return f"{self.path}: {self.problems[0].message}\n    fix: {self.problems[0].fix}"
        count = len(self.problems)
        head = f"{self.path}: {count} mistake{'s' if count != 1 else ''}"
        return "\n".join([head, *(self._line(problem) for problem in self.problems)])

    def _line(self, problem: Problem) -> str:
        where = f"{self.path}:{problem.line}" if problem.line else str(self.path)
        said = not problem.allowed or problem.allowed in problem.fix
        allowed = "" if said else f"\n    allowed: {problem.allowed}"
        return f"  {where}: {problem.key}: {problem.message}{allowed}\n    fix: {problem.fix}"


@dataclass(frozen=True)
class Read:
    """A file's tree with `${ENV}` filled in (None: it is none), the line of every key, and what was wrong so far.
    `written`: what stands where something is referred to; `without`: keys of whose values all is told that can be;
    `hidden`: what no message shows of the values."""

    tree: dict[str, Any] | None
    lines: Lines = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    written: dict[Keys, str] = field(default_factory=dict)
    without: frozenset[Keys] = frozenset()
    hidden: list[tuple[str, str]] = field(default_factory=list, repr=False)

    def hiding(self, problem: Problem) -> Problem:
        """The mistake, without values that were filled in."""
        message, fix = (without(text, self.hidden) for text in (problem.message, problem.fix))
        return replace(problem, message=message, fix=fix)


def read_yaml(path: Path, known: Mapping[Keys, str] | None = None) -> Read:
    """Raises nothing. `known`: as for `read_text`."""
    try:
        given = path.read_bytes()
    except OSError as error:
        fix = "check the path and its rights"
        return Read(None, {}, [Problem(0, FILE, f"cannot be read: {error.strerror or error}", "", fix)])
    try:
        text = given.decode("utf-8")
    except UnicodeDecodeError as error:
        line = given.count(b"\n", 0, error.start) + 1
        message = f"is not UTF-8 text: the first byte that is none is on line {line}"
        return Read(None, {}, [Problem(line, FILE, message, "", "save it as UTF-8")])
    return read_text(text.replace("\r\n", "\n").replace("\r", "\n"), known)


def read_text(text: str, known: Mapping[Keys, str] | None = None) -> Read:
    """The same of a file's text. `known`: the references that are taken beside those for secrets, of a text from
    elsewhere; None: all are."""
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except RecursionError:
        return Read(None, {}, [Problem(0, "yaml", "goes too deep", "", "start from pipelines/flights.yaml")])
    except yaml.YAMLError as error:
        slip = yaml_slips.slip(text, error)
        return Read(None, {}, [Problem(slip.line, dotted(slip.keys) or "yaml", slip.message, "", slip.fix)])
    if not isinstance(root, yaml.MappingNode):
        problem = Problem(1, "file", "is not a mapping", "key: value lines", "start from pipelines/flights.yaml")
        return Read(None, {}, [problem])
    reader = _Reader(known)
    try:
        tree = reader.value(root, ())
    except _TooLargeError:
        fix = "write less, and fewer aliases"
        return Read(None, {}, [Problem(0, "yaml", f"has more than {NODES} keys and values", "", fix)])
    found = reader.references
    return Read(tree, reader.lines, reader.problems, found.written, frozenset(found.without), hidden(found.filled))


def references(path: Path) -> dict[Keys, str]:
    """What stands in the file where something is referred to."""
    return read_yaml(path, {}).written


def place_of(path: Path, *keys: str | int) -> str:
    """`file:line: key`, for an error that is found after the file was read; the line of the section where the key is
    not given."""
    line = line_of(path, None, *keys)
    return f"{path}:{line}: {dotted(keys)}" if line else f"{path}: {dotted(keys)}"


def line_of(path: Path, text: str | None, *keys: str | int) -> int:
    """Of the key in the text, or in the file where no text is given; of its section where the key is not given."""
    return place_in((read_yaml(path, {}) if text is None else read_text(text, {})).lines, keys)


def problem_at(path: Path, keys: Keys, message: str, allowed: str, fix: str) -> PipelineFileError:
    """A mistake that is found after the file was read."""
    found = read_yaml(path)
    shown = without(message, found.hidden)
    return PipelineFileError(path, [Problem(place_in(found.lines, keys), dotted(keys), shown, allowed, fix)])


def place_in(lines: Lines, keys: Keys) -> int:
    """The line of the key, or of the section that it is missing in."""
    return next((lines[keys[:n]] for n in range(len(keys), -1, -1) if keys[:n] in lines), 0)


class _TooLargeError(Exception):
    pass


class _Reader:
    def __init__(self, known: Mapping[Keys, str] | None) -> None:
        self.lines: Lines = {}
        self.problems: list[Problem] = []
        self.references = References(known, self._problem)
        self._nodes = 0

    def value(self, node: yaml.Node, keys: Keys) -> Any:
        self._nodes += 1
        if self._nodes > NODES:
            raise _TooLargeError
        self.lines.setdefault(keys, node.start_mark.line + 1)
        if len(keys) > DEPTH:  # only an alias of what it stands in goes so deep
            self.problems.append(Problem(self.lines[keys], dotted(keys[:2]), "goes too deep", "", "remove the alias"))
            return None
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, keys)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, (*keys, index)) for index, item in enumerate(node.value)]
        value = self._scalar(node, keys)
        value = self.references.fill(value, keys) if isinstance(value, str) else value
        if isinstance(value, str) and NUL in value:
            self._problem(keys, "holds a NUL, which stands in no name, path or password", "remove it")
        told = keys in self.references.without and not REFERENCE.search(str(node.value))
        if value is not None and is_secret(keys) and not told:
            self._check_secret(node.value, str(value), keys)
        elif LOGIN.search(node.value if PRIVATE.search(str(keys[-1])) else str(value)):
            fix = "leave user and password out: options take them, as ${NAME}; a webhook may be ${NAME} as a whole"
            self._problem(keys, "holds a password, and is shown", fix)
        return value

    def _scalar(self, node: yaml.Node, keys: Keys) -> Any:
        """Python's value of what YAML takes the text for, such as a date; the text itself where it is none."""
        try:
            value = yaml.SafeLoader("").construct_object(node)
        except (ValueError, LookupError, AttributeError, yaml.YAMLError):
            kind = node.tag.rpartition(":")[2]
            self._problem(
                keys, f"YAML takes the value for one of the kind {kind}, and it is none", "write it in quotes"
            )
            return str(node.value)
        if isinstance(value, int | float) and OTHER_BASE.fullmatch(node.value) and not is_secret(keys):
            fix = f"write {value} for that number, or {node.value} in quotes for a text"
            self._problem(keys, f"YAML takes {node.value} for the number {value}", fix)
            self.references.without.add(keys)
        return value

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
            self._problem(keys, "is empty", f"{'write' if first['file'] else 'set'} {where}{also}", outside=True)

    def _problem(self, keys: Keys, message: str, fix: str, outside: bool = False) -> None:
        self.problems.append(Problem(self.lines[keys], dotted(keys), message, "", fix, outside))

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


def dotted(keys: Keys) -> str:
    """`("tables", "include", 0)` as `tables.include[0]`."""
    text = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys)
    return text.removeprefix(".")
