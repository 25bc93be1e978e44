"""What the images run beside the product: health checks, Airflow's entry, the secrets; and how the images are built."""

from __future__ import annotations

import importlib.util
import json
import os
import tarfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import ModuleType

import pytest

from docker import make_secrets
from docker.images import base, buildah
from docker.images.command import STEP, run_logged
from stack.errors import StackError
from stack.ports import free_port

DOCKER = Path(__file__).resolve().parents[2] / "docker"


def script(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.replace("/", "_").removesuffix(".py"), DOCKER / path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Server:
    """Answers every request with `body`."""

    body: object = None


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    answers = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(answers.body).encode())

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as http:
        thread = threading.Thread(target=http.serve_forever)
        thread.start()
        for variable in ("HEADRACE_STREAMER_PORT", "AIRFLOW__API__PORT"):
            monkeypatch.setenv(variable, str(http.server_port))
        yield answers
        http.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("state", "status"),
    [("starting", 0), ("waiting", 0), ("streaming", 0), ("stopping", 0), ("stopped", 1), ("failed", 1)],
)
def test_streamer_health_follows_its_state(server: Server, state: str, status: int) -> None:
    server.body = {"state": state}
    assert script("streamer/healthcheck.py").main() == status


def test_an_answer_that_is_no_status_is_ill(server: Server) -> None:
    server.body = ["another program"]
    assert script("streamer/healthcheck.py").main() == 1
    assert script("airflow/healthcheck.py").main() == 1


@pytest.mark.parametrize("path", ["streamer/healthcheck.py", "airflow/healthcheck.py"])
def test_silence_is_ill_and_named(
    path: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    port = str(free_port())
    monkeypatch.setenv("HEADRACE_STREAMER_PORT", port)
    monkeypatch.setenv("AIRFLOW__API__PORT", port)
    assert script(path).main() == 1
    assert port in capsys.readouterr().out


def test_airflow_is_ill_when_one_part_is(server: Server) -> None:
    server.body = {part: {"status": "healthy"} for part in ("metadatabase", "scheduler", "dag_processor")}
    check = script("airflow/healthcheck.py")
    assert check.main() == 0
    server.body = {**server.body, "scheduler": {"status": "unhealthy"}}  # type: ignore[dict-item]
    assert check.main() == 1


def test_entry_hands_secrets_on_without_showing_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = script("airflow/entrypoint.py")
    passwords = tmp_path / "passwords.json"
    monkeypatch.setattr(entry, "SECRETS", tmp_path)
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path))
    monkeypatch.setenv("AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE", str(passwords))
    monkeypatch.delenv("AIRFLOW__CORE__FERNET_KEY_CMD", raising=False)
    (tmp_path / "airflow_admin_password").write_text('pass "word"\n')
    (tmp_path / "airflow_fernet_key").write_text("the-key\n")
    entry.prepare()
    assert json.loads(passwords.read_text()) == {"admin": 'pass "word"'}
    assert passwords.stat().st_mode & 0o777 == 0o600
    assert os.environ["AIRFLOW__CORE__FERNET_KEY_CMD"] == f"cat {tmp_path}/airflow_fernet_key"
    assert "AIRFLOW__API_AUTH__JWT_SECRET_CMD" not in os.environ


def test_entry_refuses_an_empty_password_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = script("airflow/entrypoint.py")
    monkeypatch.setattr(entry, "SECRETS", tmp_path)
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path))
    monkeypatch.setenv("AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE", str(tmp_path / "passwords.json"))
    (tmp_path / "airflow_admin_password").write_text("\n")
    with pytest.raises(SystemExit, match="is empty; put the password"):
        entry.main(["true"])


def test_secrets_are_made_once_and_kept(tmp_path: Path) -> None:
    folder = tmp_path / "secrets"
    made = make_secrets.make(folder)
    first = {path.name: path.read_text() for path in folder.iterdir()}
    assert set(made) == set(first) == {*make_secrets.PASSWORDS, *make_secrets.KEYS}
    assert folder.stat().st_mode & 0o777 == 0o700
    assert len(set(first.values())) == len(first)
    assert make_secrets.make(folder) == []
    assert {path.name: path.read_text() for path in folder.iterdir()} == first


@pytest.mark.parametrize(("text", "size"), [("270 MB", 270_000_000), ("1.87 GB", 1_870_000_000), ("12 B", 12)])
def test_buildahs_sizes_are_read(text: str, size: int) -> None:
    assert buildah.parse_size(text) == size


def test_the_base_leaves_out_what_no_image_needs() -> None:
    def kept(name: str, kind: bytes = tarfile.REGTYPE) -> bool:
        member = tarfile.TarInfo(name)
        member.type = kind
        return base.kept(member) is not None

    assert kept("./usr/bin/python3")
    assert kept("./var/lib/apt/lists", tarfile.DIRTYPE)
    assert not kept("./var/lib/apt/lists/some_Packages")
    assert not kept("./var/cache/apt/archives/python3.deb")


def test_progress_shows_steps_of_both_engines_and_the_log_keeps_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert STEP.match("[2/2] STEP 3/9: RUN true")
    assert STEP.match("#8 [packages 3/3] RUN true")
    log = tmp_path / "build.log"
    run_logged("image", ["printf", "STEP 1/2: FROM base\nnoise\n"], log)
    assert capsys.readouterr().out == "  image: STEP 1/2: FROM base\n"
    assert "noise" in log.read_text()


def test_a_failed_build_says_which_and_shows_the_logs_end(tmp_path: Path) -> None:
    with pytest.raises(StackError, match=r"(?s)image: sh failed with status 3.*no such package.*Try again"):
        run_logged("image", ["sh", "-c", "echo no such package >&2; exit 3"], tmp_path / "log", "Try again.")
