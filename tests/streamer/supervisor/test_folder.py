"""What `headrace serve` makes of a file that is in order by itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from contract.pipeline import PipelineFileError
from streamer.supervisor.folder import Folder

PIPED = """\
format: 1
name: piped
source: {host: h, user: u, password_file: secret, server_id: 7}
tables: {include: ["shop.*"]}
checkpoints: {type: file, path: position}
sinks:
  - {type: files, path: out}
  - type: stdout
"""


def test_standard_output_that_nobody_would_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "piped.yaml"
    path.write_text(PIPED)
    folder = Folder([tmp_path], ("127.0.0.1", 8180))
    [found] = folder.look(at_once=True)
    assert found.pipeline is None
    assert f"{path}:8: sinks[1].type: " in str(found.error)
    assert "headrace run" in str(found.error)
    with pytest.raises(PipelineFileError, match=r"sinks\[1\]\.type"):
        folder.check(PIPED.replace("piped", "other"), tmp_path / "other.yaml")
    path.write_text(PIPED.replace("  - type: stdout\n", ""))
    [found] = folder.look(at_once=True)
    assert found.error is None
