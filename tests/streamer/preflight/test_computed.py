"""Of which generated columns each session sees something else."""

from __future__ import annotations

import pytest

from streamer.preflight.computed import depends


@pytest.mark.parametrize(
    ("expression", "unsure"),
    [
        ("cast(`Made` as date)", True),
        ("timestampdiff(YEAR,`born`,curdate())", True),
        ("dayname(`born`)", True),
        ("week(`born`)", True),
        ("json_unquote(json_extract(`doc`,_utf8mb4'$.user'))", False),
        ("concat(`a`,'now')", False),
        ("`now` + `curdate`", False),
        ("`id` * 2", False),
        ("", False),
    ],
)
def test_a_call_or_a_column_of_a_moment_makes_it_so(expression: str, unsure: bool) -> None:
    assert depends(expression, {"made"}) is unsure
