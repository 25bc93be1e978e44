"""Topics that compact, of a pipeline that feeds no lake, as documented."""

from __future__ import annotations

import json
import re
from typing import Any

import yaml
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from stack.kafka import Kafka
from stack.mysql import MySQL
from tests.integration.streaming import ROOT, Make, execute
from tests.integration.topic_records import records


def documented() -> dict[str, Any]:
    page = (ROOT / "docs" / "configuration.md").read_text()
    [example] = [one for one in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL) if "cleanup:" in one]
    found: dict[str, Any] = yaml.safe_load(example)
    return found


def policies(kafka: Kafka, *topics: str) -> list[set[str]]:
    asked = [ConfigResource(ResourceType.TOPIC, topic) for topic in topics]
    client = AdminClient({"bootstrap.servers": kafka.address})  # with which its answers go
    answers = client.describe_configs(asked)
    return [set(answers[one].result()["cleanup.policy"].value.split(",")) for one in asked]


def test_a_topic_compacts_where_no_lake_reads_it(make: Make, mysql: MySQL, kafka: Kafka) -> None:
    name = "compacting"
    streamer = make(name, delivery="at_least_once")
    given = documented()
    given["checkpoints"]["path"] = str(streamer.file.parent / "position")
    text = json.dumps(given).replace('"shop.', f'"{name}.')
    plain = re.sub(r"^lake:.*\n", "", streamer.file.read_text(), flags=re.MULTILINE)
    streamer.file.write_text(plain + "".join(f"{key}: {json.dumps(json.loads(text)[key])}\n" for key in given))
    execute(mysql, *(f"CREATE TABLE {name}.{table} (id INT PRIMARY KEY, v INT)" for table in ("customers", "prices")))
    streamer.started()
    execute(
        mysql,
        f"INSERT INTO {name}.customers VALUES (1, 1), (2, 2)",
        f"DELETE FROM {name}.customers WHERE id = 1",
        f"INSERT INTO {name}.prices VALUES (1, 1)",
        f"TRUNCATE {name}.prices",
        f"INSERT INTO {name}.prices VALUES (2, 1)",
        f"INSERT INTO {name}.t VALUES (1, 1, 'x')",
    )
    streamer.wait_until_released()
    found = policies(kafka, f"{name}.{name}.customers", f"{name}.{name}.prices", f"{name}.{name}.t")
    assert found == [{"compact", "delete"}, {"compact"}, {"delete"}]
    assert [one.key for one in records(kafka, f"{name}.{name}.customers") if one.value is None] == [{"id": 1}]
    emptied = [one for one in records(kafka, f"{name}.{name}.prices") if one.value["op"] == "t"]
    assert [(one.partition, one.key) for one in emptied] == [(0, {}), (1, {})]
    assert streamer.command("topics").returncode == 0

    execute(mysql, f"DROP TABLE {name}.prices", f"CREATE TABLE {name}.prices (v INT)")
    execute(mysql, f"INSERT INTO {name}.prices VALUES (1)")
    assert streamer.end() == 1
    assert f"rows of {name}.prices: it has no key" in streamer.log()
    assert "Traceback" not in streamer.log()
