"""Of one Delta table: the commits that a power cut left torn, which nothing vouches for, are taken back (cut_off.py).

Delta's protocol, "Delta Log Entries", "Add File" and "Deletion Vector Descriptor Schema".
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

from spark.lake.on_disk import inside, length, written
from spark.session import OURS

Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
MADE = re.compile(r"(\d{20})\.(?!json$)")  # a checksum or a checkpoint of a version
CODED = 20  # characters of a file's id
FRAME = 8  # bytes about a deletion vector in its file: its length, its checksum


class Commit(NamedTuple):
    """`read`: its actions; none of one that cannot be read. `removed`: the paths of files."""

    version: int
    ours: bool
    read: tuple[Mapping[str, Any], ...]

    @property
    def removed(self) -> set[str]:
        return {str(one["remove"].get("path")) for one in self.read if isinstance(one.get("remove"), dict)}


def take_back_commits(table: Path, noted: int, kept: int = -1) -> Iterator[str]:
    """Of the table's commits that are newer than `noted`, Unix ns, and than the version `kept`, the first that is not
    whole and all behind it, the newest first. Gives a line for each. Raises OSError, also where a file cannot be looked
    at: then nobody knows whether it is whole, and none is taken."""
    log = table / "_delta_log"
    if written(log) <= noted:  # no file has come
        return
    files = {file: written(file) for file in inside(log)}
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
        if not one.read or any(length(file) < size for file, size in files):
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
