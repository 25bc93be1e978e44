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

Commits: Delta's protocol, "Delta Log Entries", "Add File" and "Deletion Vector Descriptor Schema".
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

from contract import names
from contract.status import FILE as STATUS
from contract.status import LakeStatus, parse
from spark.lake.lake import UNFINISHED, Lake
from spark.session import OURS

QUERIES = ("changes", "tables")
TABLES = (
    names.CHANGES, names.SCHEMA_CHANGES, names.DEAD_LETTERS, names.CHECKS, names.DIFFERENCES, names.REPAIRS,
    names.ERASURES,
)  # fmt: skip
Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
MADE = re.compile(r"(\d{20})\.(?!json$)")  # a checksum or a checkpoint of a version
CODED = 20  # characters of a file's id
FRAME = 8  # bytes about a deletion vector in its file: its length, its checksum
STARTED = "_started"  # the start of the machine, since which all was looked through
BOOT = Path("/proc/sys/kernel/random/boot_id")
APART = 60_000  # ms between what a note says of its time and the file's own, at most
MS = 1_000_000  # ns


class Commit(NamedTuple):
    """`read`: its actions; none of one that cannot be read. `removed`: the paths of files."""

    version: int
    ours: bool
    read: tuple[Mapping[str, Any], ...]

    @property
    def removed(self) -> set[str]:
        return {str(one["remove"].get("path")) for one in self.read if isinstance(one.get("remove"), dict)}


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


def take_back_commits(table: Path, noted: int, kept: int = -1) -> Iterator[str]:
    """Of the table's commits that are newer than `noted`, Unix ns, and than the version `kept`, the first that is not
    whole and all behind it, the newest first. Gives a line for each. Raises OSError, also where a file cannot be looked
    at: then nobody knows whether it is whole, and none is taken."""
    log = table / "_delta_log"
    if _written(log) <= noted:  # no file has come
        return
    files = {file: _written(file) for file in _inside(log)}
    for file, at in files.items():
        if file.name.startswith(".") and file.name.endswith(".crc") and at > noted:
            file.unlink(missing_ok=True)
    versions = {int(file.stem): at for file, at in files.items() if file.suffix == ".json" and file.stem.isdigit()}
    known = kept if kept <= max(versions, default=-1) else -1  # else another table has taken its place since
    fresh = sorted(version for version, at in versions.items() if version > known and at > noted)
    commits = [_commit(log, version) for version in fresh]
    begins = any(".checkpoint" in file.name for file in files) or [*fresh[:1]] != [*sorted(versions)[:1]]
    torn = _torn(table, commits, (fresh[0] if begins else 0, *sorted(versions))) if fresh else None
    going = [one for one in commits if torn is not None and one.version >= torn]
    if any(one.read and not one.ours for one in going):
        return
    last = max((version for version in versions if torn is None or version < torn), default=-1)
    _remove_made(log, [file.name for file, at in files.items() if at > noted], max(last, known))
    for one in reversed(going):
        (log / f"{one.version:020d}.json").unlink(missing_ok=True)
        yield f"{table}: commit {one.version} was cut off, as by a power cut, and noted nowhere: it is done again"


def _torn(table: Path, commits: list[Commit], versions: tuple[int, ...]) -> int | None:
    """The first version of the commits that is not there, or not whole; None where all are. Takes the checksums beside
    their files away, of which nobody knows whether they are. `versions`: at which the log begins, and those it has."""
    torn, removed, above = None, set[str](), commits[-1].version
    for one in reversed(commits):
        if above > one.version + 1:  # what is behind one that is missing goes, and takes nothing out
            removed = set()
        above = one.version
        files = [file for action in one.read for file in _files(table, action, removed)]
        for file, _ in files:
            file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
        if not one.read or any(_length(file) < size for file, size in files):
            torn, removed = one.version, set()
        else:
            removed |= one.removed
    begin, *there = versions
    first = max((version for version in there if version < commits[0].version), default=begin - 1) + 1
    missing = next((version for version in range(first, commits[-1].version) if version not in there), None)
    return min((version for version in (torn, missing) if version is not None), default=None)


def _commit(log: Path, version: int) -> Commit:
    with suppress(FileNotFoundError, ValueError):
        read = [json.loads(line) for line in (log / f"{version:020d}.json").read_bytes().split(b"\n") if line]
        actions = tuple(one if isinstance(one, dict) else {} for one in read)
        told = [one["commitInfo"] for one in actions if isinstance(one.get("commitInfo"), dict)]
        return Commit(version, any(one.get("userMetadata") == OURS for one in told), actions)
    return Commit(version, True, ())


def _status(root: Path) -> LakeStatus | None:
    with suppress(OSError, ValueError):
        return parse((root / STATUS).read_text())
    return None


