from __future__ import annotations

from pathlib import Path

import pytest

from stack.errors import StackError
from stack.ports import free_port
from stack.streamer import StreamerService


def test_a_pipeline_file_with_a_mistake_is_shown_from_its_log(tmp_path: Path) -> None:
    file = tmp_path / "shop.yaml"
    file.write_text("format: 1\nname: shop\nsorce: {}\n")
    service = StreamerService(tmp_path / "streamer", file, free_port())
    with pytest.raises(StackError) as caught:
        service.start()
    text = str(caught.value)
    assert "the streamer ended while starting" in text
    assert f"Read {service.log_path}" in text
    assert "sorce" in text
    assert "Traceback" not in text
    assert service.pid is None
