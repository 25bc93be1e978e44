"""Names chosen by pattern: globs part by part, or a regular expression over the whole dotted name.

`shop.*` is a glob: each part between dots is compared with one name, since a name itself may hold a dot.
`/shop_\\d+\\.orders/` is a regular expression, compared with `db.table` (or `db.table.column`) from end to end.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Annotated

from pydantic import AfterValidator

from contract.mistake import MistakeError

WHOLE = 2  # a slash at either end


def is_regex(pattern: str) -> bool:
    return len(pattern) > WHOLE and pattern.startswith("/") and pattern.endswith("/")


def is_glob(name: str) -> bool:
    """Whether a part of a pattern may stand for several names."""
    return any(sign in name for sign in "*?[")


def is_plain(pattern: str) -> bool:
    """Whether the whole pattern stands for one name alone."""
    return not is_regex(pattern) and not is_glob(pattern)


def check(pattern: str, form: str, example: str) -> None:
    """`form`: `db.table` or the like. Raises ValueError for what chooses no such name."""
    if is_regex(pattern):
        try:
            re.compile(pattern[1:-1])
        except re.error as error:
            fix = f"mend it, or write a name with * in the place of some signs, such as {example}"
            raise MistakeError(f"{pattern!r} is no regular expression: {error}", fix) from None
    elif pattern.count(".") != form.count("."):
        what = f"{pattern!r} is not of the form {form}, such as {example}, or a /regular expression/"
        raise MistakeError(what, f"write {_whole(pattern, form)}")


def _whole(pattern: str, form: str) -> str:
    """The pattern with what it does not say in capitals: with a * there it might choose more than is meant, such as
    all columns for one. A name alone may be that of a database, or of a table."""
    given = pattern.split(".")
    missing = form.upper().split(".")[len(given) :]
    if not pattern or not missing or pattern.startswith("/"):
        return f"it as {form}"
    if form == "db.table":
        return f"{pattern}.* where {pattern} is a database, or DB.{pattern} where it is a table"
    return ".".join([*given, *missing])


def _checked(form: str, example: str) -> AfterValidator:
    def checked(pattern: str) -> str:
        check(pattern, form, example)
        return pattern

    return AfterValidator(checked)


TablePattern = Annotated[str, _checked("db.table", "shop.* or shop.orders")]
ColumnPattern = Annotated[str, _checked("db.table.column", "shop.customers.email")]


def matches(pattern: str, *names: str, ignore_case: bool = False) -> bool:
    """Whether the pattern chooses the name of these parts."""
    if is_regex(pattern):
        return _compiled(pattern, re.IGNORECASE if ignore_case else 0).fullmatch(".".join(names)) is not None
    if ignore_case:
        pattern, names = pattern.casefold(), tuple(name.casefold() for name in names)
    parts = pattern.split(".")
    return len(parts) == len(names) and all(map(fnmatch.fnmatchcase, names, parts))


def any_matches(patterns: Iterable[str], *names: str, ignore_case: bool = False) -> bool:
    return any(matches(pattern, *names, ignore_case=ignore_case) for pattern in patterns)


def may_match(pattern: str, names: dict[str, str]) -> bool:
    """Whether the `db.table` pattern may choose a table of which only some of `db` and `table` are known."""
    if is_regex(pattern):
        return True
    parts = dict(zip(("db", "table"), pattern.split("."), strict=True))
    return all(fnmatch.fnmatchcase(name, parts[field]) for field, name in names.items())


@lru_cache(maxsize=1000)
def _compiled(pattern: str, flags: int) -> re.Pattern[str]:
    return re.compile(pattern[1:-1], flags)
