"""The topic `<pipeline>.transactions`, in Debezium's form, and the place of each record in its transaction.

A transaction begins with its first record and ends with its commit, so that one of which nothing is sent is not told.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from contract import names
from contract.pipeline import Pipeline
from streamer.outgoing.record import Outgoing
from streamer.protocol.model import Commit, RowsBatch

NULL = b'"transaction":null}'


class Transactions:
    """Of the transaction that is being read."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._topic = names.transactions_topic(pipeline)
        self._id = ""
        self._counts: Counter[str] = Counter()

    def begin(self, batch: RowsBatch) -> Outgoing | None:
        """Of a batch with records; None where the transaction has begun before."""
        if self._id:
            return None
        self._id = batch.gtid
        self._counts.clear()
        return self._told("BEGIN", batch.ts_ms, None, None)

    def number(self, name: str, record: Outgoing) -> None:
        """Gives the record of the table `name` its place."""
        assert record.value is not None
        self._counts[name] += 1
        place = b'"transaction":{"id":%b,"total_order":%d,"data_collection_order":%d}}' % (
            json.dumps(self._id).encode(), self._counts.total(), self._counts[name],
        )  # fmt: skip
        assert record.value.endswith(NULL)
        record.value = record.value[: -len(NULL)] + place

    def end(self, commit: Commit) -> Outgoing | None:
        """None of a transaction of which nothing was sent, or of another one that comes before it is read again."""
        if self._id != commit.gtid:
            return None
        tables = [{"data_collection": name, "event_count": count} for name, count in sorted(self._counts.items())]
        told = self._told("END", commit.ts_ms, self._counts.total(), tables)
        self._id = ""
        return told

    def forget(self) -> None:
        """What comes is a transaction's first; one that broke off is sent again as a whole."""
        self._id = ""

    def _told(self, status: str, ts_ms: int, count: int | None, tables: list[dict[str, Any]] | None) -> Outgoing:
        value = {
            "status": status, "id": self._id, "ts_ms": ts_ms, "event_count": count, "data_collections": tables,
        }  # fmt: skip
        key = json.dumps({"id": self._id}, separators=(",", ":")).encode()
        return Outgoing(self._topic, key, json.dumps(value, separators=(",", ":")).encode(), event=False)
