"""The DAGs in a real Airflow, driven by its REST API, over a real MySQL and a real Kafka; and a pipeline run by them
alone, end to end: snapshot, changes, proof, and a fault that must be found.

Compaction has no schedule there, so the snapshot and the check start the compactions that they need; one pipeline more
is compacted each minute.
"""

from __future__ import annotations

import email
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import httpx
import polars as pl
import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from contract.pipeline import load
from contract.status import LakeStatus, read
from stack.airflow import Airflow
from stack.demo.airflow_api import Airflow as Api
from stack.demo.airflow_api import Run
from stack.errors import StackError
from stack.kafka import Kafka
from stack.maven import spark_jars
from stack.mysql import MySQL
from stack.streamer import StreamerService
from tests.integration.airflow_site import Site, done, end_of, ended, log_of, states
from tests.integration.streaming import execute

pytestmark = pytest.mark.timeout(2400)  # five Spark applications, on whatever else the machine does

Status = Callable[[], LakeStatus]
ORDERS = "(id INT PRIMARY KEY, state ENUM('new', 'paid') NOT NULL, amount DECIMAL(10, 2))"
ITEMS = "(shop INT, id INT, name VARCHAR(20) NOT NULL, PRIMARY KEY (shop, id))"


@pytest.fixture(scope="module")
def airflow(airflow_site: Site) -> Airflow:
    return airflow_site.airflow


@pytest.fixture(scope="module")
def api(mysql: MySQL, airflow_site: Site) -> Api:
    for db in ("air1", "air2", "dagshop", "clockshop"):
        execute(
            mysql, f"CREATE DATABASE {db}", f"CREATE TABLE {db}.orders {ORDERS}", f"CREATE TABLE {db}.items {ITEMS}"
        )
    return airflow_site.api


@pytest.fixture(scope="module", autouse=True)
def away(api: Api) -> Run:
    """Half a minute passes until a broker is known to be away: the other tests run meanwhile."""
    return api.trigger("air-three.topics")


@pytest.fixture(scope="module")
def streamer(mysql: MySQL, airflow_site: Site, api: Api) -> Iterator[StreamerService]:
    """It follows dagshop, which has rows already."""
    spark_jars()
    orders = ", ".join(f"({n}, 'new', {n}.50)" for n in range(1000))
    items = ", ".join(f"({n % 7}, {n}, 'item {n}')" for n in range(500))
    execute(mysql, f"INSERT INTO dagshop.orders VALUES {orders}", f"INSERT INTO dagshop.items VALUES {items}")
    home, file, settings = (
        airflow_site.airflow.home,
        airflow_site.pipelines / "dags.yaml",
        airflow_site.airflow.settings,
    )
    streamer = StreamerService(home / "streamer", file, airflow_site.streamer_port, settings)
    try:
        streamer.start()
        yield streamer
    finally:
        streamer.stop()


@pytest.fixture(scope="module")
def first(api: Api, streamer: StreamerService) -> Run:
    """The snapshot of all tables."""
    return ended(api, "dags.snapshot")


@pytest.fixture(scope="module")
def checked(api: Api, mysql: MySQL, first: Run) -> Run:
    """A check behind the snapshot and changes of all kinds."""
    execute(
        mysql,
        "UPDATE dagshop.orders SET state = 'paid' WHERE id < 100",
        "DELETE FROM dagshop.items WHERE id < 10",
        "INSERT INTO dagshop.orders VALUES (5000, 'new', NULL)",
    )
    return ended(api, "dags.quality")


@pytest.fixture
def status(mysql: MySQL, airflow_site: Site, monkeypatch: pytest.MonkeyPatch) -> Status:
    """Reads the lake's, of dagshop."""
    monkeypatch.setenv("HEADRACE_MYSQL_PASSWORD", mysql.password)

    def of_lake() -> LakeStatus:
        found = read(load(airflow_site.pipelines / "dags.yaml"))
        assert found is not None
        return found

    return of_lake


def test_a_wrong_file_is_an_import_error_and_the_others_have_their_dags(airflow: Airflow, api: Api) -> None:
    dags = httpx.get(f"{airflow.url}/api/v2/dags", params={"limit": 100}, timeout=30).json()["dags"]
    found = {dag["dag_id"].partition(".")[0]: dag for dag in dags}
    assert set(found) == {"air-one", "air-two", "air-three", "dags", "clock"}
    assert not any(dag["has_import_errors"] for dag in dags)
    errors = httpx.get(f"{airflow.url}/api/v2/importErrors", timeout=30).json()["import_errors"]
    assert [error["filename"] for error in errors] == ["headrace_pipeline_files.py"]
    assert "did you mean source?" in errors[0]["stack_trace"]
    assert "Traceback" not in errors[0]["stack_trace"]


