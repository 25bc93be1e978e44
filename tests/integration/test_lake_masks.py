"""The documented examples of `columns`, `events` and `topics` to the lake: masked tables are proven equal, what
is hidden is nowhere, and a table whose deletes are left out is not compared."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from contract.pipeline import load
from spark.compaction.compaction import compact
from spark.job import JobFailedError
from spark.jobs.snapshot import snapshot
from spark.jobs.verify import verify
from spark.lake.lake import Lake
from stack.database import Database
from stack.kafka import Kafka
from tests.integration.decoding import run
from tests.integration.streaming import Streamer
from tests.integration.test_lake_servers import damage
from tests.integration.topic_records import records

PAGE = Path(__file__).parents[2] / "docs" / "configuration.md"
SECRET = "quagga-salt"
# Each value that is hidden has one of these in it.
HIDDEN = ("zebra", "quokka", "1999-12-3", "492966120", SECRET)
TABLES = ("customers", "accounts", "audit")
PEOPLE = (
    "email varchar(80), name varchar(40), phone varchar(20), address varchar(80) character set latin1, birthday date, "
    "notes text, card_no char(16), card_valid date, city varchar(20)"
)


def person(n: int) -> str:
    return (
        f"('zebra{n}@example.org', 'Aquokka{n}', '+49 492966120{n:04}', 'quokkaweg {n}', '1999-12-3{n % 2}', 'zebra', "
        f"'492966120{n:07}', '2031-01-01', 'Köln{n}')"
    )


@pytest.fixture(params=[pytest.param("mysql", marks=pytest.mark.soak), "mariadb"])
def masked(
    request: pytest.FixtureRequest, kafka: Kafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Streamer]:
    """A streamer by the examples over `customers`, `accounts`, whose key is masked, and `audit`, whose deletes
    are left out."""
    server: Database = request.getfixturevalue(request.param)
    name = f"hides{request.param}"
    monkeypatch.setenv("TEST_PASSWORD", server.password)
    monkeypatch.setenv("SHOP_MASK_SECRET", SECRET)
    run(server, f"DROP DATABASE IF EXISTS {name}", f"CREATE DATABASE {name}")
    run(server, f"CREATE TABLE customers (id int auto_increment PRIMARY KEY, {PEOPLE})", database=name)
    run(server, "CREATE TABLE accounts (email varchar(80) PRIMARY KEY, balance decimal(10,2))", database=name)
    run(server, "CREATE TABLE audit (id int PRIMARY KEY, n int)", database=name)
    made = Streamer(tmp_path, server, kafka, name)
    sections = "".join(re.findall(r"```yaml\n((?:columns|events|topics):.*?)```", PAGE.read_text(), re.DOTALL))
    made.file.write_text(made.file.read_text() + sections.replace("shop", name) + "quality: {wait_seconds: 300}\n")
    yield made
    made.close()


def write(made: Streamer, first: int) -> None:
    columns = ", ".join(column.split()[0] for column in PEOPLE.split(", "))
    rows = ", ".join(map(person, range(first, first + 20)))
    accounts = ", ".join(f"('zebra{n}@example.org', {n})" for n in range(first, first + 20))
    run(
        made.mysql,
        f"INSERT INTO customers ({columns}) VALUES {rows}",
        f"INSERT INTO accounts VALUES {accounts}",
        f"UPDATE customers SET phone = '+49 492966120 77', address = NULL WHERE email = 'zebra{first}@example.org'",
        f"UPDATE accounts SET email = 'zebra-moved{first}@example.org' WHERE email = 'zebra{first}@example.org'",
        f"UPDATE accounts SET balance = -1 WHERE email = 'zebra{first + 1}@example.org'",
        f"DELETE FROM accounts WHERE email = 'zebra{first + 2}@example.org'",
        f"DELETE FROM customers WHERE email = 'zebra{first + 2}@example.org'",
        f"INSERT INTO audit VALUES ({first}, 1), ({first + 1}, 1), ({first + 2}, 1)",
        f"UPDATE audit SET n = 2 WHERE id = {first}",
        f"DELETE FROM audit WHERE id > {first}",
        database=made.name,
    )


def test_the_example_is_proven_equal_and_what_it_hides_is_nowhere(spark: SparkSession, masked: Streamer) -> None:
    name = masked.name
    write(masked, 0)
    masked.started()
    write(masked, 100)
    masked.wait_until_released()
    pipeline = load(masked.file)
    snapshot(spark, pipeline, [])
    write(masked, 200)
    masked.wait_until_released()
    compact(spark, pipeline)
    proof = verify(spark, pipeline, [])
    assert {table: facts["equal"] for table, facts in proof["tables"].items()} == {
        f"{name}.customers": True,
        f"{name}.accounts": True,
        f"{name}.audit": None,
    }
    assert "leaves out its delete, truncate changes" in proof["tables"][f"{name}.audit"]["reason"]
    lake = Lake(spark, pipeline)
    audit = spark.read.format("delta").load(lake.table(name, "audit"))
    left = [(row["id"], row["n"]) for row in audit.orderBy("id").collect()]
    assert left == [(0, 2), (100, 2), (200, 2), (201, 1), (202, 1)], "deletes behind the snapshot are not followed"
    filtered = masked.status()["filtered"]["tables"]
    assert filtered == {f"{name}.audit": {"delete": 4}}
    customers = spark.read.format("delta").load(lake.table(name, "customers"))
    kept = ["id", "email", "name", "phone", "address", "birthday", "city", "_seq", "_ts"]
    assert customers.columns == kept
    by_city = {row["city"]: row.asDict() for row in customers.collect()}
    seen, email = by_city["Köln103"], hmac.new(SECRET.encode(), b"zebra103@example.org", hashlib.sha256).hexdigest()
    wanted = (email, "A", "*" * 13 + "0103", "*" * len("quokkaweg 103"), None)
    assert tuple(seen[column] for column in kept[1:6]) == wanted
    assert by_city["Köln200"]["address"] is None
    _is_nowhere(spark, masked, proof)

    damage_one = {"customers": "phone = concat('x', substr(phone, 2)) WHERE city = 'Köln5'"}
    damage(spark, pipeline, damage_one)
    with pytest.raises(JobFailedError, match=rf"{name}\.customers: checksum"):
        verify(spark, pipeline, [])


def _is_nowhere(spark: SparkSession, masked: Streamer, proof: object) -> None:
    """Not in Kafka, the lake, the log, the status, the metrics or the result of the check."""
    pipeline = load(masked.file)
    with urllib.request.urlopen(f"http://127.0.0.1:{masked.values['http']}/metrics", timeout=5) as answer:
        metrics = answer.read().decode()
    texts = [masked.log(), json.dumps(masked.status()), metrics, json.dumps(proof)]
    topics = AdminClient({"bootstrap.servers": masked.kafka.address}).list_topics(timeout=10).topics
    partitions = {table: len(topics[f"{masked.name}.{masked.name}.{table}"].partitions) for table in TABLES}
    assert partitions == {"customers": 6, "accounts": 6, "audit": 1}
    told = [
        record for topic in topics if topic.startswith(f"{masked.name}.") for record in records(masked.kafka, topic)
    ]
    assert sum(bool(record.value and "op" in record.value) for record in told) > 80, "the records were looked at"
    texts.append(json.dumps(told, ensure_ascii=False, default=repr))  # the commit log has a bare key
    lake = Lake(spark, pipeline)
    for path in (lake.changes, lake.table(masked.name, "customers"), lake.table(masked.name, "accounts")):
        texts += spark.read.format("delta").load(path).toJSON().collect()
    files = [path for path in Path(pipeline.lake.path).rglob("*") if path.is_file()]
    found = {hidden for hidden in HIDDEN for text in texts if hidden in text}
    found |= {hidden for hidden in HIDDEN for path in files if hidden.encode() in path.read_bytes()}
    assert found == set()
    schema = [one.value for one in told if isinstance(one.value, dict) and one.value.get("table") == "accounts"]
    assert [(column["name"], column["type"], column["mask"]) for column in schema[0]["columns"]] == [
        ("email", "varchar", "hash"),
        ("balance", "decimal", None),
    ]
