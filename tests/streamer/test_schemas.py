"""Schema versions by position: a replay gives what the first reading gave, and old shapes get new numbers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from contract.schema import Column, TableSchema
from contract.sequence import Sequence
from streamer import schemas
from streamer.schemas import Schemas


def shape(*columns: str) -> TableSchema:
    return TableSchema(
        db="shop", table="orders", columns=tuple(Column(name=c, type="int") for c in columns), key=("a",)
    )


def at(position: int) -> Sequence:
    return Sequence(0, 1, position)


def test_an_old_shape_that_comes_back_gets_a_new_version() -> None:
    known = Schemas()
    versions = [known.resolve(shape(*names), at(n))[0].version for n, names in enumerate(["a", "ab", "a", "a"])]
    assert versions == [1, 2, 3, 3]


def test_only_new_versions_are_published() -> None:
    known = Schemas()
    assert known.resolve(shape("a"), at(1))[1]
    assert not known.resolve(shape("a"), at(2))[1]


@given(st.lists(st.sampled_from(["a", "ab", "abc"]), min_size=1, max_size=30), st.data())
def test_a_replay_from_anywhere_gives_the_same_versions(binlog: list[str], data: st.DataObject) -> None:
    first = Schemas()
    published = []
    versions = []
    for position, names in enumerate(binlog):
        schema, new = first.resolve(shape(*names), at(position))
        versions.append(schema.version)
        if new:
            published.append((schemas.key(schema), schemas.value(schema)))
    again = Schemas(schemas.parse(data.draw(st.permutations(published)), "a topic"))
    start = data.draw(st.integers(0, len(binlog) - 1))
    for position in range(start, len(binlog)):
        schema, new = again.resolve(shape(*binlog[position]), at(position))
        assert (schema.version, new) == (versions[position], False)
