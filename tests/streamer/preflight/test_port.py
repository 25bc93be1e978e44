"""A token with which no streamer would start is told by `headrace check`, with its place in the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from contract.pipeline import Pipeline
from streamer.preflight.findings import Result
from streamer.preflight.port import port
from tests.streamer.fakes import pipeline


def found(tmp_path: Path, **http: Any) -> list[Result]:
    file = tmp_path / "shop.yaml"
    file.write_text("streamer:\n  http:\n    port: 1\n    token: ${SHOP_TOKEN}\n    token_file: x\n")
    given: Pipeline = pipeline(http=http)
    return list(port(given.model_copy(update={"path": file}), runs=True))


@pytest.mark.parametrize(
    ("http", "told"),
    [
        ({"token": "short"}, "4: streamer.http.token: the token has less than 16 characters"),
        ({"token_file": "/not/there"}, "5: streamer.http.token_file: No such file or directory"),
    ],
)
def test_a_token_that_cannot_be_had_is_an_error(tmp_path: Path, http: dict[str, Any], told: str) -> None:
    wrong, _ = found(tmp_path, **http)
    assert (wrong.level, wrong.subject, wrong.text) == ("error", "token", f"{tmp_path}/shop.yaml:{told}")
    assert "openssl rand -hex 32" in wrong.next_step
    assert "short" not in wrong.text


def test_one_that_can_is_not_told(tmp_path: Path) -> None:
    assert [one.subject for one in found(tmp_path, token="0123456789abcdef")] == ["port"]
    assert [one.subject for one in found(tmp_path)] == ["port"]
