"""What `headrace serve` makes of a file that is in order by itself."""

from __future__ import annotations

import os
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


NOTIFIED = """\
quality:
  notifier: {type: my_package.MyNotifier, settings: {words: "{{ alert.text }}"}}
"""


def test_nor_may_they_say_what_a_notifier_tells_of_airflow(tmp_path: Path) -> None:
    plain = CODED.replace("  - type: my_package.MySink\n", "")
    text, path = plain + NOTIFIED, tmp_path / "coded.yaml"
    folder = Folder([tmp_path], ("127.0.0.1", 8180))
    told = r":9: quality\.notifier: my_package\.MyNotifier with its settings is code"
    with pytest.raises(PipelineFileError, match=told):
        folder.check(text, path)
    path.write_text(text)  # by somebody who may write there
    folder.look(at_once=True)
    assert folder.check(text.replace("shop.*", "shop.o*"), path).name == "coded"
    assert folder.check(plain, path).quality.notifier is None
    with pytest.raises(PipelineFileError, match="--allow-code"):
        folder.check(text.replace("alert.text", "conn.other.password"), path)


SCRIPTED = TRANSFORMED.replace("function: os.system", "script: SCRIPT")


@pytest.mark.parametrize("script", ["/dev/zero", "pipe", "there.py", "not_there.py", "large.py"])
def test_no_file_is_looked_at_for_who_may_not_run_code(tmp_path: Path, script: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "there.py").write_text("no python at all\n")
    (tmp_path / "large.py").write_bytes(b"#" * 1_100_000)
    text, path = SCRIPTED.replace("SCRIPT", script), tmp_path / "new.yaml"
    folder = Folder([tmp_path], ("127.0.0.1", 8180))
    assert folder.place_of(text) == path
    with pytest.raises(PipelineFileError) as caught:
        folder.check(text, path)
    [problem] = caught.value.problems
    assert (problem.key, problem.message) == (
        "transforms[0].script", f"{script} is code, which the API is not allowed to name"
    )  # fmt: skip
    with pytest.raises(PipelineFileError, match=r"transforms\[0\]\.script: .*(cannot be read|is no Python)"):
        Folder([tmp_path], ("127.0.0.1", 8180), allows_code=True).check(text, path)


def test_who_may_write_pipelines_over_the_api_reads_no_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTHER_PASSWORD", "hunter2Secret")
    text = CODED.replace("  - type: my_package.MySink\n", "")
    asked = text.replace('"shop.*"', '"${OTHER_PASSWORD}"')
    path = tmp_path / "coded.yaml"
    folder = Folder([tmp_path], ("127.0.0.1", 8180))
    with pytest.raises(PipelineFileError, match=r"include\[0\]: is no secret") as caught:
        folder.check(asked, path)
    assert "hunter2" not in str(caught.value)
    user = text.replace("user: u", 'user: "${OTHER_PASSWORD}"')
    with pytest.raises(PipelineFileError, match=r"source\.user: is no secret"):
        folder.check(user, path)
    path.write_text(user)  # by somebody who may write there: from then on it may stay
    folder.look(at_once=True)
    assert folder.check(user + "# more\n", folder.place_of(user)).source.user == "hunter2Secret"
    fresh = Folder([tmp_path / "coded.yaml"], ("127.0.0.1", 8180), allows_code=True)
    assert fresh.check(user, tmp_path / "coded.yaml").source.user == "hunter2Secret"
