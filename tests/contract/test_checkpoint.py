from __future__ import annotations

import pytest

from contract.checkpoint import FORMAT, Checkpoint, CheckpointFormatError

ONE = Checkpoint(
    pipeline="shop", connector_id="a", server_id=1, server_uuid="u", epoch=0, file="binlog.000001", pos=4,
    gtid_set="", ts_ms=1, events=0, written_at=2,
)  # fmt: skip


def test_it_reads_what_it_writes() -> None:
    assert Checkpoint.read(ONE.model_dump_json()) == ONE


def test_a_newer_format_is_refused_with_the_next_step() -> None:
    newer = ONE.model_copy(update={"format": FORMAT + 1}).model_dump_json()
    with pytest.raises(CheckpointFormatError, match="upgrade Headrace"):
        Checkpoint.read(newer)


def test_what_is_no_checkpoint_is_an_error() -> None:
    with pytest.raises(ValueError, match="pipeline"):
        Checkpoint.read(b"{}")
