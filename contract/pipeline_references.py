"""What a pipeline file refers to, filled in: `${NAME}`, `${NAME:-default}` and, for secrets, `${file:path}`.

A text that is almost such a reference, or one as shells alone fill it in, is a mistake: taken as it stands, it would
name a folder `${LAKE` or `~`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from contract import regular_file
from contract.pipeline_secrets import REFERENCE, SIZE, Keys, is_secret, may_refer

ALMOST = re.compile(r"\$\{[^}]*\}?")
FORMS = "${NAME} or ${NAME:-default}"
SHELL = re.compile(r"(?P<home>~)(?=/|$)|\$(?P<name>[A-Za-z_]\w*)(?=/|$)")
PATH = re.compile(r"^(path|spool|target|script|\w+_file)$")
OWN = frozenset({"options", "settings", "properties", "helpers"})  # what is below these somebody else reads


class Tell(Protocol):
    def __call__(self, keys: Keys, message: str, fix: str, outside: bool = False) -> None: ...


class References:
    """Of one text. `known`: as for `read_text`. `written` and `filled`: what stands where something is referred to, and
    each value with the reference for it. `without`: the keys that have no value of their own, which is told already."""

    def __init__(self, known: Mapping[Keys, str] | None, tell: Tell) -> None:
        self.written: dict[Keys, str] = {}
        self.filled: list[tuple[str, str]] = []
        self.without: set[Keys] = set()
        self._known = known
        self._tell = tell

    def fill(self, text: str, keys: Keys) -> str:
        if self._almost(text, keys):
            return text
        if not REFERENCE.search(text):
            self._as_shells(text, keys)
            return text
        self.written[keys] = text
        if self._known is not None and not may_refer(keys) and self._known.get(keys) != text:
            fix = "write the value, or the file in the folder itself, or start headrace serve with --allow-code"
            self._refuse(keys, "is no secret, and ${...} is taken for those alone from the API", fix)
            return text
        before = len(self.filled)
        value = REFERENCE.sub(lambda match: self._value(match, keys), text)
        if len(self.filled) > before:  # else it is made of defaults, which stand in the file
            self.filled.append((value, text))
        self._as_shells(value, keys)
        return value

    def _refuse(self, keys: Keys, message: str, fix: str, outside: bool = False) -> None:
        self.without.add(keys)
        self._tell(keys, message, fix, outside)

    def _almost(self, text: str, keys: Keys) -> bool:
        """Of a secret the text may be the password itself, and is not shown."""
        if {*OWN, "client"}.intersection(keys) and not is_secret(keys):
            return False
        for found in ALMOST.findall(text):
            if REFERENCE.fullmatch(found) and "${" not in found[2:]:
                continue
            shown = "${" if may_refer(keys) else found
            told = f"{shown} is none of the forms that are filled in" if found[-1] == "}" else f"{shown} is not closed"
            self._refuse(keys, told, f"write {FORMS}")
            return True
        return False

    def _as_shells(self, value: str, keys: Keys) -> None:
        """`value`: as it is filled in, which is not shown."""
        path = PATH.search(str(keys[-1])) if keys else None
        found = SHELL.match(value) if path and not OWN.intersection(keys) and not is_secret(keys[:-1]) else None
        if found is None or keys in self.without:
            return
        sign = found["home"] or "$ without braces"
        if at := self.written.get(keys):
            fix = f"write the whole path into what {at} gives"
        else:
            fix = f"write ${{{found['name'] or 'HOME'}}}{value[found.end() :]}, or the whole path"
        self._refuse(keys, f"begins with {sign}, which a shell fills in, and nobody here", fix)

    def _value(self, match: re.Match[str], keys: Keys) -> str:
        secret = is_secret(keys)
        if match["file"]:
            return self._read(match["file"], keys) if secret else self._no_secret(keys)
        name, default = match["name"], match["default"]
        if (value := os.environ.get(name, default)) is None:
            fix = f"export {name}=..."
            if not secret:  # for which a default would be a password in the file
                fix += f", or write ${{{name}:-default}}"
            self._refuse(keys, f"the environment variable {name} is not set", fix, outside=True)
            return "0"
        if name in os.environ:
            self.filled.append((value, match[0]))
        return value

    def _read(self, name: str, keys: Keys) -> str:
        """A secret's file, less the line's end that editors leave behind it."""
        try:
            value = regular_file.read(Path(name), SIZE).strip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "not UTF-8 text"
            told = f"the file {name} cannot be read: {reason}"
            self._refuse(keys, told, "check its path and its rights", outside=True)
            return "0"
        self.filled.append((value, f"${{file:{name}}}"))
        return value

    def _no_secret(self, keys: Keys) -> str:
        self._refuse(keys, "is no secret, and files are read for those alone", "write the value, or ${NAME}")
        return "0"
