"""CHECK constraints of MySQL and MariaDB as conditions of Spark SQL. Pure: text in, text out, or why not.

The clause is read by the servers' grammar, whose precedence is not Spark's (`a = b IN (0, 1)` is `a = (b IN (0, 1))`
there), and written with parentheses around each part. What the grammar below does not have is not translated, nor what
may mean another thing in Spark (operands.py): a text compared as a text, for one, since the server compares by a
collation, to which `A` may be `a`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from contract.schema import Column, TableSchema
from quality import operands
from quality.operands import Operand, UntranslatableError
from quality.values import column_value, moment, number

LENGTHS = ("char_length", "character_length")
COMPARISONS = ("<=>", "<=", ">=", "<>", "!=", "=", "<", ">")
TOKEN = re.compile(
    r"\s*(?:(?P<column>`(?:[^`]|``)+`)|(?P<number>\d+(?:\.\d+)?)(?![\w.])|(?P<sign><=>|<=|>=|<>|!=|[=<>(),+!-])"
    r"|(?P<text>(?:_\w+)?\\?'(?P<inside>[^'\\]*)\\?')|(?P<word>[A-Za-z_]\w*))"
)


def translated(clause: str, schema: TableSchema) -> str:
    """Spark SQL that is false for the rows that break the constraint. Raises UntranslatableError."""
    return _Clause(clause, schema).condition()


def _tokens(clause: str) -> list[re.Match[str]]:
    at, found = 0, []
    while at < len(clause.rstrip()):
        token = TOKEN.match(clause, at)
        if token is None:
            raise UntranslatableError(f"{clause[at:].strip().split()[0]!r} is not translated")
        found.append(token)
        at = token.end()
    return found


class _Clause:
    """One reading of a clause, from its first token to its last: a method for each level of the grammar, the loosest
    first."""

    def __init__(self, clause: str, schema: TableSchema) -> None:
        self.tokens = _tokens(clause)
        self.columns: Mapping[str, Column] = {column.name.lower(): column for column in schema.columns}

    def condition(self) -> str:
        found = self._either()
        if self.tokens:
            raise UntranslatableError(self._here())
        return operands.whole(found)

    def _either(self) -> Operand:
        return self._joined("or", lambda: self._joined("and", self._not))

    def _joined(self, word: str, part: Callable[[], Operand]) -> Operand:
        left = part()
        while self._has(word):
            left = operands.joined(word, left, part())
        return left

    def _not(self) -> Operand:
        if self._has("not"):
            return operands.opposite(self._not())
        return self._comparison()

    def _comparison(self) -> Operand:
        left = self._predicate()
        while True:
            if self._has("is"):
                left = self._is(left)
            elif sign := self._one_of(COMPARISONS):
                left = operands.compared(sign, left, self._predicate())
            else:
                return left

    def _is(self, left: Operand) -> Operand:
        negative = self._has("not")
        word = self._one_of(("null", "true", "false"))
        if word is None:
            raise UntranslatableError("IS is translated with NULL, TRUE and FALSE alone")
        if word == "null":
            return operands.nothing(left, negative)
        return operands.exactly(left, f"is {'not ' * negative}{word}")

    def _predicate(self) -> Operand:
        left = self._sum()
        negative = self._has("not")
        if self._has("in"):
            return operands.among(left, negative, self._list())
        if self._has("between"):
            least = self._sum()
            self._need("and")
            return operands.between(left, negative, least, self._predicate())
        if negative:
            raise UntranslatableError("NOT is translated before a condition, IN and BETWEEN alone")
        return left

    def _list(self) -> list[Operand]:
        self._need("(")
        found = [self._either()]
        while self._has(","):
            found.append(self._either())
        self._need(")")
        return found

    def _sum(self) -> Operand:
        left = self._value()
        while sign := self._one_of(("+", "-")):
            left = operands.summed(sign, left, self._value())
        return left

    def _value(self) -> Operand:
        if self._has("-"):
            return operands.negated(self._value())
        if self._has("!"):  # as MariaDB writes NOT before <=>
            return operands.opposite(self._value())
        if self._has("("):
            found = self._either()
            self._need(")")
            return found
        if not self.tokens:
            raise UntranslatableError(self._here())
        return self._single(self.tokens.pop(0))

    def _single(self, token: re.Match[str]) -> Operand:
        word = (token["word"] or "").lower()
        if token["column"]:
            return self._column(token["column"])
        if token["number"]:
            return number(token["number"])
        if token["text"]:
            return moment(token["inside"])
        if word in ("true", "false"):
            return operands.truth(word)
        if word in LENGTHS:
            return self._length()
        raise UntranslatableError(f"{word or token['sign']} is not translated")

    def _length(self) -> Operand:
        """In characters, which both count alike."""
        self._need("(")
        of = self._value()
        self._need(")")
        if of.kind != "text":
            raise UntranslatableError(f"the length of {of.sql}, which is no text, is not translated")
        return Operand("number", f"char_length({of.sql})", whole=10)

    def _column(self, name: str) -> Operand:
        column = self.columns.get(name[1:-1].replace("``", "`").lower())
        if column is None or column.mask:
            raise UntranslatableError(f"the lake does not have the values of {name}")
        return column_value(column, name)

    def _has(self, wanted: str) -> bool:
        """Whether it is the next token, which is read then."""
        return self._one_of((wanted,)) is not None

    def _one_of(self, wanted: tuple[str, ...]) -> str | None:
        told = (self.tokens[0]["sign"] or self.tokens[0]["word"] or "").lower() if self.tokens else ""
        if told not in wanted:
            return None
        self.tokens.pop(0)
        return told

    def _need(self, wanted: str) -> None:
        if not self._has(wanted):
            raise UntranslatableError(self._here())

    def _here(self) -> str:
        """What of the clause is none of the grammar's."""
        return f"{self.tokens[0][0].strip().lower()} is not translated" if self.tokens else "it ends in the middle"