def _times_hold(root: Path, last: LakeStatus | None) -> bool:
    """Whether a note was written when it says so: else files have the times at which somebody copied them."""
    told = {STATUS: last.written_at if last else 0}
    with suppress(OSError, ValueError, KeyError, TypeError):
        told[UNFINISHED] = int(json.loads((root / UNFINISHED).read_text())["began"] * 1000)
    found = ((_written(root / name) // MS, at) for name, at in told.items())
    return any(written and abs(written - at) <= APART for written, at in found)


def _noted(root: Path, queries: list[Path]) -> int:
    """When the newest of the notes was written, Unix ns: what is no newer than it is on the disk."""
    notes = [file for folder in (root, root / names.MARKS) for file in _inside(folder) if file.suffix == ".json"]
    notes += [file for query in queries for file in _numbered(query / "commits") if _length(file)]
    return max(map(_written, notes), default=0)


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
        for db in _inside(folder):
            if db.name not in names.FOLDERS:
                yield from _inside(db)


def _inside(folder: Path) -> list[Path]:
    """None where it is no folder, or one that others keep to themselves."""
    with suppress(OSError):
        return [*folder.iterdir()]
    return []


def _written(file: Path) -> int:
    """0 where there is none, or it has gone meanwhile."""
    with suppress(OSError):
        return file.stat().st_mtime_ns
    return 0


def _text(file: Path) -> str:
    """Empty where there is none."""
    with suppress(OSError, ValueError):
        return file.read_text().strip()
    return ""


def _length(file: Path) -> int:
    """-1 where there is none."""
    with suppress(FileNotFoundError, NotADirectoryError):
        return file.stat().st_size
    return -1


def _numbered(folder: Path) -> list[Path]:
    return sorted((file for file in _inside(folder) if file.name.isdigit()), key=lambda file: int(file.name))


def _files(table: Path, action: Mapping[str, Any], removed: set[str]) -> Iterator[tuple[Path, int]]:
    """Those of a file that the action adds, and how many bytes each has at least. None of one that another commit has
    `removed` since, whose files may have gone, and of one elsewhere, which is no job's of ours."""
    added = action.get("add")
    if not isinstance(added, dict) or added["path"] in removed or "://" in added["path"] or ":/" in added["path"]:
        return
    yield table / unquote(added["path"]), int(added["size"])
    vector = added.get("deletionVector")
    if vector and vector["storageType"] == "u":
        least = int(vector.get("offset", 0)) + int(vector["sizeInBytes"]) + FRAME
        yield table / vector_file(vector["pathOrInlineDv"]), least


def vector_file(told: str) -> str:
    """The file of a deletion vector, in its table's folder: the folder in it, if there is one, and the id in Z85."""
    folder, code = told[:-CODED], told[-CODED:]
    number = 0
    for begin in range(0, CODED, 5):
        four = 0
        for character in code[begin : begin + 5]:
            four = four * len(Z85) + Z85.index(character)
        number = number << 32 | four
    return f"{folder}{'/' if folder else ''}deletion_vector_{uuid.UUID(int=number)}.bin"


def _remove_made(log: Path, fresh: list[str], last: int) -> None:
    """What Delta has made of commits behind the last one, also of such as are not there, goes before they do: the next
    commit of that version would be taken for the one that it was made of."""
    made = [name for name in fresh if (found := MADE.match(name)) and int(found[1]) > last]
    for name in (*made, *(["_last_checkpoint"] if made else [])):  # without that one Delta looks through the log
        (log / name).unlink(missing_ok=True)
        (log / f".{name}.crc").unlink(missing_ok=True)


def _forget_empty(query: Path, noted: int) -> None:
    """Spark notes that a batch is done behind what it did, and its offsets before: without the last of either it does
    the batch again, or reads it anew. One that has an effect is not empty."""
    done, begun, sources = query / "commits", query / "offsets", query / "sources" / "0"
    for folder in (query, done, begun, sources):
        for file in folder.glob(".*.crc"):
            of = file.with_name(file.name[1 : -len(".crc")])
            if _written(file) > noted or not _length(file) or not of.exists():
                file.unlink(missing_ok=True)
    _forget_last(done)
    if not _last(done) or _last(begun) > _last(done):
        _forget_last(begun)
    if not _last(done) and _last(begun) in ([], [0]):  # nothing came of what it began with
        files = [query / "metadata", *_numbered(sources), *_numbered(begun)]
        for file in files if 0 in map(_length, files) else ():
            file.unlink(missing_ok=True)


def _last(folder: Path) -> list[int]:
    return [int(file.name) for file in _numbered(folder)[-1:]]


def _forget_last(folder: Path) -> None:
    for file in _numbered(folder)[-1:]:
        if not _length(file):
            file.unlink(missing_ok=True)
