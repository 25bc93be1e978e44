"""Binlog files into a real S3 server: complete ones once, the open one now and then, all of it from the store alone."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import fsspec
import pytest

from stack.database import Database
from stack.mysql import MySQL
from stack.s3 import S3
from tests.integration.archiving import Archive, on_server
from tests.integration.conftest import MySQLServer
from tests.integration.decoding import purge, run
from tests.s3_server import s3_server

BUCKET = "binlogs"
# As docs/configuration.md says: like many stores it does not know the checksums that Amazon's library adds of late.
OLDER: dict[str, Any] = {
    "config_kwargs": {"request_checksum_calculation": "when_required", "response_checksum_validation": "when_required"}
}


@pytest.fixture
def s3(tmp_path: Path) -> Iterator[S3]:
    with s3_server(tmp_path / "s3", BUCKET) as server:
        yield server


@pytest.fixture
def live(mysql_server: MySQLServer) -> MySQL:
    server = mysql_server()
    run(server, "CREATE DATABASE uploaded", "CREATE TABLE uploaded.t (id int auto_increment primary key, v longtext)")
    return server


@pytest.fixture
def archive(tmp_path: Path, live: MySQL, s3: S3) -> Iterator[Archive]:
    options = {**OLDER, "endpoint_url": s3.endpoint, "key": s3.key, "secret": "${TEST_S3_SECRET}"}
    made = Archive(
        tmp_path, live, "uploaded", target=f"s3://{BUCKET}/kept", spool=tmp_path / "spool", options=options,
        upload_seconds=1, secrets={"TEST_S3_SECRET": s3.secret},
    )  # fmt: skip
    yield made
    made.close()


def stored(s3: S3, archive: Archive) -> dict[str, str]:
    fs = fsspec.filesystem(
        "s3", **OLDER, endpoint_url=s3.endpoint, key=s3.key, secret=s3.secret, use_listings_cache=False,
        skip_instance_cache=True,
    )  # fmt: skip
    root = f"{BUCKET}/kept/{archive.folder.name}"
    found = {}
    for path in fs.ls(root, detail=False) if fs.exists(root) else []:
        with suppress(FileNotFoundError):  # an open file was completed this moment
            found[path.rpartition("/")[2]] = sha256(fs.cat_file(path)).hexdigest()
    return found


def write(server: Database, *sizes: int) -> None:
    with server.connect(database="uploaded") as connection, connection.cursor() as cursor:
        for size in sizes:
            cursor.execute("INSERT INTO t (v) VALUES (%s)", ("x" * size,))


def test_all_of_it_is_in_the_store(live: MySQL, s3: S3, archive: Archive) -> None:
    """Killed on the way; then the spool is lost, and what the server had too."""
    write(live, 10, 100_000)
    run(live, "FLUSH BINARY LOGS")
    write(live, 20_000_000)  # an upload of two parts
    archive.start()
    archive.wait_for(lambda: stored(s3, archive) == on_server(live))
    archive.kill()

    write(live, 10)
    run(live, "FLUSH BINARY LOGS")
    write(live, 10)
    archive.start()
    archive.wait_for(lambda: stored(s3, archive) == on_server(live))
    assert [path.name for path in archive.folder.iterdir()] == ["binlog.000003.part"]
    write(live, 10)
    archive.wait_until_level()
    assert archive.stop() == 0
    assert stored(s3, archive) == on_server(live), "the open file is uploaded at the end"

    shutil.rmtree(archive.root)
    purge(live, "binlog.000003")
    write(live, 10)
    run(live, "FLUSH BINARY LOGS")
    archive.once()
    found = stored(s3, archive)
    assert list(found) == ["binlog.000001", "binlog.000002", "binlog.000003", "binlog.000004.part"]
    assert on_server(live).items() <= found.items()


def test_a_store_that_goes_away_is_waited_for(live: MySQL, s3: S3, archive: Archive) -> None:
    archive.start()
    archive.wait_for(lambda: stored(s3, archive) == on_server(live))
    s3.kill()
    write(live, 10)
    run(live, "FLUSH BINARY LOGS", "FLUSH BINARY LOGS")
    archive.wait_until_level()  # the binlog is read on, into the spool
    archive.wait_for(lambda: archive.said()["uploads_waiting"] == 2, 60)
    s3.start()
    archive.wait_for(lambda: stored(s3, archive) == on_server(live), 60)
    archive.wait_for(lambda: archive.said()["uploads_waiting"] == 0)
