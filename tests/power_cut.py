"""A lake's folder as a power cut leaves it: what was synced is there, of the rest nobody knows."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from spark.lake import lake as lakes
from spark.lake.cut_off import STARTED
from spark.lake.lake import NEW

ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
State = tuple[int, int]  # which file it is, and how it was last written


class Disk:
    """Knows which files below `root` are on it. `cut` takes from each of the others what it may: all of it, its
    contents, or nothing."""

    def __init__(self, root: str, seed: object) -> None:
        self.root, self.seed = Path(root), seed
        self.synced: dict[Path, State] = {}
        self.lost: list[str] = []

    def cut(self) -> None:
        whole = {*self.synced.values()}  # also under another name, as of a table that takes another one's place
        for path, state in self._files(self.root).items():
            if state in whole or NEW in path.name:  # a note is on the disk before all that it tells is
                continue
            done = self._left(path)
            self.lost.append(f"{done}: {path.relative_to(self.root)}")
            times = [(one, (one.stat().st_atime_ns, one.stat().st_mtime_ns)) for one in (path, path.parent)]
            if done == "empty":
                os.truncate(path, 0)
            elif done == "gone":
                path.unlink()
            for one, both in times:  # a cut is no write
                if one.exists():
                    os.utime(one, ns=both)
        (self.root / STARTED).unlink(missing_ok=True)  # the machine is started again

    def _left(self, path: Path) -> str:
        """The same for a seed, whatever ids there are in the file's name."""
        kind = ID.sub("", str(path.relative_to(self.root)))
        return random.Random(f"{self.seed} {kind}").choice(("kept", "empty", "gone"))

    def all(self, folder: Path | str) -> None:
        self.synced = self._files(self.root)

    def names(self, folder: Path | str) -> None:
        """A note of the lake, whose contents went before its name."""
        self.synced |= {path: state for path, state in self._files(Path(folder)).items() if path.suffix == ".json"}

    def _files(self, folder: Path) -> dict[Path, State]:
        found: dict[Path, State] = {}
        for path in folder.rglob("*") if folder == self.root else folder.iterdir():
            try:
                if path.is_file():
                    found[path] = (path.stat().st_ino, path.stat().st_mtime_ns)
            except FileNotFoundError:
                continue  # tables are written side by side
        return found


@contextmanager
def disk(root: str, seed: object) -> Iterator[Disk]:
    """Asked where the lake asks for a sync. What is there as it begins is on the disk."""
    found = Disk(root, seed)
    found.all(root)
    before = lakes.sync_all, lakes.sync_folder
    lakes.sync_all, lakes.sync_folder = found.all, found.names
    try:
        yield found
    finally:
        lakes.sync_all, lakes.sync_folder = before
