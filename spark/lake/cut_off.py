"""What a power cut left of a job's last steps: taken back, as if the job had ended a moment before.

Delta and Spark do not wait until their files are on the disk, Headrace's notes do, for all that was written before
(`Lake.settle`). So a commit of a job's that is newer than every note is noted nowhere: where a file of it is missing or
empty, or the commit itself is, it goes, with those behind it, and a run that does not find them does the same again. So
it is with the last notes of Spark's own in a checkpoint, and with checksums beside files, without which Hadoop reads
them all the same. Done by whoever gets the lake's slot first since the machine was started, before a note of its own
is newer: without a start in between nothing can be cut off.

What a note vouches for, and a commit of somebody else's that can be read, is never touched: where that is broken, the
error that says so stands. Nor is anything where the files' times are not those at which they were written, as in a
copy. Elsewhere than in a folder, what is written is there for good, and nothing is looked at.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from contract import names
from contract.status import FILE as STATUS
from contract.status import LakeStatus, parse
from spark.lake.cut_commits import take_back_commits
from spark.lake.lake import UNFINISHED, Lake
from spark.lake.on_disk import inside, length, written

QUERIES = ("changes", "tables")
TABLES = (
    names.CHANGES, names.SCHEMA_CHANGES, names.DEAD_LETTERS, names.CHECKS, names.DIFFERENCES, names.REPAIRS,
    names.ERASURES,
)  # fmt: skip
STARTED = "_started"  # the start of the machine, since which all was looked through
BOOT = Path("/proc/sys/kernel/random/boot_id")
APART = 60_000  # ms between what a note says of its time and the file's own, at most
MS = 1_000_000  # ns


def take_back(lake: Lake) -> list[str]:
    """Gives a line for each commit that it took away, and for what it could not look at."""
    root = Path(lake.root)
    if "://" in lake.root or not root.is_dir():
        return []
    start = started()
    if start and _text(root / STARTED) == start:
        return []
    told = _look(lake, root)
    lake.forget_logs()
    with suppress(OSError):
        (root / STARTED).write_text(start)
    return told


def started() -> str:
    """Which start of the machine this is; empty where it does not tell."""
    return _text(BOOT)


def _look(lake: Lake, root: Path) -> list[str]:
    last, queries = _status(root), [root / names.CHECKPOINTS / query for query in QUERIES]
    if not _times_hold(root, last):
        return []
    noted, kept, told = _noted(root, queries), _kept(lake, last), list[str]()
    for table in _tables(root):
        try:
            told.extend(take_back_commits(table, noted, kept.get(table, -1)))
        except (OSError, KeyError, TypeError, ValueError) as error:
            told.append(f"{table}: what a power cut may have left of it cannot be looked at: {error}")
    for query in queries:
        with suppress(OSError):
            _forget_empty(query, noted)
    return told


def _status(root: Path) -> LakeStatus | None:
    with suppress(OSError, ValueError):
        return parse((root / STATUS).read_text())
    return None


def _times_hold(root: Path, last: LakeStatus | None) -> bool:
    """Whether a note was written when it says so: else files have the times at which somebody copied them."""
    told = {STATUS: last.written_at if last else 0}
    with suppress(OSError, ValueError, KeyError, TypeError):
        told[UNFINISHED] = int(json.loads((root / UNFINISHED).read_text())["began"] * 1000)
    found = ((written(root / name) // MS, at) for name, at in told.items())
    return any(own and abs(own - at) <= APART for own, at in found)


def _noted(root: Path, queries: list[Path]) -> int:
    """When the newest of the notes was written, Unix ns: what is no newer than it is on the disk."""
    notes = [file for folder in (root, root / names.MARKS) for file in inside(folder) if file.suffix == ".json"]
    notes += [file for query in queries for file in _numbered(query / "commits") if length(file)]
    return max(map(written, notes), default=0)


def _kept(lake: Lake, last: LakeStatus | None) -> dict[Path, int]:
    """The versions that the status has."""
    if last is None:
        return {}
    found = {lake.table(one.db, one.table): one.version for one in last.tables.values()}
    found[lake.changes] = last.changes_version
    return {Path(path): version for path, version in found.items() if version is not None}


def _tables(root: Path) -> Iterator[Path]:
    """Also those that no note names yet."""
    yield from (root / name for name in TABLES)
    for folder in (root, root / names.SHAPES):
        for db in inside(folder):
            if db.name not in names.FOLDERS:
                yield from inside(db)


def _text(file: Path) -> str:
    """Empty where there is none."""
    with suppress(OSError, ValueError):
        return file.read_text().strip()
    return ""


def _numbered(folder: Path) -> list[Path]:
    return sorted((file for file in inside(folder) if file.name.isdigit()), key=lambda file: int(file.name))


def _forget_empty(query: Path, noted: int) -> None:
    """Spark notes that a batch is done behind what it did, and its offsets before: without the last of either it does
    the batch again, or reads it anew. One that has an effect is not empty."""
    done, begun, sources = query / "commits", query / "offsets", query / "sources" / "0"
    for folder in (query, done, begun, sources):
        for file in folder.glob(".*.crc"):
            of = file.with_name(file.name[1 : -len(".crc")])
            if written(file) > noted or not length(file) or not of.exists():
                file.unlink(missing_ok=True)
    _forget_last(done)
    if not _last(done) or _last(begun) > _last(done):
        _forget_last(begun)
    if not _last(done) and _last(begun) in ([], [0]):  # nothing came of what it began with
        files = [query / "metadata", *_numbered(sources), *_numbered(begun)]
        for file in files if 0 in map(length, files) else ():
            file.unlink(missing_ok=True)


def _last(folder: Path) -> list[int]:
    return [int(file.name) for file in _numbered(folder)[-1:]]


def _forget_last(folder: Path) -> None:
    for file in _numbered(folder)[-1:]:
        if not length(file):
            file.unlink(missing_ok=True)
