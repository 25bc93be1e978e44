"""Examples of docs/configuration.md, run as they stand there but for addresses and folders."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import fsspec
import pytest
import yaml

from stack.kafka import Kafka
from stack.mysql import MySQL
from stack.ports import free_port
from stack.s3 import S3
from tests.integration.conftest import MySQLServer
from tests.integration.streaming import ROOT, Streamer, execute
from tests.integration.topic_records import once, records
from tests.integration.without_kafka import NOWHERE, in_folder, recorded
from tests.streamer.sinks import reading_lines

NAME = "documented"
# Such a store wants it, as the page says.
OLDER = {"request_checksum_calculation": "when_required", "response_checksum_validation": "when_required"}


def example(words: str) -> dict[str, Any]:
    """The only one of the page that has the words."""
    page = (ROOT / "docs" / "configuration.md").read_text()
    [found] = [block for block in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL) if words in block]
    given: dict[str, Any] = yaml.safe_load(found)
    return given


def on(store: S3, section: dict[str, Any]) -> dict[str, Any]:
    return section | {"options": section["options"] | {"endpoint_url": store.endpoint, "config_kwargs": OLDER}}


def whole(folder: Path, store: S3, kafka: Kafka, streamer: Streamer) -> dict[str, Any]:
    """A pipeline of many of the examples."""
    shared, run, sinks = example("{pipeline}.changes"), example("mode: oneshot"), example("type: objects")["sinks"]
    kept = example("target: s3://backups")["archive"]
    asked = example("headers:")["records"]
    return {
        **yaml.safe_load(streamer.file.read_text()),
        **example("tmp_*"),
        "kafka": shared["kafka"] | {"bootstrap": kafka.address},
        "records": shared["records"] | asked,
        "streamer": run["streamer"] | {"http": {"port": streamer.values["http"]}},
        "sinks": [sinks[0], sinks[1] | {"path": str(folder / "files")}, on(store, sinks[2])],
        "archive": on(store, kept) | {"spool": str(folder / "spool")},
    }


def ids(found: list[Any], table: str) -> list[int]:
    return [one.key["id"] for one in once([one for one in found if one.value["source"]["table"] == table])]


def test_the_examples_in_one_pipeline(
    mysql_server: MySQLServer, kafka: Kafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three sinks, one topic for all tables, each of which has its partition; run now and then, from the oldest
    change on; and an archive of the binlog."""
    mysql, store = mysql_server(), S3(tmp_path / "s3", free_port())
    streamer = Streamer(tmp_path, mysql, kafka, NAME)
    store.start()
    try:
        for bucket in ("lake", "backups"):
            store.make_bucket(bucket)
        monkeypatch.setenv("S3_KEY", store.key)
        monkeypatch.setenv("S3_SECRET", store.secret)
        streamer.file.write_text(yaml.safe_dump(whole(tmp_path, store, kafka, streamer)))
        tables = ("shop.orders", "shop.tmp_1", "sales_2026.items", "sales_26.items")
        execute(mysql, "CREATE DATABASE shop", "CREATE DATABASE sales_2026", "CREATE DATABASE sales_26")
        execute(mysql, *(f"CREATE TABLE {table} (id INT PRIMARY KEY, v INT)" for table in tables))
        for run in range(2):
            rows = ",".join(f"({n}, 0)" for n in range(50 * run, 50 * run + 50))
            execute(mysql, *(f"INSERT INTO {table} VALUES {rows}" for table in tables))
            streamer.start()
            assert streamer.end() == 0, streamer.log()
        everywhere(tmp_path, store, kafka)
        done = streamer.command("archive", "--until-now")
        assert done.returncode == 0, done.stderr
        assert archived(store) == in_binlog(mysql)
        assert store.secret not in streamer.log() + done.stderr
    finally:
        streamer.close()
        store.kill()


def everywhere(folder: Path, store: S3, kafka: Kafka) -> None:
    topic = f"{NAME}.changes"
    login = {"endpoint_url": store.endpoint, "key": store.key, "secret": store.secret, "config_kwargs": OLDER}
    fs = fsspec.filesystem("s3", **login)
    objects = {name: fs.cat_file(name) for name in fs.find("lake/shop") if ".jsonl" in name}
    in_kafka = records(kafka, topic)
    for found in (in_kafka, in_folder(folder / "files", topic), recorded(reading_lines.of_files(objects), topic)):
        assert {one.value["source"]["table"] for one in found} == {"orders", "items"}
        assert ids(found, "orders") == ids(found, "items") == list(range(100))
    for table in ("orders", "items"):
        mine = [one for one in in_kafka if one.value["source"]["table"] == table]
        assert len({one.partition for one in mine}) == 1
        assert {name for name, _ in mine[0].headers} == {"__op", "__table", "__gtid"}
        assert mine[0].value["transaction"]["total_order"] == 1
    assert all(name.endswith(".jsonl.gz") for name in objects)
    assert list((folder / "files" / topic).glob("*.jsonl.zst"))
    assert [one.key for one in records(kafka, f"{NAME}.heartbeat")] == [{"serverName": NAME}] * 2, "one a run"


def archived(store: S3) -> dict[str, int]:
    login = {"endpoint_url": store.endpoint, "key": store.key, "secret": store.secret, "config_kwargs": OLDER}
    fs = fsspec.filesystem("s3", **login)
    found = [name for name in fs.find("backups/binlogs") if "/binlog." in name]  # it lists folders too
    return {name.rpartition("/")[2].removesuffix(".part"): fs.info(name)["size"] for name in found}


def in_binlog(mysql: MySQL) -> dict[str, int]:
    with mysql.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SHOW BINARY LOGS")
        return {row[0]: int(row[1]) for row in cursor.fetchall()}


def test_the_pipeline_without_kafka(mysql: MySQL, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = example("name: shop-files")
    text = json.dumps(given).replace("/var/lib/headrace", str(tmp_path)).replace('"shop.*', f'"{NAME}.*')
    streamer = Streamer(tmp_path, mysql, NOWHERE, NAME)
    more = {"source": given["source"] | {"port": mysql.port}, "streamer": {"http": {"port": streamer.values["http"]}}}
    streamer.file.write_text(yaml.safe_dump(json.loads(text) | more))
    monkeypatch.setenv("SHOP_PASSWORD", mysql.password)
    execute(mysql, f"CREATE DATABASE {NAME}", f"CREATE TABLE {NAME}.t (id INT PRIMARY KEY, v INT)")
    try:
        for run in range(2):
            streamer.started()
            execute(mysql, f"INSERT INTO {NAME}.t VALUES ({2 * run}, 1), ({2 * run + 1}, 1)")
            streamer.wait_until_released()
            assert streamer.stop() == 0
    finally:
        streamer.close()
    found = in_folder(tmp_path / "shop-files" / "events", f"shop-files.{NAME}.t")
    assert [one.key["id"] for one in found] == [0, 1, 2, 3]
