"""A statement's text without what is nobody's business: passwords, and for a log every text in quotes."""

from __future__ import annotations

import re

from streamer.ddl.tokens import TOKEN

# By whether a backslash in a text is an escape, as of a statement's other parts.
TEXT = {
    True: re.compile(r"""'(?:[^'\\]|''|\\.)*'?|"(?:[^"\\]|""|\\.)*"?|\b0x[0-9a-fA-F]+\b""", re.DOTALL),
    False: re.compile(r"""'(?:[^']|'')*'?|"(?:[^"]|"")*"?|\b0x[0-9a-fA-F]+\b""", re.DOTALL),
}
# Behind such a word, up to the next comma, texts are secrets: CONNECTION of FEDERATED, IDENTIFIED BY, PASSWORD...
TELLS = re.compile(r"passw|pwd|secret|credential|identified|^connection$|^option_list$", re.IGNORECASE)
HOLDS = re.compile(r"passw|pwd\b|secret|://[^/\s]*@", re.IGNORECASE)  # what of a text makes it one by itself
HIDDEN = "'...'"


def without_texts(statement: str, escapes: bool = True) -> str:
    """Every text in quotes left out, since it may be a password or a row's value."""
    return TEXT[escapes].sub(HIDDEN, statement)


def without_secrets(statement: str, escapes: bool = True) -> str:
    """Texts that are passwords, or hold some, left out; the others stay."""
    parts: list[str] = []
    told, at = False, 0
    for match in TOKEN[escapes].finditer(statement):
        quoted, text, word, mark = match.groups()
        if mark in (",", ";"):
            told = False
        elif text is not None or (word or "")[:2].lower() == "0x":
            if told or (text and HOLDS.search(text)):
                parts += statement[at : match.start()], HIDDEN
                at = match.end()
        else:
            told = told or TELLS.search(word or quoted or "") is not None
    return "".join((*parts, statement[at:]))


def shown(statement: str, escapes: bool = True, length: int = 200) -> str:
    """For a log: without its texts, and shortened."""
    text = " ".join(without_texts(statement, escapes).split())
    return text if len(text) <= length else text[: length - 3] + "..."
