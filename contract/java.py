"""Which Java runs Spark, and the servers of `stack/`: the one of JAVA_HOME, where that is set, else the one on PATH."""

from __future__ import annotations

import os
import shutil


def java_program() -> str | None:
    """The program; None where there is none."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java", path=os.path.join(home, "bin")) if home else shutil.which("java")


def java_missing() -> str:
    """Why there is none."""
    home = os.environ.get("JAVA_HOME")
    return (
        f"JAVA_HOME is {home}, which has no bin/java" if home else "there is no java on PATH, and JAVA_HOME is not set"
    )
