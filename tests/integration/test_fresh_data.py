"""Data folders made at one time, as parallel test runs and two stacks of one machine make them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from stack.mariadb import MariaDB
from stack.ports import free_port


def test_mariadb_makes_several_data_folders_at_once(tmp_path: Path) -> None:
    """Each start clears the folder for temporary tables, of other servers' too: two in one folder end each other."""
    servers = [MariaDB(tmp_path / str(n), free_port()) for n in range(6)]
    with ThreadPoolExecutor(len(servers)) as pool:
        list(pool.map(MariaDB.make_data, servers))
    assert all((server.data / server.made).exists() for server in servers)