def test_topics_are_made_once_and_then_are_as_wanted(api: Api, kafka: Kafka) -> None:
    names = {f"air-one.{name}" for name in ("air1.items", "air1.orders", "commit-log", "ddl", "schemas")}
    first = ended(api, "air-one.topics")
    assert first.state == "success"
    assert set(api.result(first, "provision")["created"]) == names
    topics = AdminClient({"bootstrap.servers": kafka.address}).list_topics(timeout=10).topics
    assert len(topics["air-one.air1.orders"].partitions) == 2
    again: dict[str, Any] = api.result(ended(api, "air-one.topics"), "provision")
    assert set(again["as_wanted"]) == names
    assert again["created"] == []


def test_a_topic_with_other_settings_fails_the_task_and_says_so(airflow: Airflow, api: Api, kafka: Kafka) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.address})
    admin.create_topics([NewTopic("air-two.air2.orders", 5, 1)])["air-two.air2.orders"].result(30)
    run = ended(api, "air-two.topics")
    assert run.state == "failed"
    log = log_of(airflow, run, "provision")
    assert "air-two.air2.orders: partitions is 5, the pipeline file wants 2" in log
    assert "ALERT air-two.topics provision" in log
    assert "air-two.air2.orders" in api.result(run, "provision")["differing"]


def test_a_broker_that_is_away_fails_with_the_next_step(
    airflow_site: Site, airflow: Airflow, api: Api, away: Run
) -> None:
    run = end_of(api, away)
    assert run.state == "failed"
    log = log_of(airflow, run, "provision")
    assert "127.0.0.1:9" in log
    assert "kafka.bootstrap" in log
    assert (airflow_site.lake / "air-three" / "_quality" / "alerts.jsonl").exists()
    sent = email.message_from_string(airflow_site.mail.text.partition("data\r\n")[2])
    assert (sent["To"], sent["Subject"]) == ("ada@example.org", "air-three.topics")


def test_a_misspelled_parameter_fails_the_run_at_once_and_says_which_there_are(airflow: Airflow, api: Api) -> None:
    run = ended(api, "air-one.snapshot", {"tabels": ["air1.orders"]})
    assert states(api, run) == {
        "stage": "failed", **dict.fromkeys(("all_staged", "streamed", "compact", "applied"), "upstream_failed")
    }  # fmt: skip
    log = log_of(airflow, run, "stage")
    assert "air-one.snapshot has no parameter 'tabels' (did you mean 'tables'?): it has existing, tables" in log
    assert "spark-submit" not in log
    topics = ended(api, "air-one.topics", {"tables": ["air1.orders"]})
    assert states(api, topics) == {"provision": "failed"}
    assert "air-one.topics has no parameter 'tables': it takes no conf" in log_of(airflow, topics, "provision")


def test_a_snapshot_of_all_tables_arrives_in_the_lake(api: Api, status: Status, first: Run) -> None:
    assert states(api, first) == dict.fromkeys(("stage", "all_staged", "streamed", "compact", "applied"), "success")
    tables = status().tables
    assert {name: table.rows for name, table in tables.items()} == {"dagshop.orders": 1000, "dagshop.items": 500}


def test_a_check_starts_the_compaction_it_waits_for_and_proves_the_tables_equal(api: Api, checked: Run) -> None:
    again = dict.fromkeys(("waits_again", "streamed_again", "compact_again"), "skipped")
    assert states(api, checked) == dict.fromkeys(("verify", "waits", "streamed", "compact"), "success") | again
    result = api.result(checked, "verify")
    assert result["expectations"]["ok"] is True
    assert {name: (facts["equal"], facts["lake_count"]) for name, facts in result["tables"].items()} == {
        "dagshop.orders": (True, 1001),
        "dagshop.items": (True, 490),
    }


@pytest.mark.soak
@pytest.mark.usefixtures("checked")
def test_a_second_compaction_changes_nothing(api: Api, status: Status) -> None:
    before = status()
    done(api, "dags.compaction")
    pool = httpx.get(f"{api.url}/api/v2/pools/headrace-dags-lake", timeout=30).raise_for_status().json()
    assert (pool["slots"], pool["occupied_slots"]) == (1, 0)
    after = status()
    assert after.run == before.run + 1
    versions = (
        {name: (table.rows, table.changes, table.version) for name, table in s.tables.items()} for s in (before, after)
    )
    assert next(versions) == next(versions)


