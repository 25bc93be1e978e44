"""Where a start begins, and what it refuses."""

from __future__ import annotations

import pytest

from contract.checkpoint import Checkpoint
from streamer import start
from streamer.delivery_errors import SchemasLostError
from tests.streamer.fakes import FILE, SOURCE


def checkpoint(events: int) -> Checkpoint:
    return Checkpoint(
        pipeline="sales",
        connector_id="headrace-sales",
        server_id=1,
        server_uuid=SOURCE,
        epoch=0,
        file=FILE,
        pos=4,
        gtid_set="",
        ts_ms=0,
        events=events,
        written_at=0,
    )


def test_records_without_schemas_are_refused() -> None:
    with pytest.raises(SchemasLostError, match=r"1,234 records were sent, but the topic sales\.schemas"):
        start.refuse_lost_schemas(checkpoint(1234), "sales.schemas", 0)


@pytest.mark.parametrize(("events", "known"), [(0, 0), (1, 1), (0, 2)])
def test_others_go_on(events: int, known: int) -> None:
    start.refuse_lost_schemas(checkpoint(events), "sales.schemas", known)
