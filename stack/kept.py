"""What a server that is up keeps until it is stopped: the settings that it was started with.

A second `up` in a shell with others would change nothing; so it is told which. A variable that the shell lacks is no
wish, and values are not told: some are passwords.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

NAMED = re.compile(r"\$\{(\w+)")


def named_in(files: Iterable[Path]) -> set[str]:
    """The variables that pipeline files take from the environment."""
    return {name for file in files if file.is_file() for name in NAMED.findall(file.read_text(errors="replace"))}


def other_settings(kept: Mapping[str, str], wanted: Mapping[str, str], names: Iterable[str]) -> list[str]:
    """Of `names`, those of which a process with the environment `kept` does not have what is wanted, in words."""
    other = sorted(name for name in names if name in wanted and kept.get(name) != wanted[name])
    return [f"another {name}" if name in kept else f"no {name}" for name in other]
