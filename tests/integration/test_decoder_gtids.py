"""GTID sets against the server's own arithmetic."""

from __future__ import annotations

import random

import pytest

from contract.gtid import GtidSet
from stack.database import Database

UUIDS = [f"{n}" * 8 + "-1111-2222-3333-444444444444" for n in "0af"]
TAGGED = [f"{UUIDS[0]}:tag", f"{UUIDS[1]}:a", f"{UUIDS[1]}:_b2"]


def _random(rng: random.Random, sources: list[str]) -> GtidSet:
    found = GtidSet()
    for _ in range(rng.randrange(8)):
        first = rng.randrange(1, 40)
        found.add_range(rng.choice(sources), first, first + rng.randrange(10))
    return found


@pytest.mark.lacks("mariadb", "it has no functions for sets of GTIDs")
def test_as_the_server_reckons(server: Database) -> None:
    rng = random.Random(7)
    sources = UUIDS if server.name == "mysql80" else UUIDS + TAGGED
    with server.connect() as connection, connection.cursor() as cursor:
        for _ in range(300):
            one, other = _random(rng, sources), _random(rng, sources)
            cursor.execute(
                "SELECT GTID_SUBSET(%(b)s, %(a)s), GTID_SUBTRACT(%(a)s, %(b)s), GTID_SUBTRACT(%(a)s, '')",
                {"a": str(one), "b": str(other)},
            )
            subset, rest, same = cursor.fetchone()
            assert one.issuperset(other) == bool(subset), (one, other)
            assert str(one.subtract(other)) == rest.replace("\n", ""), (one, other)
            assert str(one) == same.replace("\n", ""), "spelled as the server does"
