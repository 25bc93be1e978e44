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


CODED = """\
format: 1
name: coded
source: {host: h, user: u, password_file: secret, server_id: 7}
tables: {include: ["shop.*"]}
checkpoints: {type: file, path: position}
sinks:
  - {type: files, path: out}
  - type: my_package.MySink
"""
TRANSFORMED = """\
format: 1
name: coded
source: {host: h, user: u, password_file: secret, server_id: 7}
tables: {include: ["shop.*"]}
kafka: {bootstrap: "127.0.0.1:9092"}
lake: {path: lake}
transforms:
  - {tables: [shop.orders], function: os.system}
"""


@pytest.mark.parametrize(
    ("text", "key"), [(CODED, r"8: sinks\[1\]\.type"), (TRANSFORMED, r"8: transforms\[0\]\.function")]
)
def test_who_may_write_pipelines_over_the_api_may_not_run_code(tmp_path: Path, text: str, key: str) -> None:
    path = tmp_path / "coded.yaml"
    folder = Folder([tmp_path], ("127.0.0.1", 8180))
    with pytest.raises(PipelineFileError, match=key):
        folder.check(text, path)
    assert Folder([tmp_path], ("127.0.0.1", 8180), allows_code=True).check(text, path).name == "coded"
    path.write_text(text)  # by somebody who may write there: from then on it may stay
    [found] = folder.look(at_once=True)
    assert found.error is None
    assert folder.check(text.replace("shop.*", "shop.o*"), path).name == "coded"
    with pytest.raises(PipelineFileError, match="--allow-code"):
        folder.check(text.replace("os.system", "os.remove").replace("MySink", "Other"), path)
