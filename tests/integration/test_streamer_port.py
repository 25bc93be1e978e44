"""The streamer's own port where others reach it: who shows the token looks, and nobody else, as documented."""

from __future__ import annotations

import base64
import json
import re
import time
import urllib.request
from pathlib import Path
from urllib.error import HTTPError

import yaml

from contract.pipeline_http import Http
from tests.integration.streaming import ROOT, Streamer
from tests.integration.without_kafka import NoKafka

OUTPUTS = "sinks: [{type: files, path: {folder}/out}]\ncheckpoints: {type: file, path: {folder}/position}\n"
TOKEN = "of-the-test-0123456789"


def documented() -> Http:
    page = (ROOT / "docs" / "configuration.md").read_text()
    [example] = [one for one in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL) if "token_file:" in one]
    return Http.model_validate(yaml.safe_load(example)["streamer"]["http"])


def answer(streamer: Streamer, path: str, authorization: str = "") -> int:
    headers = {"Authorization": authorization} if authorization else {}
    request = urllib.request.Request(f"http://127.0.0.1:{streamer.values['http']}{path}", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=5) as found:
            return int(found.status)
    except HTTPError as error:
        return error.code


def test_a_token_is_asked_for_where_others_reach_it(no_kafka: NoKafka, tmp_path: Path) -> None:
    assert (documented().host, documented().asks) == ("0.0.0.0", True)
    token = tmp_path / "token"
    token.write_text(f"{TOKEN}\n")
    streamer = no_kafka("porttoken", OUTPUTS)
    plain = f"http: {{port: {streamer.values['http']}}}"
    own = documented().model_copy(update={"port": streamer.values["http"], "token_file": token})
    text = streamer.file.read_text()
    streamer.file.write_text(text.replace(plain, f"http: {own.model_dump_json(exclude_none=True)}"))
    streamer.start()
    until = time.monotonic() + 60
    while (told := streamer.command("status", "--json")).returncode and time.monotonic() < until:
        time.sleep(0.2)
    assert json.loads(told.stdout)["pipeline"] == "porttoken"
    login = base64.b64encode(f"anybody:{TOKEN}".encode()).decode()
    for path in ("/", "/status", "/metrics"):
        assert answer(streamer, path) == 401
        assert answer(streamer, path, f"Bearer {TOKEN}") == answer(streamer, path, f"Basic {login}") == 200
    assert answer(streamer, "/healthz") == 200
    token.write_text("another-0123456789")
    refused = streamer.command("status")
    assert refused.returncode == 1
    assert "it answered 401" in refused.stderr
    assert TOKEN not in streamer.log()
    assert streamer.stop() == 0
    token.write_text("short")
    failed = streamer.command("run")
    assert failed.returncode == 1
    assert json.loads(failed.stderr)["kind"] == "token"
    assert "openssl rand -hex 32" in failed.stderr