@pytest.mark.soak
@pytest.mark.usefixtures("checked")
def test_maintenance_by_its_form(api: Api, airflow_site: Site, status: Status) -> None:
    before = status()
    api.pause("dags.maintenance", False)  # one with a schedule begins as Airflow is set
    run = done(api, "dags.maintenance", {"tables": ["dagshop.orders"], "steps": ["optimize", "vacuum"]})
    told = api.result(run, "maintain")
    assert (list(told["tables"]), told["held_back"], told["warnings"]) == (["dagshop.orders"], [], [])
    assert "maintain of dags: done" in log_of(airflow_site.airflow, run, "maintain")
    done(api, "dags.maintenance")
    done(api, "dags.compaction")
    after = status()
    assert [(t.rows, t.changes) for t in after.tables.values()] == [(t.rows, t.changes) for t in before.tables.values()]
    with pytest.raises(StackError, match="polish"):
        api.trigger("dags.maintenance", {"steps": ["polish"]})


@pytest.mark.soak
@pytest.mark.usefixtures("checked")
def test_a_difference_fails_the_task_which_names_it_and_alerts(api: Api, mysql: MySQL, airflow_site: Site) -> None:
    # A change that MySQL was told to keep out of its binlog can reach no lake.
    execute(mysql, "SET sql_log_bin = 0", "DELETE FROM dagshop.orders WHERE id = 500")
    run = ended(api, "dags.quality")
    assert states(api, run)["verify"] == "failed"
    result = api.result(run, "verify")
    assert result["tables"]["dagshop.orders"]["equal"] is False
    assert result["tables"]["dagshop.items"]["equal"] is True
    [alert] = airflow_site.told
    assert (alert["dag"], alert["task"], alert["pipeline"]) == ("dags.quality", "verify", "dags")
    assert list(alert["tables"]) == ["dagshop.orders"]
    assert "rows 1000 in the source, 1001 in the lake" in alert["tables"]["dagshop.orders"]
    assert "dagshop.orders" in alert["message"]
    assert datetime.fromisoformat(alert["since"]["dagshop.orders"]) <= datetime.now(UTC)
    assert "dags.repair" in alert["next_step"]
    assert "clear" not in alert or not alert["clear"]


@pytest.mark.soak
@pytest.mark.usefixtures("checked")
def test_a_repair_mends_what_the_check_found_proves_it_and_says_all_clear(
    api: Api, airflow_site: Site, status: Status
) -> None:
    before = len(airflow_site.told)
    run = done(api, "dags.repair")
    assert api.result(run, "stage")["tables"] == {
        "dagshop.orders": {"part": "1 key that the last check found", "read": 0}
    }
    assert list(api.result(run, "verify")["tables"]) == ["dagshop.orders"]
    assert status().tables["dagshop.orders"].rows == 1000
    [clear] = airflow_site.told[before:]
    assert clear["clear"]
    assert "dagshop.orders" in clear["message"]
    nothing = states(api, ended(api, "dags.repair"))
    assert (nothing["stage"], nothing["verify"]) == ("success", "skipped")


@pytest.mark.soak
@pytest.mark.usefixtures("checked")
def test_a_backfill_of_one_table_from_its_changes(api: Api) -> None:
    keys = ['{"shop": 3, "id": 17}', "[4, 18]", ""]
    run = done(api, "dags.backfill", {"tables": ["dagshop.items"], "keys": keys})
    assert api.result(run, "stage")["tables"] == {"dagshop.items": {"part": "2 keys"}}


@pytest.mark.soak
@pytest.mark.usefixtures("checked")
def test_a_snapshot_of_one_table_mends_it(api: Api, status: Status) -> None:
    run = done(api, "dags.snapshot", {"tables": ["dagshop.orders"]})
    assert list(api.result(run, "stage")["tables"]) == ["dagshop.orders"]
    assert status().tables["dagshop.orders"].rows == 1000


