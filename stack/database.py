"""What the local database servers have in common: users, passwords, and how one is made, started and asked."""

from __future__ import annotations

import abc
import logging
import os
import secrets
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import pymysql

from stack.errors import StackError
from stack.ports import HOST
from stack.process import Server

log = logging.getLogger("stack")
USER = "headrace"
GRANTS = "SELECT, REPLICATION SLAVE, REPLICATION CLIENT"
# What every stream needs of its source, and what makes a value the same wherever the server runs.
SETTINGS = (
    "binlog_format=ROW",
    "binlog_row_image=FULL",
    "binlog_row_metadata=FULL",
    "log_bin=binlog",
    "default_time_zone=+00:00",
    "character_set_server=utf8mb4",
    "innodb_buffer_pool_size=256M",
    "skip_name_resolve=ON",
    # Local data of a demo and of tests: a crash of the machine may cost the last second, a crash of mysqld nothing.
    "innodb_flush_log_at_trx_commit=2",
    "sync_binlog=0",
)


class Database(Server):
    """One server with its data under `home`. `options` are further settings of it, `name=value`, and win.

    A subclass gives the server's own settings, its program, its version, and how its data folder is made.
    """

    settings: ClassVar[tuple[str, ...]] = ()
    flavor: ClassVar[Literal["mysql", "mariadb"]] = "mysql"  # as a pipeline file calls it
    grants: ClassVar[str] = GRANTS
    made: ClassVar[str]  # a file of the data folder that is there once the folder is made

    def __init__(self, home: Path | str, port: int, server_id: int = 1, options: Sequence[str] = ()) -> None:
        super().__init__(home, port)
        self.server_id = server_id
        self.options = tuple(options)

    # What a subclass says
    @abc.abstractmethod
    def program(self) -> list[str]:
        """The start of the command line: program and the folders that belong to it."""

    @abc.abstractmethod
    def version(self) -> str: ...

    @abc.abstractmethod
    def making(self) -> list[str]:
        """The command that makes the data folder."""

    # What everyone calls
    @property
    def data(self) -> Path:
        return self.home / "data"

    @property
    def password(self) -> str:
        """The password of the user headrace: $HEADRACE_MYSQL_PASSWORD, else one made and kept with mode 600."""
        return os.environ.get("HEADRACE_MYSQL_PASSWORD") or secret(self.home / "headrace.password")

    @property
    def root_password(self) -> str:
        return secret(self.home / "root.password")

    def connect(self, user: str = "root", database: str | None = None, **settings: Any) -> pymysql.Connection[Any]:
        """A connection as root (or as headrace), in autocommit and UTC. `settings` go to pymysql.connect."""
        password = self.password if user == USER else self.root_password
        defaults: dict[str, Any] = {"autocommit": True, "connect_timeout": 5, "charset": "utf8mb4"}
        return pymysql.connect(
            host=HOST, port=self.port, user=user, password=password, database=database, **{**defaults, **settings}
        )

    def command(self) -> Sequence[str]:
        return [
            *self.program(),
            f"--datadir={self.data}",
            f"--port={self.port}",
            f"--bind-address={HOST}",
            f"--server-id={self.server_id}",
            # Relative to the data folder: an absolute path may be longer than the 107 bytes of a socket's name.
            "--socket=mysql.sock",
            "--pid-file=mysqld.pid",
            f"--secure-file-priv={self.home / 'files'}",
            # Of its own: MariaDB clears its folder at the start, of other servers' files too.
            f"--tmpdir={self.home / 'tmp'}",
            f"--init-file={self._init_file}",
            *as_options((*SETTINGS, *self.settings, *self.options)),
        ]

    def environment(self) -> Mapping[str, str]:
        return {**os.environ, "TZ": "UTC"}

    def prepare(self) -> None:
        log.info("%s: %s", self.name, self.version())
        self._make_folders()
        if not (self.data / self.made).exists():
            self.make_data()
        self._write_init_file()

    def healthy(self) -> bool:
        """Whether the user headrace can log in: the init file has run then."""
        try:
            with self.connect(USER, read_timeout=5):
                return True
        except pymysql.MySQLError:
            return False

    def make_data(self) -> None:
        """A new, empty data folder, which `start` makes where there is none."""
        shutil.rmtree(self.data, ignore_errors=True)
        self._make_folders()
        with self.log_path.open("ab") as out:
            done = subprocess.run(
                self.making(), env=self.environment(), stdin=subprocess.DEVNULL, stdout=out, stderr=out
            )
        if done.returncode:
            shutil.rmtree(self.data, ignore_errors=True)
            raise StackError(f"{self.title} could not make its data folder {self.data}", log=self.log_path)

    def _make_folders(self) -> None:
        for folder in ("files", "tmp"):
            (self.home / folder).mkdir(parents=True, exist_ok=True)

    @property
    def _init_file(self) -> Path:
        return self.home / "init.sql"

    def _write_init_file(self) -> None:
        """Users and passwords, set at each start: no moment without one, and a changed password holds."""
        lines = ["SET SESSION sql_log_bin = 0", *user("root", HOST, self.root_password, "ALL", " WITH GRANT OPTION")]
        lines += [f"ALTER USER 'root'@'localhost' IDENTIFIED BY {quoted(self.root_password)}"]
        lines += user(USER, "%", self.password, self.grants)
        self._init_file.unlink(missing_ok=True)
        write_private(self._init_file, "".join(f"{line};\n" for line in lines))


def user(name: str, host: str, password: str, grants: str, suffix: str = "") -> list[str]:
    who = f"'{name}'@'{host}'"
    return [
        f"CREATE USER IF NOT EXISTS {who} IDENTIFIED BY {quoted(password)}",
        f"ALTER USER {who} IDENTIFIED BY {quoted(password)}",
        f"GRANT {grants} ON *.* TO {who}{suffix}",
    ]


def quoted(text: str) -> str:
    if "\n" in text or "\x00" in text:
        raise StackError("HEADRACE_MYSQL_PASSWORD holds a line break or a zero byte", "Choose another password.")
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def secret(path: Path) -> str:
    """The password kept in the file; made at the first call, readable by its owner alone."""
    if not path.exists():
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(path, secrets.token_urlsafe(18) + "\n")
    return path.read_text().strip()


def write_private(path: Path, text: str) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as handle:
        handle.write(text)


def as_options(settings: Sequence[str]) -> list[str]:
    return [f"--{setting.removeprefix('--')}" for setting in settings]


def as_root() -> list[str]:
    """Servers refuse to run as root by chance."""
    return ["--user=root"] if os.geteuid() == 0 else []
