"""A lake in no folder, as on S3, whose small files are in this process, and whose store may fail."""

from __future__ import annotations

import json
from typing import Any

from contract.pipeline import Pipeline


class Away:
    """`files`: their texts by path. `failing`: how many reads to come get no answer."""

    root = "s3a://lakes/shop"

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline, self.files, self.failing = pipeline, dict[str, str](), 0

    def at(self, *parts: str) -> str:
        return "/".join((self.root, *parts))

    def prove_writable(self) -> None:
        pass

    def read(self, path: str) -> Any | None:
        if self.failing:
            self.failing -= 1
            raise OSError("no answer")
        text = self.files.get(path)
        return None if text is None else json.loads(text)

    def write(self, path: str, value: Any) -> None:
        self.files[path] = json.dumps(value)

    def delete(self, path: str) -> None:
        self.files.pop(path, None)
