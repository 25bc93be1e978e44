"""The transforms of a pipeline, run: by the streamer on changes, by the snapshot on rows, in the same way.

In: an `Event`. Out: the event as the last transform left it, or None where one of them dropped it. What a transform may
not do is an error of it as much as one that it raises: the lake knows a row by its key and reads it by its schema.
"""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isfinite
from pathlib import PurePath
from traceback import extract_tb
from typing import Any

from contract import names, pipeline_transforms, regular_file, transform_values, types
from contract.pipeline import Pipeline
from contract.pipeline_file import place_of
from contract.pipeline_transforms import OnError
from contract.schema import Column, TableSchema
from contract.transform_event import Event, Image

Function = Callable[[Event], Event | None]
TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
BIGINT = range(-(2**63), 2**63)
UNSIGNED = range(2**64)


# One encoder: json.dumps makes a new one each time that it is asked for anything but its defaults.
encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode


def json_text(value: Any) -> bytes | None:
    """Compact, UTF-8; None for what is no JSON, such as a NaN or half a character."""
    try:
        return encode(value).encode()
    except (ValueError, TypeError, RecursionError):
        return None


def made_of_parts(value: Any) -> bool:
    return type(value) in (list, dict) and json_text(value) is not None


KINDS: dict[str, Callable[[Any], bool]] = {
    "bigint": lambda value: type(value) is int and value in BIGINT,
    "decimal(20,0)": lambda value: type(value) is int and value in UNSIGNED,
    "boolean": lambda value: type(value) is bool,
    "double": lambda value: type(value) is int or (type(value) is float and isfinite(value)),
    "string": lambda value: type(value) is str and (value.isascii() or json_text(value) is not None),
}
TOLD = {"bigint": "a whole number", "decimal(20,0)": "a whole number", "boolean": "true or false", "string": "a text"}


class TransformLoadError(ValueError):
    """A script or function that cannot be used: `place` in the pipeline file, why, and what to do."""

    def __init__(self, place: str, cause: str, fix: str) -> None:
        super().__init__(f"{place}: {cause}. {fix}")
        self.place, self.cause, self.fix = place, cause, fix


class TransformFaultError(Exception):
    """A transform failed on one event, or did what it may not. `cause` tells nothing of the row's values; `rule`: its
    place in the list; `on_error`: what is to follow."""

    def __init__(self, rule: int, name: str, cause: str, on_error: OnError) -> None:
        super().__init__(cause)
        self.rule, self.name, self.cause, self.on_error = rule, name, cause, on_error


class RefusedChangeError(ValueError):
    """A change of the event that would break the lake."""


@dataclass(frozen=True)
class Step:
    """A rule with its script's text, so that it can be sent to another machine. `place`: in the pipeline file."""

    rule: int
    place: str
    name: str
    text: str | None
    helpers: tuple[tuple[str, str], ...]
    on_error: OnError

    def load(self) -> Function:
        """Runs the script's own lines. Raises TransformLoadError."""
        if self.text is None:
            found: Function = self._imported(self.name)
            return found
        space: dict[str, Any] = {"__name__": "headrace_transform", "__file__": self.name}
        space |= {name: self._imported(path) for name, path in self.helpers}
        try:
            exec(compile(self.text, self.name, "exec", dont_inherit=True), space)
        except (Exception, SystemExit) as error:
            raise self._unusable(
                f"{type(error).__name__} at {where(error, self)}: {error}", "Mend the script"
            ) from None
        own: Function = self._callable(space.get("transform"), "it has no function transform(event)")
        return own

    def _imported(self, path: str) -> Any:
        module, _, name = path.rpartition(".")
        try:
            found = getattr(importlib.import_module(module), name, None)
        except (Exception, SystemExit) as error:
            fix = "Put its package on the Python path (PYTHONPATH), also of Spark's workers"
            raise self._unusable(f"{path} cannot be imported: {type(error).__name__}: {error}", fix) from None
        return self._callable(found, f"the module {module} has no function {name}")

    def _callable(self, found: Any, lacking: str) -> Any:
        if not callable(found):
            raise self._unusable(lacking, "Write it, or mend the name")
        return found

    def _unusable(self, cause: str, fix: str) -> TransformLoadError:
        return TransformLoadError(self.place, f"{self.name} cannot be used: {cause}", fix)


def steps(pipeline: Pipeline) -> list[Step]:
    """The rules in their order, none of them run. Raises TransformLoadError."""
    found = []
    for at, rule in enumerate(pipeline.transforms):
        place = place_of(pipeline.path, "transforms", at)
        text = None
        if rule.script is not None:
            try:
                text = regular_file.read(pipeline.path.parent / rule.script, pipeline_transforms.SIZE)
            except (OSError, UnicodeDecodeError) as error:
                cause = getattr(error, "strerror", None) or "not UTF-8 text"
                raise TransformLoadError(place, f"{rule.script} cannot be read: {cause}", "Mend the file") from None
        helpers = tuple(sorted(rule.helpers.items()))
        found.append(Step(at, place, rule.name, text, helpers, rule.on_error))
    return found


Loaded = tuple[Step, Function]


