"""The streamer over MariaDB: from its binlog to Kafka, with kills and cut connections between."""

from __future__ import annotations

import json

from stack.kafka import Kafka
from stack.mariadb import MariaDB
from stack.mysql import MySQL
from tests.integration.decoding import executed
from tests.integration.streaming import Make, arrived, execute, fails, insert, kill_dumps
from tests.integration.topic_records import once, records


def test_changes_arrive_once_in_order_over_kills_and_cuts(make: Make, mariadb: MariaDB, kafka: Kafka) -> None:
    streamer = make("maria", mysql=mariadb)
    checked = streamer.command("check")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "MariaDB 11.4" in checked.stdout
    streamer.started()
    insert(mariadb, "maria", 0, 3000)
    streamer.kill()
    insert(mariadb, "maria", 3000, 3000)
    execute(mariadb, "UPDATE maria.t SET v = v + 1 WHERE id < 10", "ALTER TABLE maria.t ADD COLUMN w INT DEFAULT 7")
    streamer.started()
    with mariadb.connect() as connection, connection.cursor() as cursor:
        kill_dumps(cursor, "headrace")
    execute(mariadb, "FLUSH BINARY LOGS", "DELETE FROM maria.t WHERE id = 5")
    insert_wide = "INSERT INTO maria.t VALUES (9000, 1, 'é', 8)"
    execute(mariadb, insert_wide)
    status = streamer.wait_until_released()
    assert streamer.stop() == 0

    assert status["source"]["reconnects"] >= 1
    assert status["checkpoint"]["gtid_set"] == str(executed(mariadb))
    found = once(records(kafka, "maria.maria.t"))
    operations = [record.value["op"] for record in found]
    assert (operations.count("c"), operations.count("u"), operations.count("d")) == (6001, 10, 1)
    [last] = [record for record in found if record.key == {"id": 9000}]
    assert last.value["after"] == {"id": 9000, "v": 1, "name": "é", "w": 8}
    assert last.value["source"]["connector"] == "mariadb"
    assert last.value["source"]["gtid"] in str(executed(mariadb)).split(",")


def test_a_start_is_a_position_of_mariadb_and_none_of_mysql(make: Make, mariadb: MariaDB, kafka: Kafka) -> None:
    begin = str(executed(mariadb))
    first = make("mariafirst", mysql=mariadb, start=f'"{begin}"')
    insert(mariadb, "mariafirst", 0, 5)
    first.started()
    first.wait_until_released()
    assert first.stop() == 0
    assert arrived(kafka, "mariafirst") == [0, 1, 2, 3, 4]
    fails(make("mariaother", mysql=mariadb, start="11111111-1111-1111-1111-111111111111:1-5"), "is no GTID", status=2)


def test_a_file_that_says_mysql_is_told_what_to_write(make: Make, mariadb: MariaDB) -> None:
    fails(make("mariawrong", mysql=mariadb, flavor="mysql"), "the server is 11.4", "Write flavor: mariadb")


def test_the_name_of_a_pipeline_of_the_other_flavor_is_refused_and_its_streamer_goes_on(
    make: Make, mysql: MySQL, mariadb: MariaDB
) -> None:
    """It ended in a traceback, and had shut the other pipeline's streamer out by then."""
    for name, first, second in (("namedmysql", mysql, mariadb), ("namedmaria", mariadb, mysql)):
        healthy = make(name, mysql=first).started()
        insert(first, name, 0, 5)
        healthy.wait_until_released()
        healthy.file = healthy.file.rename(healthy.file.with_suffix(".first"))
        wrong = make(name, mysql=second)
        wrong.log_path = wrong.log_path.with_suffix(".wrong")
        fails(
            wrong, "of another flavor", f"the name {name} is another pipeline's", "Choose another name", "wrong_server"
        )
        checked = wrong.command("check", "--json")
        assert checked.returncode == 1, checked.stdout + checked.stderr
        told = [one for one in json.loads(checked.stdout) if one["level"] == "error"]
        assert [one["subject"] for one in told] == ["checkpoint"]
        assert "of another flavor" in told[0]["text"]
        insert(first, name, 5, 5)
        healthy.wait_until_released()
        assert healthy.stop() == 0, healthy.log()
        assert "fenced" not in healthy.log()
