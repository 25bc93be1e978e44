"""What was committed on a server without GTIDs, read by file and position. There one transaction may change both kinds
of tables, and make temporary ones in its middle."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from contract.gtid import GtidSet
from contract.gtid_places import UpTo
from stack.database import Database
from streamer.by_place import ByPlaceDecoder
from streamer.connection import BinlogConnection
from streamer.protocol.held import PreparedXa
from streamer.protocol.model import Commit, Item
from streamer.source import facts
from tests.integration.conftest import Another
from tests.integration.decoding import source
from tests.integration.test_decoder_transactions import CASES, ByGtid, followed, make_tables, program


class ByPlace(ByGtid):
    @staticmethod
    def end(server: Database) -> GtidSet:
        return facts(source(server)).by_place().executed

    @staticmethod
    def items(server: Database, begin: GtidSet, end: GtidSet) -> Iterator[Item]:
        assert isinstance(begin, UpTo)
        connection = BinlogConnection(source(server), begin)
        decoder = ByPlaceDecoder(lambda db, table: True, begin.end, prepared=PreparedXa())
        for chunk in connection.chunks():
            for item in decoder.feed(chunk):
                yield item
                if isinstance(item, Commit) and UpTo.place(item.file, item.pos).issuperset(end):
                    connection.close()

    @staticmethod
    def behind(seen: GtidSet, commit: Commit) -> GtidSet:
        return UpTo.place(commit.file, commit.pos)


@pytest.mark.soak_on("mysql80")
@pytest.mark.lacks("mariadb", "its transactions always have GTIDs")
def test_rows_without_gtids_are_what_was_committed(another: Another) -> None:
    own = another(["gtid_mode=OFF", "enforce_gtid_consistency=OFF"])
    make_tables(own)
    programs = {f"seed {seed}": program(Random(seed)) for seed in range(8)}
    followed(own, {**CASES, **programs}, ByPlace)
