"""What a power cut left of a run's last steps: taken back, as if the run had ended a moment before.

Delta and Spark do not wait until their files are on the disk, Headrace's notes do, for all that was written before
(`Lake.settle`). So a commit of Delta's that is newer than every note is noted nowhere: where a file of it is missing or
empty, or the commit itself is, a run that does not find it does the same again. So it is with the last notes of Spark's
own in a checkpoint, and with checksums beside files, without which Hadoop reads them all the same. What a note vouches
for is never touched: where that is broken, the error that says so stands. Elsewhere than in a folder, what is written
is there for good, and nothing is looked at.

Commits: Delta's protocol, "Delta Log Entries", "Add File" and "Deletion Vector Descriptor Schema".
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from contract import names
from spark.lake.lake import Lake

QUERIES = ("changes", "tables")
TABLES = (names.CHANGES, names.SCHEMA_CHANGES, names.DEAD_LETTERS, names.CHECKS, names.DIFFERENCES, names.REPAIRS)
Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
CODED = 20  # characters of a file's id
FRAME = 8  # bytes about a deletion vector in its file: its length, its checksum


def take_back(lake: Lake) -> list[str]:
    """For a run that begins. Gives a line for each commit that it took away."""
    root = Path(lake.root)
    if "://" in lake.root or not root.is_dir():
        return []
    queries = [root / names.CHECKPOINTS / query for query in QUERIES]
    noted = _noted(root, queries)
    told = [line for table in _tables(root) for line in take_back_commits(table, noted)]
    for query in queries:
        _forget_empty(query, noted)
    if told:
        lake.forget_logs()
    return told


def take_back_commits(table: Path, noted: int, kept: int = -1) -> Iterator[str]:
    """Of the newest commits of a table those that are not whole: newer than `noted`, Unix ns, and than the version
    `kept`. Gives a line for each."""
    log = table / "_delta_log"
    if _written(log) <= noted:  # no file has come
        return
    fresh = [file for file in log.iterdir() if _written(file) > noted]
    for file in fresh:
        if file.name.endswith(".crc") and file.name.startswith("."):
            file.unlink()
    numbers = sorted((int(file.stem) for file in fresh if file.suffix == ".json" and file.stem.isdigit()), reverse=True)
    going = True
    for version in (number for number in numbers if number > kept):
        going = going and not _whole(table, version)
        if going:
            _remove(log, version)
            yield f"{table}: commit {version} was cut off, as by a power cut, and noted nowhere: it is done again"


def _noted(root: Path, queries: list[Path]) -> int:
    """When the newest of the notes was written, Unix ns: what is no newer than it is on the disk."""
    notes = [*root.glob("*.json"), *(root / names.MARKS).glob("*.json")]
    notes += [file for query in queries for file in _numbered(query / "commits") if file.stat().st_size]
    return max(map(_written, notes), default=0)


def _tables(root: Path) -> Iterator[Path]:
    """Also those that no note names yet."""
    yield from (root / name for name in TABLES)
    for folder in (root, root / names.SHAPES):
        for db in folder.iterdir() if folder.is_dir() else ():
            if db.is_dir() and db.name not in names.FOLDERS:
                yield from db.iterdir()


def _written(file: Path) -> int:
    """0 where there is none, or it has gone meanwhile."""
    with suppress(FileNotFoundError, NotADirectoryError):
        return file.stat().st_mtime_ns
    return 0


def _numbered(folder: Path) -> list[Path]:
    found = folder.iterdir() if folder.is_dir() else ()
    return sorted((file for file in found if file.name.isdigit()), key=lambda file: int(file.name))


def _whole(table: Path, version: int) -> bool:
    """Also takes the checksums beside the files away, of which nobody knows whether they are."""
    lines = (table / "_delta_log" / f"{version:020d}.json").read_bytes().split(b"\n")
    try:
        actions = [json.loads(line) for line in lines if line]
    except ValueError:
        return False
    files = [file for one in actions if "add" in one for file in _files(table, one["add"])]
    for file, _ in files:
        file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
    return bool(actions) and all(file.is_file() and file.stat().st_size >= size for file, size in files)


def _files(table: Path, added: Mapping[str, Any]) -> Iterator[tuple[Path, int]]:
    """Those of an added file, and how many bytes each has at least."""
    yield table / unquote(added["path"]), added["size"]
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


def _remove(log: Path, version: int) -> None:
    """What Delta has made of the commit goes first: its checkpoint would be taken for it."""
    last = f"{version:020d}.json"
    made = [file.name for file in log.glob(f"{version:020d}.*") if file.name != last]
    for name in (*made, "_last_checkpoint", last):  # without that one Delta looks through the log
        (log / name).unlink(missing_ok=True)
        (log / f".{name}.crc").unlink(missing_ok=True)


def _forget_empty(query: Path, noted: int) -> None:
    """Spark notes that a batch is done behind what it did, and its offsets before: without the last of either it does
    the batch again, or reads it anew. One that has an effect is not empty."""
    done, begun, sources = query / "commits", query / "offsets", query / "sources" / "0"
    for folder in (query, done, begun, sources):
        for file in folder.glob(".*.crc"):
            of = file.with_name(file.name[1 : -len(".crc")])
            if _written(file) > noted or not file.stat().st_size or not of.exists():
                file.unlink()
    _forget_last(done)
    if not _last(done) or _last(begun) > _last(done):
        _forget_last(begun)
    if not _last(begun):  # nor has a query that never read anything a beginning
        for file in (query / "metadata", *_numbered(sources)):
            if file.is_file() and not file.stat().st_size:
                file.unlink()


def _last(folder: Path) -> list[int]:
    return [int(file.name) for file in _numbered(folder)[-1:]]


def _forget_last(folder: Path) -> None:
    for file in _numbered(folder)[-1:]:
        if not file.stat().st_size:
            file.unlink()
