"""Parts of a CHECK constraint, each with Spark SQL that means surely the same, and what kind of value that gives.

Spark and the servers agree on exact numbers, on moments, and on NULL as the third truth value. They do not where one
converts what the other refuses (a date to a number, a text to a date), so each conversion is written out here or the
constraint is left untranslated.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

ZERO_DATES = "it asks for NULL, which the lake has in place of a zero or partial date"
DIGITS = 38  # of Spark's longest exact number; with more it would round


class UntranslatableError(ValueError):
    """A constraint that may mean another thing in Spark, with the reason."""


@dataclass(frozen=True)
class Operand:
    """`kind`: number, year, date, datetime, moment (a literal), truth or text. Of a number `whole` and `scale`, its
    digits before and behind the point; of a literal moment `timed`, whether it has a time. `literal`: its value, where
    it is a whole number's. `lossy`: it may be NULL in the lake where it is none in the source, for a zero date, and so
    may be what is compared with it; no constraint is broken by that. `raised`, `lowered`: it may be true in the lake
    where it is false in the source, by such a NULL, or the other way."""

    kind: str
    sql: str
    whole: int = 0
    scale: int = 0
    literal: int | None = None
    timed: bool = False
    lossy: bool = False
    raised: bool = False
    lowered: bool = False


def truth(sql: str, *of: Operand) -> Operand:
    return Operand("truth", f"({sql})", lossy=any(one.lossy for one in of))


def joined(word: str, left: Operand, right: Operand) -> Operand:
    parts = [as_truth(left), as_truth(right)]
    found = truth(f" {word} ".join(one.sql for one in parts), *parts)
    return replace(found, raised=any(one.raised for one in parts), lowered=any(one.lowered for one in parts))


def opposite(one: Operand) -> Operand:
    of = as_truth(one)
    return replace(truth(f"not {of.sql}", of), raised=of.lowered, lowered=of.raised)


def nothing(one: Operand, negative: bool) -> Operand:
    """IS NULL, or IS NOT NULL."""
    _certain(replace(one, lossy=False))
    found = Operand("truth", f"({one.sql} is {'not ' * negative}null)")
    return replace(found, raised=one.lossy and not negative, lowered=one.lossy and negative)


def exactly(one: Operand, told: str) -> Operand:
    """`told`: IS TRUE and its like."""
    _certain(one)
    return truth(f"{as_truth(one).sql} {told}")


def as_truth(one: Operand) -> Operand:
    """A number is true where it is not zero."""
    if one.kind == "truth":
        return one
    return truth(f"{as_number(one).sql} <> 0", one)


def as_number(one: Operand) -> Operand:
    if one.kind in ("number", "year"):
        return replace(one, kind="number")
    if one.kind != "truth":
        raise UntranslatableError(f"{one.sql} is taken for a number")
    _certain(replace(one, lossy=False))
    return Operand("number", f"cast({one.sql} as bigint)", whole=1, lossy=one.lossy)


def summed(sign: str, left: Operand, right: Operand) -> Operand:
    """As a DECIMAL wide enough, since sums of BIGINT may be longer than one."""
    parts = [as_number(left), as_number(right)]
    before, behind = _digits(parts)
    if before + behind >= DIGITS:
        raise UntranslatableError(f"a sum may have more than {DIGITS} digits")
    kind = f"decimal({before + behind},{behind})"
    told = f" {sign} ".join(f"cast({one.sql} as {kind})" for one in parts)
    return Operand("number", f"({told})", before + 1, behind, lossy=left.lossy or right.lossy)


def negated(one: Operand) -> Operand:
    return summed("-", Operand("number", "0", whole=1), one)


def compared(sign: str, left: Operand, right: Operand) -> Operand:
    if sign == "<=>":
        _certain(left, right)
    first, second = alike([left, right])
    return truth(f"{first} {'<>' if sign == '!=' else sign} {second}", left, right)


def among(left: Operand, negative: bool, others: list[Operand]) -> Operand:
    """IN. Where not all of a list are constants the servers compare moments as texts."""
    _beside(left, others, {"moment"})
    first, *rest = alike([left, *others])
    return truth(f"{first} {'not ' * negative}in ({', '.join(rest)})", left, *others)


def between(left: Operand, negative: bool, least: Operand, most: Operand) -> Operand:
    _beside(left, [least, most], {left.kind, "moment"})
    first, *ends = alike([left, least, most])
    return truth(f"{first} {'not ' * negative}between {' and '.join(ends)}", left, least, most)


def whole(one: Operand) -> str:
    """The SQL of a whole constraint."""
    found = as_truth(one)
    if found.lowered:
        raise UntranslatableError(ZERO_DATES)
    return found.sql


def _beside(left: Operand, others: list[Operand], kinds: set[str]) -> None:
    if left.kind == "moment" or (left.kind in ("date", "datetime") and not {one.kind for one in others} <= kinds):
        raise UntranslatableError("IN and BETWEEN compare moments of several kinds by rules of the server's own")


def _certain(*of: Operand) -> None:
    """Raises UntranslatableError where it matters whether one is NULL, which the lake may have in place of a value."""
    if any(one.lossy or one.raised or one.lowered for one in of):
        raise UntranslatableError(ZERO_DATES)


def alike(of: list[Operand]) -> list[str]:
    """What may be compared with each other: numbers, moments, or truths."""
    kinds = {one.kind for one in of}
    if kinds == {"truth"}:
        _certain(*[replace(one, lossy=False) for one in of])
        return [one.sql for one in of]
    if kinds & {"date", "datetime", "moment"}:
        return _moments(of, kinds)
    if "text" in kinds:
        raise UntranslatableError("texts are compared by a collation")
    if "year" in kinds:
        _years(of)
    numbers = [as_number(one) for one in of]
    if sum(_digits(numbers)) > DIGITS:
        raise UntranslatableError(f"numbers of more than {DIGITS} digits are compared")
    return [one.sql for one in numbers]


def _moments(of: list[Operand], kinds: set[str]) -> list[str]:
    if not kinds <= {"date", "datetime", "moment"}:
        raise UntranslatableError("a date is compared with what is none, which the server converts by rules of its own")
    if not kinds & {"date", "datetime"}:
        raise UntranslatableError("texts are compared by a collation")
    if "date" in kinds and any(one.timed for one in of):
        raise UntranslatableError("a DATE is compared with a text that has a time")
    return [one.sql for one in of]


def _years(of: list[Operand]) -> None:
    """70 is 1970 there where it is compared with a YEAR."""
    if any(one.kind != "year" and not (one.literal and 1901 <= one.literal <= 2155) for one in of):
        raise UntranslatableError("a YEAR is compared with what is no year of four digits")


def _digits(of: list[Operand]) -> tuple[int, int]:
    """Before and behind the point, as many as each has room in."""
    return max(one.whole for one in of), max(one.scale for one in of)
