from __future__ import annotations

import pytest

from contract.sequence import Sequence, file_number


def test_order_is_by_numbers_left_to_right() -> None:
    assert Sequence(0, 9, 500) < Sequence(0, 10, 4)
    assert Sequence(0, 10, 4, 2, 0) < Sequence(0, 10, 4, 10, 0)
    assert Sequence(0, 99, 4) < Sequence(1, 1, 4)


def test_file_numbers() -> None:
    assert file_number("binlog.000012") == 12
    assert file_number("a.b.1000000") == 1000000
    with pytest.raises(ValueError, match="does not end in a number"):
        file_number("binlog")
