"""Tables that joined with rows of before are named until the lake has read them since."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from contract import names
from contract.checkpoint import Checkpoint
from contract.pipeline import Pipeline, Tables
from contract.status import FILE as STATUS
from contract.status import AppliedSnapshot, LakeStatus, TableStatus
from streamer import joined
from streamer.control.report import Report
from streamer.control.tables import _tables as show_tables
from streamer.lake import Lake
from tests.checkpoints import checkpoint
from tests.streamer.fakes import Binlog, pipeline, rig, shape, transaction
from tests.streamer.test_follow import followed, offer, until
from tests.streamer.test_stream import ddl, run_until_released

PLACE = (0, 1, 100)


def test_tables_that_a_file_brings_are_named_in_the_checkpoint_that_follows_them() -> None:
    binlog = Binlog([transaction(1, [1])])
    what = rig(binlog)
    asked: list[tuple[Tables, Tables]] = []

    def joining(old: Tables, new: Tables) -> list[str]:
        asked.append((old, new))
        return ["shop.u", "shop.v"]

    what.stream.swap._joining = joining
    offer(what, "shop.t", "shop.u", "shop.v")
    until(what, lambda: what.sink.checkpoints() and followed(what) and what.sink.checkpoints()[-1].events == 1)
    first = next(one for one in what.sink.checkpoints() if one.joined)
    assert first.joined == {"shop.u": first.place, "shop.v": first.place}
    assert first.tables == Tables(include=("shop.t", "shop.u", "shop.v")), "in one with the list"
    assert asked == [(Tables(include=("shop.*",)), first.tables)]
    again = rig(binlog, begin=what.sink.checkpoints()[-1])
    binlog.transactions.append(transaction(2, [1]))
    run_until_released(again, 2)
    assert again.sink.checkpoints()[-1].joined == first.joined, "a restart forgets nothing"


def test_a_table_that_comes_by_a_rename_is_named_and_one_that_is_made_is_not() -> None:
    binlog = [
        ddl(1, "CREATE TABLE shop.made (id INT)"),
        ddl(2, "RENAME TABLE other.x TO shop.t, shop.a TO other.a"),
        transaction(3, [1]),
        ddl(4, "RENAME TABLE other.y TO other.z"),
        ddl(5, "ALTER TABLE shop.t RENAME shop.u"),
        ddl(6, "RENAME TABLE other.y TO shop.w"),
        ddl(7, "DROP TABLE shop.w"),
    ]
    what = rig(Binlog(binlog[:3]))
    run_until_released(what, 3)
    last = what.sink.checkpoints()[-1]
    assert last.joined == {"shop.t": (0, 1, 2001)}
    assert last.unread("shop", "t", [0, 1, 2000, -1, -1]), "it may have been read before the statement"
    assert last.unread("shop", "t", [0, 1, 2900, -1, -1]) is None
    again = rig(Binlog(binlog), begin=last)
    run_until_released(again, 7)
    assert again.sink.checkpoints()[-1].joined == {"shop.u": (0, 1, 5001)}


def lake(path: Path, at: Checkpoint, table: TableStatus | None) -> Pipeline:
    """A pipeline whose lake's status says so."""
    found = pipeline().model_copy(update={"path": path / "sales.yaml"})
    found = found.model_copy(update={"lake": found.lake and found.lake.model_copy(update={"path": str(path)})})
    told = LakeStatus(
        pipeline="sales", run=1, written_at=1, seconds=1, checkpoint=at, changes_version=1,
        tables={"shop.u": table} if table else {},
    )  # fmt: skip
    root = Path(names.lake_root(found))
    root.mkdir(parents=True, exist_ok=True)
    (root / STATUS).write_text(told.model_dump_json())
    return found


def in_lake(**more: Any) -> TableStatus:
    known = {"snapshot": AppliedSnapshot(id="1", p0="", p1="", rows=1, applied_at=1)}
    return TableStatus(db="shop", table="u", rows=1, changes=1, **known | more)


@pytest.mark.parametrize(
    ("table", "knew", "over"),
    [
        (in_lake(), True, ["shop.u"]),
        (in_lake(), False, []),  # a run of before it joined
        (in_lake(unread="not yet snapshotted"), True, []),
        (in_lake(snapshot=None), True, []),
        (None, True, []),
    ],
)
def test_what_the_lake_has_read_since_is_over(
    tmp_path: Path, table: TableStatus | None, knew: bool, over: list[str]
) -> None:
    here = checkpoint(pos=200).joining({"shop.u": True}, PLACE)
    settings = lake(tmp_path, here if knew else checkpoint(pos=90), table)
    assert joined.over(here, Lake(settings).read) == over
    assert joined.unread(here, Lake(settings).read) == ({} if over else {"shop.u": PLACE})


def test_a_lake_that_cannot_be_read_from_here_ends_nothing_and_what_left_is_over(tmp_path: Path) -> None:
    here = checkpoint(pos=200).joining({"shop.u": True}, PLACE)
    settings = pipeline()
    far = settings.model_copy(update={"lake": settings.lake and settings.lake.model_copy(update={"path": "s3://b/l"})})
    assert joined.unread(here, Lake(far).read) == {"shop.u": PLACE}
    broken = lake(tmp_path, here, in_lake())
    (Path(names.lake_root(broken)) / STATUS).write_text("{")
    assert joined.unread(here, Lake(broken).read) == {"shop.u": PLACE}
    left = here.following(Tables(include=("shop.t",)))
    assert (joined.unread(left, Lake(far).read), joined.over(left, Lake(far).read)) == ({}, ["shop.u"])


def test_the_status_names_them() -> None:
    what = rig(Binlog([transaction(1, [1], shape("id"))]))
    what.watcher.joined({"shop.u": True}, PLACE)
    report = Report(what.file.pipeline, what.status)
    report.attach(None, what.stream, what.ledger, what.watcher, what.checkpoints, what.sink)  # type: ignore[arg-type]
    tables = report._tables(report._parts)
    assert tables["not_yet_snapshotted"] == {"shop.u": PLACE}
    out = StringIO()
    Console(width=200, file=out).print(show_tables(tables, "sales"))
    told = " ".join(out.getvalue().split())
    assert "not yet snapshotted: shop.u (since binlog file 1, position 100): only changes since then are sent" in told
    assert "rows of before were not read; run the DAG sales.snapshot, or `headrace snapshot FILE`, for it" in told
    many = show_tables(tables | {"not_yet_snapshotted": {f"shop.t{n}": [0, 1, 4] for n in range(25)}}, "sales")
    assert "shop.t0 (since binlog file 1)" in many
    assert "and 5 more" in many
    assert many.endswith("`headrace snapshot FILE`, for them")