class Chain:
    """Those of the pipeline's `loaded` transforms that choose a table, in one shape of it. `topic`: the table's own."""

    def __init__(self, pipeline: Pipeline, schema: TableSchema, loaded: list[Loaded]) -> None:
        self._pipeline = pipeline
        self._names = [column.name for column in schema.columns]
        self._kinds = {column.name: _kind(column, pipeline.source.flavor) for column in schema.columns}
        self._key = schema.key
        self._loaded = [loaded[at] for at in pipeline_transforms.chosen(pipeline.transforms, schema.db, schema.table)]
        self.topic = names.events_topic(pipeline, schema.db, schema.table)
        self.passed = 0  # how often an event went on unchanged by a transform that failed on it
        self.fault: TransformFaultError | None = None  # the last of them

    def apply(self, event: Event) -> Event | None:
        """Its images' columns are in the schema's order then. Raises TransformFaultError."""
        for step, function in self._loaded:
            kept = event.copy()
            try:
                changed = self._changed(function, event, kept)
            except (Exception, SystemExit) as error:
                fault = TransformFaultError(step.rule, step.name, _cause(error, step), step.on_error)
                if step.on_error != "pass":
                    raise fault from None
                self.passed, self.fault, changed = self.passed + 1, fault, kept
            if changed is None:
                return None
            event = changed
        return event

    def _changed(self, function: Function, event: Event, kept: Event) -> Event | None:
        changed = function(event)
        if changed is None:
            return None
        if type(changed) is not Event:
            raise RefusedChangeError(f"it returned {type(changed).__name__}, neither the event nor None")
        before = self._image("before", kept.before, changed.before)
        after = self._image("after", kept.after, changed.after)
        key = self._identity(before, after, kept.key, changed.key)
        topic = self._topic(changed.topic)
        return Event(kept.op, kept.db, kept.table, key, before, after, topic, kept.source)

    def _image(self, name: str, old: Image | None, new: Any) -> Image | None:
        if (old is None) != (new is None):
            raise RefusedChangeError(f"it {'made' if old is None else 'removed'} {name}: op would not be true")
        if new is None or old is None:
            return None
        if not isinstance(new, dict):
            raise RefusedChangeError(f"it made {name} something else than a dict")
        if new.keys() != self._kinds.keys():
            lacking = ", ".join(sorted(self._kinds.keys() - new.keys())) or "none"
            raise RefusedChangeError(f"it left {name} other columns than the table's schema tells (lacking: {lacking})")
        for column, (fits, told) in self._kinds.items():
            value = new[column]
            if value is not None and value is not old[column] and not fits(value):
                raise RefusedChangeError(f"it gave the column {column} a value that is not {told}")
        return {column: new[column] for column in self._names}

    def _identity(self, before: Image | None, after: Image | None, old: Image | None, new: Any) -> Image | None:
        """The key is that of the row, by which the lake knows it."""
        if not self._key:
            if new is not None and not (isinstance(new, dict) and made_of_parts(new)):
                raise RefusedChangeError("it made the key something else than a dict or None")
            return new
        rows = [{name: image[name] for name in self._key} for image in (before, after) if image is not None]
        if any(value is None for row in rows for value in row.values()):
            raise RefusedChangeError(f"it left the key ({', '.join(self._key)}) without a value")
        if rows[0] != rows[-1]:
            raise RefusedChangeError(f"it changed the key ({', '.join(self._key)}) in one image and not in the other")
        if new not in (old, rows[-1]):
            raise RefusedChangeError(f"it set a key that is not the row's: the columns {', '.join(self._key)} make it")
        return rows[-1]

    def _topic(self, topic: Any) -> str:
        if topic == self.topic:
            return self.topic
        if not isinstance(topic, str) or not TOPIC.fullmatch(topic) or topic in (".", ".."):
            raise RefusedChangeError(
                "it set a topic that is no name of one (letters, digits, dot, _ and -, at most 249)"
            )
        if names.is_service_topic(topic):
            raise RefusedChangeError("it set a topic in which a pipeline notes what is its own")
        if names.is_event_topic(self._pipeline, topic):
            raise RefusedChangeError("it set a topic from which the lake reads other tables of the pipeline")
        return topic


def _kind(column: Column, flavor: str) -> tuple[Callable[[Any], bool], str]:
    wire = types.of(column, flavor).wire
    form = transform_values.form(column) if wire == "string" else None
    if form is not None:
        return lambda value: type(value) is str and form(value), f"of the type {column.type}"
    return KINDS.get(wire, made_of_parts), TOLD.get(wire, "of its type")


def _cause(error: BaseException, step: Step) -> str:
    """Not the error's own words, which may hold a value of the row."""
    return str(error) if isinstance(error, RefusedChangeError) else f"{type(error).__name__} at {where(error, step)}"


def where(error: BaseException, step: Step) -> str:
    """The script's last line on the way to the error; of an imported function the error's own."""
    if isinstance(error, SyntaxError) and error.lineno:
        return f"{step.name}:{error.lineno}"
    frames = [frame for frame in extract_tb(error.__traceback__) if step.text is None or frame.filename == step.name]
    return f"{PurePath(frames[-1].filename).name}:{frames[-1].lineno}" if frames else step.name


def facts(source: Mapping[str, Any]) -> str:
    """An event's position, for a person."""
    return f"{source['file']}:{source['pos']}, {source['gtid']}, row {source['row']}"
