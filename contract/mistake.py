"""What is wrong with a value of the pipeline file, and what to write instead, as one error."""

from __future__ import annotations


class MistakeError(ValueError):
    """`fix` goes on behind "fix: ", without a stop at its end."""

    def __init__(self, what: str, fix: str) -> None:
        super().__init__(what)
        self.fix = fix
