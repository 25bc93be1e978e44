"""By which names changes have a column's values, of renames and of other forms."""

from __future__ import annotations

import pytest

from contract.breaks import Break
from contract.past_names import Sent, sent
from contract.renames import Rename


def renamed(version: int, *columns: tuple[str, str]) -> Rename:
    return Rename(db="shop", table="t", version=version, seq=(0, 1, version), columns=columns)


def other_form(version: int, column: str) -> Break:
    return Break(db="shop", table="t", seq=(0, 1, version), ends=False, version=version, columns=(column,))


@pytest.mark.parametrize(
    ("renames", "broken", "column", "names"),
    [
        ([], [], "a", []),
        ([renamed(2, ("a", "b")), renamed(4, ("b", "c"))], [], "C", [(2, "a"), (4, "b")]),
        ([renamed(2, ("a", "b")), renamed(3, ("b", "a"))], [], "a", [(2, "a"), (3, "b")]),
        ([renamed(2, ("A", "b"))], [], "a", [(2, None)]),
        ([renamed(2, ("a", "b")), renamed(4, ("a", "c"))], [], "c", [(2, None), (4, "a")]),
        ([], [other_form(3, "A"), other_form(2, "a")], "a", [(3, None)]),
        ([renamed(4, ("a", "b"))], [other_form(2, "a")], "b", [(2, None), (4, "a")]),
        ([renamed(4, ("a", "b"))], [other_form(5, "b")], "b", [(5, None)]),
        ([renamed(4, ("a", "b"))], [other_form(6, "a")], "b", [(4, "a")]),
        ([renamed(4, ("a", "b"))], [other_form(6, "a")], "a", [(6, None)]),
    ],
    ids=["always", "twice", "and_back", "anothers", "anothers_then_renamed", "form", "form_by_its_old_name",
         "form_by_its_new_name", "anothers_form", "anothers_and_form"],
)  # fmt: skip
def test_the_names_of_a_column(renames: list[Rename], broken: list[Break], column: str, names: Sent) -> None:
    assert sent(renames, broken, column) == names
