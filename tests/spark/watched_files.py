"""Hadoop's file system of a lake, watched: what is asked of it costs a request each on S3."""

from __future__ import annotations

from typing import Any


class Watched:
    """The file system, and how often it was asked what is in a folder, and which files it removed."""

    def __init__(self, files: Any) -> None:
        self.files, self.listed, self.removed = files, 0, list[str]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.files, name)

    def listStatus(self, path: Any) -> Any:
        self.listed += 1
        return self.files.listStatus(path)

    def delete(self, path: Any, below: bool) -> bool:
        self.removed.append(str(path.getName()))
        return bool(self.files.delete(path, below))
