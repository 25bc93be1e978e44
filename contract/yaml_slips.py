"""What is wrong with a text that YAML cannot read: where, at which key, and what to write instead.

Of a text and PyYAML's error comes a `Slip`, in words of the file. It shows values of a few keys alone (`PLAIN`), which
hold no secret, since which key a broken line means is a guess. PyYAML tells its errors apart by their English words
alone: what is not known by these is told as it says it, with the column.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import yaml

from contract.pipeline_secrets import Keys, is_secret
from contract.yaml_places import is_listed, keys_at, value_at

BREAKS = re.compile("\r\n|[\r\n\x85\u2028\u2029]")  # YAML's, by which PyYAML counts lines
QUOTES = "\"'"
LONG = re.compile(r"'[^'<>]{3,}'")  # in PyYAML's words: more than a sign
NO_BLANK = re.compile(r"\s*(?:-\s+)?(?P<name>[A-Za-z_][\w.]*):[^\s:/]\S*\s*$")
LISTS = frozenset({"include", "exclude", "cascades", "tables", "columns", "failover", "earlier_topics"})
PLAIN = LISTS | {"schedule", "topic", "name", "start", "path"}


@dataclass(frozen=True)
class Slip:
    """`line` counts from 1 (0: none is known). `keys`: of the value, as far as its lines tell."""

    line: int
    keys: Keys
    message: str
    fix: str


@dataclass(frozen=True)
class _At:
    """The place at which PyYAML gave up; `began`: that of what it was reading then."""

    lines: list[str]
    line: int
    column: int
    began: tuple[int, int]
    problem: str
    context: str

    @property
    def text(self) -> str:
        return self.lines[self.line] if self.line < len(self.lines) else ""

    @property
    def first(self) -> str:
        """The sign that it began with."""
        return self.lines[self.began[0]][self.began[1] :][:1]

    def slip(self, message: str, fix: str, line: int | None = None, column: int | None = None) -> Slip:
        line, column = self.line if line is None else line, self.column if column is None else column
        return Slip(line + 1, keys_at(self.lines, line, column), message, fix)

    def shown(self, line: int, column: int) -> str | None:
        """The value that begins there; None where it is not known to be no secret: a key may be misspelled, and behind
        a : may stand another one."""
        keys = keys_at(self.lines, line, column)
        value = value_at(self.lines[line], column) if line < len(self.lines) else ""
        plain = keys and keys[-1] in PLAIN and not is_secret(keys)
        return value if plain and ":" not in value else None

    def quoted(self, line: int, column: int, sign: str = '"') -> str:
        """What to write in the place of the value that begins there."""
        value = self.shown(line, column)
        if value is None or sign in value:
            return "write the value in quotes"
        keys = keys_at(self.lines, line, column)
        listed = bool(keys) and keys[-1] in LISTS and not is_listed(self.lines[line], column)
        text = f"{sign}{value}{sign}"
        return f"write it in quotes: {f'[{text}]' if listed else text}"


def slip(text: str, error: yaml.YAMLError) -> Slip:
    """Of the error that composing the text gave."""
    if isinstance(error, yaml.reader.ReaderError):
        line = text.count("\n", 0, int(error.position)) + 1
        return Slip(line, (), f"holds a sign that YAML does not take: {error.reason}", "remove the sign")
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        return Slip(0, (), "is no YAML", "start from pipelines/flights.yaml")
    mark, began = error.problem_mark, error.context_mark or error.problem_mark
    at = _At(
        BREAKS.split(text), mark.line, mark.column, (began.line, began.column), error.problem or "", error.context or ""
    )
    found = (told for kind in KINDS if (told := kind(at)))
    return _open_quote(text, at) or next(found, None) or _other(at)


def _open_quote(text: str, at: _At) -> Slip | None:
    """A quote that is not closed goes on to the next one, lines below, behind which nothing fits any more."""
    last: yaml.Token | None = None
    try:
        for last in yaml.scan(text, Loader=yaml.SafeLoader):
            if last.end_mark.line >= at.line and _spans(last):
                break
    except yaml.YAMLError:
        pass
    if "quoted scalar" in at.context and "stream" in at.problem:
        place = at.began
    elif last is not None and _spans(last) and last.end_mark.line == at.line:
        place = (last.start_mark.line, last.start_mark.column)
    else:
        return None
    sign = at.lines[place[0]][place[1] :][:1]
    return at.slip(f"the quote {sign} that begins here is not closed", f"close it with {sign}", *place)


def _spans(token: yaml.Token) -> bool:
    quoted = isinstance(token, yaml.ScalarToken) and token.style in QUOTES if getattr(token, "style", None) else False
    return bool(quoted) and token.start_mark.line < token.end_mark.line


def _alias(at: _At) -> Slip | None:
    if "alias" not in at.context and "undefined alias" not in at.problem:
        return None
    return at.slip("* begins an alias in YAML", at.quoted(*at.began), *at.began)


def _first_sign(at: _At) -> Slip | None:
    """A sign that begins nothing, or something that is rarely meant."""
    if "cannot start any token" in at.problem:
        sign = at.text[at.column : at.column + 1]
        if sign == "\t":
            return at.slip("a tab stands where YAML takes blanks alone", "write blanks in its place")
        return at.slip(f"in YAML no value begins with {sign}", at.quoted(at.line, at.column))
    if "anchor" in at.context or "tag" in at.context:
        sign = at.first
        return at.slip(f"{sign} has a meaning of its own in YAML", at.quoted(*at.began), *at.began)
    return None


def _escape(at: _At) -> Slip | None:
    if "unknown escape" not in at.problem:
        return None
    line, column = at.began
    sign, value = at.text[at.column : at.column + 1], at.shown(line, column)
    inner = value[1:-1] if value and value.endswith('"') and len(value) > 1 else ""
    one = f": '{inner}'" if inner and "'" not in inner and "\\\\" not in inner else ", in which \\ is a sign as others"
    what = f"\\{sign} is no escape within double quotes" if value else "holds an escape that there is not"
    return at.slip(what, f"write it in single quotes{one}", line, column)


def _document(at: _At) -> Slip | None:
    if "another document" not in at.problem and "<document start>" not in at.problem:
        return None
    fix = "remove what divides them (--- or ...), or make a file of each"
    return Slip(at.line + 1, (), "a second document begins here, and a file is one", fix)


def _no_blank(at: _At) -> Slip | None:
    """`key:value` is one word; only what stands behind it tells that none was meant."""
    if "could not find expected ':'" in at.problem:
        line = at.began[0]
    elif "mapping values are not allowed" in at.problem:
        line = next((n for n in range(at.line - 1, -1, -1) if at.lines[n].strip()), at.line)
    else:
        return None
    if NO_BLANK.match(at.lines[line]):  # of which no word is shown: it may be the rest of a secret
        return at.slip("lacks the blank behind the :", "write key: value, with a blank before the value", line, 0)
    if "could not find" in at.problem:
        return at.slip("is no line of the form key: value", "write key: value, or remove the line", line, 0)
    return None


def _indented(at: _At) -> Slip | None:
    fix = "begin it in the same column as the keys of its section"
    if "mapping values are not allowed" in at.problem:
        if ": " in at.text[: at.column].lstrip(" -"):
            column = at.text.index(": ") + 2
            column += len(at.text[column:]) - len(at.text[column:].lstrip())
            return at.slip("the value holds a : with a blank behind it", at.quoted(at.line, column), column=column)
        return at.slip("is indented deeper than the line above, which has a value already", fix, column=0)
    if "<block mapping start>" in at.problem or "found '?'" in at.problem or "<block sequence" in at.problem:
        return at.slip("is indented otherwise than the lines above", fix, column=0)
    return None


def _unclosed(at: _At) -> Slip | None:
    wanted = re.search(r"expected ',' or '([\]}])'", at.problem)
    if wanted is None:
        return None
    if at.text[at.column - 1 : at.column + 1] == "${":
        return at.slip("${...} stands without quotes within [...] or {...}", "write the whole value in quotes")
    sign = at.first
    what = f"the {sign} that begins here is not closed, or a comma is missing in it"
    return at.slip(what, f"close it with {wanted[1]}, and write a comma between its items", *at.began)


def _goes_on(at: _At) -> Slip | None:
    """A list, a mapping or a quoted text is over before its value is."""
    if "expected <block end>" not in at.problem or not (found := re.match(r"[\s-]*[\w.]+:\s+(?=[\[{\"'])", at.text)):
        return None
    column = found.end()
    sign = at.text[column]
    if sign in QUOTES:
        what = f"goes on behind the {sign} that ends its text"
        return at.slip(what, f"quote the value as a whole, and write a {sign} within it otherwise", column=column)
    kind = "mapping" if sign == "{" else "list"
    return at.slip(f"{sign} begins a {kind} in YAML, and the value goes on behind it", at.quoted(at.line, column))


def _other(at: _At) -> Slip:
    fix = "mend the YAML on this line or before; a text with signs of YAML's own is written in quotes"
    # PyYAML's words may hold a part of the value.
    words = at.problem or at.context
    why = f": {words}" if at.shown(at.line, at.column) is not None or not LONG.search(words) else ""
    return at.slip(f"YAML cannot be read here (column {at.column + 1}{why})", fix)


KINDS: tuple[Callable[[_At], Slip | None], ...] = (
    _alias, _first_sign, _escape, _document, _no_blank, _indented, _unclosed, _goes_on,
)  # fmt: skip
