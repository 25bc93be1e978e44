"""A job's options: words of its command, but for keys, of which there may be more than a word holds."""

from __future__ import annotations

import json
import stat
import subprocess
from pathlib import Path

from contract.job_options import forget, given, taken


def test_keys_go_in_a_file_that_is_its_owners_alone_and_goes_when_it_is_read() -> None:
    keys = json.dumps([f"key {n}" for n in range(100_000)])
    found = given({"tables": "-a.b", "keys": keys, "from": "", "by": "ada"})
    [file] = found.files
    assert found.words == ["--tables=-a.b", f"--keys-file={file}", "--by=ada"]
    assert subprocess.run(["true", *found.words]).returncode == 0, "as one word they would be too long"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert taken(str(file)) == keys
    assert not file.exists()
    forget(found.files)


def test_a_file_that_no_job_has_read_is_forgotten_by_who_made_it() -> None:
    found = given({"keys": "[1]"})
    forget(found.files)
    assert not any(Path(file).exists() for file in found.files)
