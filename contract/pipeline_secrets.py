"""Which of a pipeline file's keys hold secrets, how these are referred to, and messages without them."""

from __future__ import annotations

import re
from collections.abc import Iterable

Keys = tuple[str | int, ...]

REFERENCE = re.compile(r"\$\{(?:file:(?P<file>[^}]+)|(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?)\}")
SECRET = re.compile(
    r"(password|passwd|passphrase|secret|token|credentials?|connection_?str(ing)?|(^|[._-])sas|oauthbearer\.config"
    r"|(account|access|secret|private|encryption|api)_?key|(^|[._])key[._]pem|private_key_data)$",
    re.IGNORECASE,
)
PRIVATE = re.compile(r"^(key|webhook)$")  # may be as secret as the others, or stand in the file
LOGIN = re.compile(r"://(?!\[)[^/\s:]*:(?!\d+([/?#]|$))\S*@")  # user:password@ of a URL; a port may stand behind a host
SIZE = 65_536  # bytes of a secret's file
PIECE = 4  # characters of a part of a value that a message does not show


def is_secret(keys: Keys) -> bool:
    """Also what stands under such a key, in a mapping or a list."""
    return any(SECRET.search(str(key)) for key in keys)


def may_refer(keys: Keys) -> bool:
    """Whether `${...}` is taken there from whoever may not write the file itself."""
    return is_secret(keys) or bool(keys and PRIVATE.search(str(keys[-1])))


def hidden(filled: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """What a message may not show, the longest first: values and their parts, each with the reference for it."""
    found: dict[str, str] = {}
    for value, reference in set(filled):
        parts = [part for part in re.split(r"[^\w-]+", value) if len(part) >= PIECE]
        for one in (value, repr(value)[1:-1], *parts):
            found.setdefault(one, reference)
    return sorted(((one, reference) for one, reference in found.items() if one), key=lambda pair: -len(pair[0]))


def without(text: str, hidden: Iterable[tuple[str, str]]) -> str:
    """The text with references in place of what is `hidden`."""
    for one, reference in hidden:
        if one in text:
            text = reference.join(re.split(rf"(?<!\w){re.escape(one)}(?!\w)", text))
    return text
