"""The words, names and marks of a statement; comments left out. It never raises, whatever the text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

# Of a versioned comment, /*!80000 ... */ or /*M!100100 ... */, the inside is the statement. What is not closed goes to
# the end: so that the time is that of the length. A name without quotes may have any character beyond ASCII, as a
# vowel's sign that Python takes for no part of a word, or a blank that is none to the server.
_TOKEN = r"""[ \t\n\r\f\v]+ | /\*M?!\d* | \*/ | /\*.*?(?:\*/|\Z) | --(?=[\x00-\x20\x7f]|$)[^\n]* | \#[^\n]*
    | `(?P<quoted>(?:[^`]|``)*)(?:`|\Z)
    | (?P<string>%s)
    | (?P<word>[0-9A-Za-z_$@\u0080-\U0010ffff]+) | (?P<mark>.)"""
_TEXT = r"""'(?:[^'\\]|''|\\.)*(?:'|\\?\Z) | "(?:[^"\\]|""|\\.)*(?:"|\\?\Z)"""
_PLAIN_TEXT = r"""'(?:[^']|'')*(?:'|\Z) | "(?:[^"]|"")*(?:"|\Z)"""
# By whether a backslash in a text is an escape: with the sql_mode NO_BACKSLASH_ESCAPES it is a character as any other.
TOKEN = {
    escapes: re.compile(_TOKEN % text, re.DOTALL | re.VERBOSE)
    for escapes, text in ((True, _TEXT), (False, _PLAIN_TEXT))
}


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


class Token(NamedTuple):
    """`word`: in capitals, or a mark; empty for a quoted name and a text. `name`: as an identifier."""

    word: str
    name: str


END = Token("", "")


class Tokens:
    """What is read from the first token to the last; behind the end come empty ones. `db`: the session's database,
    which every name without one is of, whatever database a statement's other names are of."""

    def __init__(self, tokens: Iterable[Token], db: str) -> None:
        self._rest = iter(tokens)
        self._next = next(self._rest, END)
        self.db = db

    def take(self) -> Token:
        token, self._next = self._next, next(self._rest, END)
        return token

    def first(self) -> str:
        """The first word; behind MariaDB's `SET STATEMENT ... FOR`, that of the statement which it is set for."""
        word = self.take().word
        while word == "SET" and self.skip("STATEMENT"):
            depth = 0
            while (token := self.take()) is not END and (token.word != "FOR" or depth > 0):
                depth += (token.word == "(") - (token.word == ")")
            word = self.take().word
        return word

    def skip(self, *words: str) -> bool:
        """Passes these words by; whether there was one."""
        found = False
        while self._next.word in words:
            found = True
            self.take()
        return found

    def waits(self) -> None:
        """Passes MariaDB's `WAIT seconds` or `NOWAIT` by."""
        if self.skip("WAIT"):
            self.take()
        self.skip("NOWAIT")

    def table(self) -> tuple[str, str]:
        """A name, with or without its database."""
        name = self.take().name
        return (name, self.take().name) if self.skip(".") else (self.db, name)

    def rest(self) -> Iterator[Token]:
        """All that is left."""
        while (token := self.take()) is not END:
            yield token

    def parts(self) -> Iterator[list[Token]]:
        """What stands between commas outside parentheses."""
        part: list[Token] = []
        depth = 0
        while (token := self.take()) is not END:
            depth += (token.word == "(") - (token.word == ")")
            if token.word == "," and depth == 0:
                yield part
                part = []
            else:
                part.append(token)
        yield part


def scan(statement: str, escapes: bool = True) -> Iterator[Token]:
    """`escapes`: whether a backslash is one, by the session's sql_mode."""
    for match in TOKEN[escapes].finditer(statement):
        quoted, string, word, mark = match.groups()
        if quoted is not None:
            yield Token("", quoted.replace("``", "`"))
        elif string is not None:  # a name, where the server's sql_mode has ANSI_QUOTES
            yield Token("", string[1:-1].replace('""', '"'))
        elif word or mark:
            # No word of the language is beyond ASCII, and there are letters whose capitals are.
            yield Token(word.upper() if word.isascii() else word, word) if word else Token(mark, "")
