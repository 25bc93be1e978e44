"""Two real servers, the second a replica of the first by GTID."""

from __future__ import annotations

import time

from contract.gtid import GtidSet
from stack.database import Database
from tests.integration.decoding import executed, run

USER = "replica"
PASSWORD = "replica-password"  # of a server on this machine that lives as long as its test


def options(flavor: str) -> list[str]:
    return ["log_slave_updates=ON", "gtid_strict_mode=ON"] if flavor == "mariadb" else []


def replicate(first: Database, second: Database) -> None:
    """Makes `second` a replica of `first`, from the beginning."""
    run(
        first,
        f"CREATE USER {USER} IDENTIFIED BY '{PASSWORD}'",
        f"GRANT REPLICATION SLAVE ON *.* TO {USER}",
    )
    word = _source(second)
    how = f"{word}_HOST='127.0.0.1', {word}_PORT={first.port}, {word}_USER='{USER}', {word}_PASSWORD='{PASSWORD}', "
    if first.flavor == "mariadb":
        how += "MASTER_USE_GTID=slave_pos, MASTER_SSL=0"
        run(second, "SET GLOBAL gtid_slave_pos = ''")
    else:
        how += f"{word}_AUTO_POSITION=1, GET_{word}_PUBLIC_KEY=1"
    _change(second, how)
    run(second, f"START {replica(second)}")
    caught_up(second, executed(first))


def promote(second: Database) -> None:
    """It no longer waits for the first, and has done all that it was given."""
    run(second, f"STOP {replica(second)}")


def delay(second: Database, seconds: int) -> None:
    """From now on it does what the first does so much later."""
    run(second, f"STOP {replica(second)}")
    _change(second, f"{_source(second)}_DELAY={seconds}")
    run(second, f"START {replica(second)}")


def replica(server: Database) -> str:
    """The server's word for it: MySQL has the newer ones since 8.0.22, and its newest releases have no others."""
    return "REPLICA" if server.name == "mysql" else "SLAVE"


def _source(server: Database) -> str:
    return "SOURCE" if server.name == "mysql" else "MASTER"


def _change(second: Database, how: str) -> None:
    run(second, f"CHANGE {'REPLICATION SOURCE' if _source(second) == 'SOURCE' else 'MASTER'} TO {how}")


def caught_up(second: Database, end: GtidSet) -> None:
    until = time.monotonic() + 30
    while not executed(second).issuperset(end):
        assert time.monotonic() < until, "the replica does not come along"
        time.sleep(0.05)
