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
    word = "MASTER" if first.flavor == "mariadb" else "SOURCE"
    address = f"{word}_HOST='127.0.0.1', {word}_PORT={first.port}, {word}_USER='{USER}', {word}_PASSWORD='{PASSWORD}'"
    if first.flavor == "mariadb":
        how = f"CHANGE MASTER TO {address}, MASTER_USE_GTID=slave_pos, MASTER_SSL=0"
        run(second, "SET GLOBAL gtid_slave_pos = ''", how, "START SLAVE")
    else:
        how = f"CHANGE REPLICATION SOURCE TO {address}, SOURCE_AUTO_POSITION=1, GET_SOURCE_PUBLIC_KEY=1"
        run(second, how, "START REPLICA")
    caught_up(second, executed(first))


def promote(second: Database) -> None:
    """It no longer waits for the first, and has done all that it was given."""
    run(second, "STOP SLAVE" if second.flavor == "mariadb" else "STOP REPLICA")


def caught_up(second: Database, end: GtidSet) -> None:
    until = time.monotonic() + 30
    while not executed(second).issuperset(end):
        assert time.monotonic() < until, "the replica does not come along"
        time.sleep(0.05)