@pytest.mark.soak
@pytest.mark.usefixtures("checked")
def test_an_erasure_by_its_form_leaves_nothing_of_the_row(
    api: Api, airflow_site: Site, mysql: MySQL, status: Status
) -> None:
    execute(mysql, "DELETE FROM dagshop.items WHERE shop = 3 AND id = 24")
    done(api, "dags.compaction")
    before = status().tables["dagshop.items"].rows
    run = done(api, "dags.erase", {"table": "dagshop.items", "keys": ['{"shop": 3, "id": 24}']})
    told = api.result(run, "erase")
    facts = told["tables"]["dagshop.items"]
    assert facts["keys"] == 1
    assert facts["changes"] > 0
    assert "this run's form and log have the keys" in str(told["remains"])
    assert status().tables["dagshop.items"].rows == before
    wrong = ended(api, "dags.erase", {"table": "dagshop.items", "keys": ['{"shop": "x", "id": 24}']})
    assert wrong.state == "failed"
    assert "Nothing was erased" in log_of(airflow_site.airflow, wrong, "erase")


@pytest.mark.soak
@pytest.mark.usefixtures("checked")
def test_a_table_that_is_stopped_keeps_no_other_from_being_mended_and_proven(
    api: Api, airflow_site: Site, mysql: MySQL, status: Status
) -> None:
    execute(
        mysql,
        "ALTER TABLE dagshop.orders DROP PRIMARY KEY",
        "INSERT INTO dagshop.orders VALUES (7000, 'new', 1.00)",
    )
    run = done(api, "dags.backfill", {"tables": ["dagshop.items"], "keys": ["[4, 18]"]})
    assert status().tables["dagshop.orders"].stopped
    assert states(api, run)["compact"] == "success"
    assert api.result(run, "verify")["tables"]["dagshop.items"]["equal"] is True
    assert ended(api, "dags.compaction").state == "failed"
    snapshot = ended(api, "dags.snapshot")
    assert states(api, snapshot) == {
        "all_staged": "failed", **dict.fromkeys(("stage", "streamed", "compact", "applied"), "success")
    }  # fmt: skip
    assert list(api.result(snapshot, "stage")["tables"]) == ["dagshop.items"]
    log = log_of(airflow_site.airflow, snapshot, "all_staged")
    assert "dagshop.orders was left out: dagshop.orders has no primary key" in log


@pytest.fixture(scope="module")
def clock(mysql: MySQL, airflow_site: Site, api: Api) -> Iterator[Callable[[], LakeStatus | None]]:
    """The status of the lake that is compacted each minute, of which nothing else runs."""
    site, file = airflow_site, airflow_site.pipelines / "clock.yaml"
    home, settings = site.airflow.home / "clock", site.airflow.settings
    streamer = StreamerService(home, file, site.clock_port, settings)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEADRACE_MYSQL_PASSWORD", mysql.password)
        try:
            streamer.start()
            execute(mysql, "INSERT INTO clockshop.orders VALUES (1, 'new', 1.00), (2, 'new', 2.00)")
            api.pause("clock.compaction", False)
            yield lambda: read(load(file))
        finally:
            api.pause("clock.compaction", True)
            streamer.stop()


def test_a_schedule_compacts_what_came(api: Api, clock: Callable[[], LakeStatus | None]) -> None:
    found = until(lambda: (status := clock()) and status.tables.get("clockshop.orders"))
    assert (found.changes, found.stopped) == (2, None)
    [*_, run] = api.runs("clock.compaction", 0)
    assert run.id.startswith("scheduled__")


@pytest.mark.soak
def test_a_table_that_became_stale_is_read_again_by_the_schedule_alone(
    api: Api, airflow_site: Site, mysql: MySQL, clock: Callable[[], LakeStatus | None]
) -> None:
    done(api, "clock.snapshot")
    execute(
        mysql,
        "ALTER TABLE clockshop.orders ADD COLUMN note INT NOT NULL DEFAULT 5",
        "UPDATE clockshop.orders SET amount = 3.00 WHERE id = 2",
    )
    began = time.time()
    [run] = until(lambda: api.runs("clock.snapshot", began))
    assert run.id.startswith("stale__")
    end_of(api, run)
    assert states(api, run) == dict.fromkeys(("stage", "all_staged", "applied"), "success")
    status = clock()
    assert status is not None
    table = status.tables["clockshop.orders"]
    assert (table.rows, table.stale) == (2, None)
    lake = airflow_site.lake / "clock" / "clockshop" / "orders"
    rows = pl.scan_delta(str(lake)).select("id", "amount", "note").sort("id").collect().rows()
    assert rows == [(1, Decimal("1.00"), 5), (2, Decimal("3.00"), 5)]


def until(look: Callable[[], Any], seconds: float = 600.0) -> Any:
    """What is there at last."""
    deadline = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < deadline, f"nothing within {seconds:.0f} s"
        time.sleep(1)
    return found
