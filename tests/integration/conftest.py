"""Real servers for the tests: on free ports, with data in a temporary folder, stopped at the end.

`mysql`, `mysql80`, `mariadb` and `kafka` are shared by the session, and started when the first test asks for them: a
test makes a database or topics of its own in them. A test that asks for `server` runs on each of SERVERS;
`lacks("mysql80", reason)` marks one on which it does not, `soak_on("mysql80")` one where it does in `make soaks` alone.
A test that kills a server, or needs one set otherwise, makes its own by `mysql_server(...)` or
`kafka_server(...)`; these stop with the test.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from stack.database import Database
from stack.kafka import SHORT_LIVED, Kafka
from stack.mariadb import MariaDB
from stack.maven import spark_jars as fetch_spark_jars
from stack.mysql import MySQL
from stack.mysql80 import MySQL80
from stack.ports import free_port
from stack.spark_classes import spark_classes
from tests.integration.airflow_site import airflow_site, webhook  # noqa: F401  fixtures
from tests.integration.decoding import streams  # noqa: F401  a fixture
from tests.integration.few_keys import writing  # noqa: F401  a fixture
from tests.integration.streaming import make  # noqa: F401  a fixture
from tests.integration.without_kafka import no_kafka  # noqa: F401  a fixture

# Tests know their servers' passwords from the servers themselves.
os.environ.pop("HEADRACE_MYSQL_PASSWORD", None)

MySQLServer = Callable[..., MySQL]
KafkaServer = Callable[..., Kafka]
Another = Callable[..., Database]
FreshData = Callable[[type[Database]], Path]
SERVERS = ("mysql", "mysql80", "mariadb")
# Behind a kill a broker is not let in again before the controller has given up the one before: else 9 seconds.
SOON_BACK = {"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "500"}


@pytest.hookimpl(tryfirst=True)  # the marks are chosen by behind it
def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.integration)
            skip_what_is_lacking(item)
            leave_to_soaks(item)


def skip_what_is_lacking(item: pytest.Item) -> None:
    """A test marked `lacks(server, reason)` is not run on that server."""
    here = getattr(item, "callspec", None)
    for mark in item.iter_markers("lacks"):
        name, reason = mark.args
        if here is not None and here.params.get("server") == name:
            item.add_marker(pytest.mark.skip(reason=f"{name}: {reason}"))


def leave_to_soaks(item: pytest.Item) -> None:
    """A test marked `soak_on(server, ...)` runs on those servers in `make soaks` alone: it is a long one, and each
    run of all tests has it on another server."""
    here = getattr(item, "callspec", None)
    if here and any(here.params.get("server") in mark.args for mark in item.iter_markers("soak_on")):
        item.add_marker(pytest.mark.soak)


@pytest.fixture
def without_expectations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checks of the test compare rows alone: the expectations take as long, and have tests of their own."""
    monkeypatch.setattr("spark.jobs.verify._expectations", lambda *_: {})


@pytest.fixture(scope="session")
def mysql(tmp_path_factory: pytest.TempPathFactory, fresh_data: FreshData) -> Iterator[MySQL]:
    """The session's MySQL; `mysql.connect()` is root, `mysql.password` the streamer's user headrace's."""
    server = MySQL(tmp_path_factory.mktemp("mysql"), free_port())
    copy_fresh_data(server, fresh_data)
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def mysql80(tmp_path_factory: pytest.TempPathFactory, fresh_data: FreshData) -> Iterator[MySQL80]:
    server = MySQL80(tmp_path_factory.mktemp("mysql80"), free_port())
    copy_fresh_data(server, fresh_data)
    server.start()
    yield server
    server.kill()  # its data is nobody's any more, and its stop takes long


@pytest.fixture(scope="session")
def mariadb(tmp_path_factory: pytest.TempPathFactory, fresh_data: FreshData) -> Iterator[MariaDB]:
    server = MariaDB(tmp_path_factory.mktemp("mariadb"), free_port())
    copy_fresh_data(server, fresh_data)
    server.start()
    yield server
    server.kill()  # its data is nobody's any more, and its stop takes long


@pytest.fixture(params=SERVERS)
def server(request: pytest.FixtureRequest) -> Database:
    """Each database in turn."""
    found: Database = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="session")
def fresh_data(tmp_path_factory: pytest.TempPathFactory) -> FreshData:
    """A new data folder of a kind of database, made once a session: that takes seconds, to copy it a moment."""
    made: dict[type[Database], Path] = {}

    def of(kind: type[Database]) -> Path:
        if kind not in made:
            database = kind(tmp_path_factory.mktemp("fresh"), free_port())
            database.make_data()
            made[kind] = database.data
        return made[kind]

    return of


def copy_fresh_data(database: Database, fresh_data: FreshData) -> None:
    shutil.copytree(fresh_data(type(database)), database.data)
    identity = database.data / "auto.cnf"
    if identity.exists():  # two servers of one identity could not replicate
        identity.write_text(f"[auto]\nserver-uuid={uuid.uuid4()}\n")


def discard(server: Database | Kafka) -> None:
    """Ends a test's own server. Its log stays; a run's hundred data folders would take 30 GB of the disk."""
    server.kill()
    shutil.rmtree(server.data, ignore_errors=True)


@pytest.fixture
def another(server: Database, tmp_path_factory: pytest.TempPathFactory, fresh_data: FreshData) -> Iterator[Another]:
    """Starts a database of the test's own, of the kind of `server`."""
    with ExitStack() as running:

        def start(options: Sequence[str] = (), server_id: int = 1) -> Database:
            own = type(server)(tmp_path_factory.mktemp("another"), free_port(), server_id, options)
            copy_fresh_data(own, fresh_data)
            running.callback(discard, own)
            own.start()
            return own

        yield start


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """The session's broker; `kafka.address` is its bootstrap."""
    server = Kafka(tmp_path_factory.mktemp("kafka"), free_port(), free_port(), java_options=SHORT_LIVED)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def mysql_server(tmp_path_factory: pytest.TempPathFactory, fresh_data: FreshData) -> Iterator[MySQLServer]:
    """Starts a MySQL of the test's own: `mysql_server(options=["binlog_format=STATEMENT"], server_id=2)`."""
    with ExitStack() as running:

        def start(options: Sequence[str] = (), server_id: int = 1) -> MySQL:
            server = MySQL(tmp_path_factory.mktemp("own-mysql"), free_port(), server_id, options)
            copy_fresh_data(server, fresh_data)
            running.callback(discard, server)
            server.start()
            return server

        yield start


@pytest.fixture
def kafka_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServer]:
    """Starts a broker of the test's own: `kafka_server({"message.max.bytes": "2000"})`."""
    with ExitStack() as running:

        def start(options: Mapping[str, str] | None = None) -> Kafka:
            home = tmp_path_factory.mktemp("own-kafka")
            chosen = {**SOON_BACK, **(options or {})}
            server = Kafka(home, free_port(), free_port(), chosen, java_options=SHORT_LIVED)
            running.callback(discard, server)
            server.start()
            return server

        yield start


@pytest.fixture(scope="session")
def spark_jars() -> list[Path]:
    """The jars for `--jars` of spark-submit, with Spark's classes kept for quicker starts."""
    spark_classes()
    return fetch_spark_jars()
