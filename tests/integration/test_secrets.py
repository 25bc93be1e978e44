"""What is secret is in no line of a log, however much is logged, nor in what the streamer says of itself."""

from __future__ import annotations

from pathlib import Path

from stack.kafka import Kafka
from stack.mysql import MySQL
from tests.integration.streaming import Make, arrived, execute, insert

SALT = "salt-of-the-masks-0123456789"


def test_secrets_from_files_are_used_and_never_shown(make: Make, mysql: MySQL, kafka: Kafka, tmp_path: Path) -> None:
    password, salt = tmp_path / "password", tmp_path / "salt"
    password.write_text(mysql.password + "\n")
    salt.write_text(SALT)
    streamer = make("secretive", mysql)
    text = streamer.file.read_text().replace("${TEST_PASSWORD}", f"${{file:{password}}}")
    masks = f'{{secret: "${{file:{salt}}}", masks: [{{columns: ["secretive.t.name"], mask: hash}}]}}'
    streamer.file.write_text(f"{text}columns: {masks}\n")
    streamer.start("--log-level", "DEBUG")
    streamer.wait_for(lambda status: status["state"] == "streaming" and status["source"]["connected"])
    insert(mysql, "secretive", 1, 3)
    execute(mysql, "ALTER TABLE secretive.t ADD COLUMN more INT")
    status = streamer.wait_until_released()
    shown = streamer.log() + str(status) + streamer.command("status").stdout + streamer.command("check").stdout
    assert streamer.stop() == 0
    shown += streamer.log()
    assert arrived(kafka, "secretive") == [1, 2, 3]
    for secret in (mysql.password, SALT):
        assert secret not in shown
