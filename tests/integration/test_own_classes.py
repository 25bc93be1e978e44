"""The classes of docs/sinks.md in a pipeline on a real server, and the suite of checkpoints on its SQL table."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from stack.mysql import MySQL
from tests.docs.sinks_page import Hook, everything, module
from tests.integration.streaming import execute, insert
from tests.integration.topic_records import once
from tests.integration.without_kafka import NoKafka, recorded

SCOPE: dict[str, Any] = everything()


def settings(mysql: MySQL, database: str) -> dict[str, Any]:
    execute(mysql, f"CREATE DATABASE IF NOT EXISTS {database}", f"GRANT ALL ON {database}.* TO headrace")
    return {
        "host": "127.0.0.1",
        "port": mysql.port,
        "user": "headrace",
        "password": mysql.password,
        "database": database,
    }


class TestTheTableOfThePage(SCOPE["TestTablePositions"]):  # type: ignore[misc]
    @pytest.fixture(autouse=True)
    def place(self, mysql: MySQL, request: pytest.FixtureRequest) -> None:
        self.settings = settings(mysql, "positions_suite")
        self.pipeline = SimpleNamespace(name=request.node.name[:40])


@pytest.fixture
def hook() -> Iterator[Hook]:
    server = Hook()
    yield server
    server.end()


def test_a_pipeline_of_own_classes(no_kafka: NoKafka, mysql: MySQL, hook: Hook, tmp_path: Path) -> None:
    """Killed, and with a webhook that fails for a while."""
    (tmp_path / "my_package.py").write_text(module())
    given = {**settings(mysql, "positions_of_own"), "password": "${TEST_PASSWORD}"}
    outputs = (
        f"sinks: [{{type: my_package.WebhookSink, settings: {{url: '{hook.url}'}}}}]\n"
        f"checkpoints: {{type: my_package.TablePositions, settings: {json.dumps(given)}}}\n"
    )
    streamer = no_kafka("ownclasses", outputs).started()
    insert(mysql, "ownclasses", 0, 50)
    streamer.wait_until_released()
    hook.well = False
    insert(mysql, "ownclasses", 50, 50)
    status = streamer.wait_for(lambda status: not status["sinks"][0]["healthy"])
    assert "HTTP Error 503" in status["sinks"][0]["last_error"]
    streamer.kill()
    hook.well = True
    streamer.started()
    insert(mysql, "ownclasses", 100, 50)
    streamer.wait_until_released()
    assert streamer.stop() == 0
    with mysql.connect(database="positions_of_own") as connection, connection.cursor() as cursor:
        cursor.execute("SELECT text FROM headrace_positions WHERE name = 'checkpoint'")
        assert json.loads(cursor.fetchone()[0])["events"] == 150
    assert [record.key["id"] for record in once(recorded(hook.records, "ownclasses.ownclasses.t"))] == list(range(150))
    assert "Traceback" not in streamer.log()
