"""What `python -m stack fetch` brings, by its options."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from stack import cli

PARTS = {"mysql", "mysql80", "mariadb", "kafka", "spark", "s3", "classes"}


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ([], PARTS - {"s3"}),
        (["--spark"], {"spark", "classes"}),
        (["--s3"], {"s3"}),
        (["--spark", "--s3"], {"spark", "classes", "s3"}),
    ],
)
def test_a_machine_that_runs_jobs_alone_gets_no_servers(
    monkeypatch: pytest.MonkeyPatch, options: list[str], wanted: set[str]
) -> None:
    monkeypatch.setattr(cli.mysql, "own_mysqld", lambda: None)
    monkeypatch.setattr(cli.archive, "published", lambda: True)
    for module, name, part in (
        (cli.mysql, "server_folder", "mysql"),
        (cli.mysql80, "server_folder", "mysql80"),
        (cli.mariadb, "server_folder", "mariadb"),
        (cli.maven, "kafka_jars", "kafka"),
        (cli.maven, "spark_jars_folder", "spark"),
        (cli.maven, "spark_s3_jars_folder", "s3"),
        (cli, "spark_classes", "classes"),
    ):
        monkeypatch.setattr(module, name, lambda part=part: Path(part))
    done = CliRunner().invoke(cli.app, ["fetch", *options])
    assert done.exit_code == 0, done.output
    assert set(done.output.split()) == wanted
