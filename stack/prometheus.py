"""Prometheus' promtool, which reads alert rules and queries: the tests ask it about ours."""

from __future__ import annotations

import shutil
from pathlib import Path

from stack import debian, versions
from stack.fetch import install


def promtool() -> str:
    """The program: the machine's own, or Debian's. Raises StackError."""
    own = shutil.which("promtool")
    return own or str(install(f"promtool-{versions.DEBIAN_SUITE}", unpack) / "usr" / "bin" / "promtool")


def unpack(folder: Path) -> dict[str, str]:
    return debian.unpack(folder, "promtool", versions.PROMTOOL_PACKAGES)
