"""`streamer.http`: another address than this machine's own is for those with a token."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from contract.pipeline_http import Http


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.7", "streamer"])
def test_an_address_for_others_needs_a_token(host: str) -> None:
    with pytest.raises(ValidationError, match="could read the pipeline's status") as caught:
        Http(host=host)
    [found] = caught.value.errors()
    assert "openssl rand -hex 32; or listen on 127.0.0.1" in found["ctx"]["error"].fix
    assert Http(host=host, token_file=Path("t")).asks


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.0.1", "::1", "localhost"])
def test_this_machine_needs_none(host: str) -> None:
    assert Http(host=host).secret() == ""


def test_a_token_is_of_one_place_and_long_enough(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("0123456789abcdef\n")
    given: dict[str, Any] = {"host": "0.0.0.0", "token_file": file}
    assert Http.model_validate(given).secret() == "0123456789abcdef"
    with pytest.raises(ValidationError, match="takes one of them"):
        Http.model_validate(given | {"token": "0123456789abcdef"})
    file.write_text("short")
    with pytest.raises(OSError, match="less than 16 characters"):
        Http.model_validate(given).secret()
    with pytest.raises(OSError, match="less than 16 characters"):
        Http.model_validate({"host": "0.0.0.0", "token": "short"}).secret()
