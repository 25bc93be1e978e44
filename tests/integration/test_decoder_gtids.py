"""GTID sets against the server's own arithmetic, by hypothesis: some dozens of pairs in each statement."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contract.gtid import GtidSet
from contract.gtid_mariadb import MariaGtids
from stack.database import Database

UUIDS = [f"{n}" * 8 + "-1111-2222-3333-444444444444" for n in "0af"]
TAGGED = [f"{UUIDS[0]}:tag", f"{UUIDS[1]}:a", f"{UUIDS[1]}:_b2", f"{UUIDS[1]}:{'z' * 32}"]
LAST = (1 << 63) - 2  # the server's greatest number
QUICK = settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
# Few numbers, so that sets touch and overlap; and the greatest ones.
NUMBERS = st.integers(1, 30) | st.sampled_from([LAST - 1, LAST])
SPANS = st.tuples(NUMBERS, NUMBERS).map(sorted)
# A server reads its sets with blanks, in any order, with intervals that overlap.
TEXT = st.tuples(st.sampled_from(UUIDS + TAGGED), st.lists(SPANS, min_size=1, max_size=4)).map(
    lambda source: ":".join([source[0], *(f"{a}-{b}" if a != b else f"{a}" for a, b in source[1])])
)
TEXTS = st.lists(TEXT, max_size=5).map(", \n".join)


def untagged(text: str) -> str:
    """What servers before 8.3 read."""
    return ",".join(part for part in text.split(",") if not any(tag.split(":")[1] in part for tag in TAGGED))


@pytest.mark.lacks("mariadb", "it has no functions for sets of GTIDs")
@QUICK
@given(st.lists(TEXTS, min_size=40, max_size=40))
def test_as_the_server_reckons(server: Database, texts: list[str]) -> None:
    """Pitfall "GTID set": intervals with gaps, several UUIDs, tags."""
    if server.name == "mysql80":
        texts = [untagged(text) for text in texts]
    pairs = list(pairwise(texts))
    one = (
        "SELECT GTID_SUBSET(%s, %s), GTID_SUBTRACT(%s, %s), GTID_SUBTRACT(%s, ''), "
        "GTID_SUBTRACT(CONCAT(%s, ',', %s), '')"
    )
    arguments = [text for a, b in pairs for text in (b, a, a, b, a, a, b)]
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join([one] * len(pairs)), arguments)
        answers = cursor.fetchall()
    for (a, b), (subset, rest, same, both) in zip(pairs, answers, strict=True):
        mine, other = GtidSet.parse(a), GtidSet.parse(b)
        assert mine.issuperset(other) == bool(subset), (a, b)
        assert str(mine.subtract(other)) == rest.replace("\n", ""), (a, b)
        assert str(mine) == same.replace("\n", ""), "spelled as the server does"
        assert str(mine.union(other)) == both.replace("\n", ""), (a, b)
        added = mine.copy()
        added.add_all(f"{source}:{first}" for source, first, _ in other)
        assert all(added.contains(f"{source}:{first}") for source, first, _ in [*mine, *other])


POSITION = st.dictionaries(st.integers(100, 4294967295), st.tuples(st.integers(1, 4294967295), st.integers(1, LAST)))


@pytest.mark.lacks("mysql", "its GTIDs have no domains")
@pytest.mark.lacks("mysql80", "its GTIDs have no domains")
@QUICK
@given(POSITION)
def test_a_position_is_read_and_spelled_as_mariadb_does(server: Database, position: dict[int, tuple[int, int]]) -> None:
    text = ",".join(f"{domain}-{server_id}-{number}" for domain, (server_id, number) in position.items())
    with server.connect() as connection, connection.cursor() as cursor:
        try:
            cursor.execute("SET GLOBAL gtid_slave_pos = %s", (text,))
            cursor.execute("SELECT @@GLOBAL.gtid_slave_pos")
            [spelled] = cursor.fetchone()
        finally:
            cursor.execute("SET GLOBAL gtid_slave_pos = ''")
    assert sorted(spelled.split(",")) == sorted(str(MariaGtids.parse(text)).split(","))
    assert MariaGtids.parse(spelled) == MariaGtids.parse(text)
