"""The sink of docs/sinks.md passes the suite by the test that stands there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.docs.sinks_page import Hook, everything

SCOPE: dict[str, Any] = everything()


class TestTheSinkOfThePage(SCOPE["TestWebhookSink"]):  # type: ignore[misc]
    @pytest.fixture(autouse=True)
    def place(self) -> Iterator[None]:
        self.server = Hook()
        yield
        self.server.end()
