"""A real MySQL server, set as the streamer needs it: row format, full images and names, GTIDs, UTC."""

from __future__ import annotations

import logging
import os
import secrets
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pymysql

from stack import debian, versions
from stack.errors import StackError
from stack.fetch import facts, install
from stack.ports import HOST
from stack.process import Server

log = logging.getLogger("stack")
USER = "headrace"
GRANTS = "SELECT, REPLICATION SLAVE, REPLICATION CLIENT"
SETTINGS = (
    "gtid_mode=ON",
    "enforce_gtid_consistency=ON",
    "binlog_format=ROW",
    "binlog_row_image=FULL",
    "binlog_row_metadata=FULL",
    "log_bin=binlog",
    "default_time_zone=+00:00",
    "character_set_server=utf8mb4",
    "innodb_buffer_pool_size=256M",
    "innodb_redo_log_capacity=256M",
    "mysqlx=OFF",
    "skip_name_resolve=ON",
    # Local data of a demo and of tests: a crash of the machine may cost the last second, a crash of mysqld nothing.
    "innodb_flush_log_at_trx_commit=2",
    "sync_binlog=0",
)


class MySQL(Server):
    """One server with its data under `home`. `options` are further mysqld settings, `name=value`, and win."""

    name = "mysql"
    title = "MySQL"
    port_option = "--mysql-port"

    def __init__(self, home: Path | str, port: int, server_id: int = 1, options: Sequence[str] = ()) -> None:
        super().__init__(home, port)
        self.server_id = server_id
        self.options = tuple(options)

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
            *mysqld(),
            f"--datadir={self.data}",
            f"--port={self.port}",
            f"--bind-address={HOST}",
            f"--server-id={self.server_id}",
            # Relative to the data folder: an absolute path may be longer than the 107 bytes of a socket's name.
            "--socket=mysql.sock",
            "--pid-file=mysqld.pid",
            f"--secure-file-priv={self.home / 'files'}",
            f"--init-file={self._init_file}",
            *as_options(SETTINGS),
            *as_options(self.options),
        ]

    def environment(self) -> Mapping[str, str]:
        return {**os.environ, "TZ": "UTC"}

    def prepare(self) -> None:
        version = facts(server_folder()).get("mysql-server-core", "") if own_mysqld() is None else str(own_mysqld())
        log.info("mysql: %s", version)
        (self.home / "files").mkdir(exist_ok=True)
        if not (self.data / "auto.cnf").exists():
            self._initialize()
        self._write_init_file()

    def healthy(self) -> bool:
        """Whether the user headrace can log in: the init file has run then."""
        try:
            with self.connect(USER, read_timeout=5):
                return True
        except pymysql.MySQLError:
            return False

    @property
    def _init_file(self) -> Path:
        return self.home / "init.sql"

    def _initialize(self) -> None:
        shutil.rmtree(self.data, ignore_errors=True)
        with self.log_path.open("ab") as out:
            done = subprocess.run(
                [*mysqld(), "--initialize-insecure", f"--datadir={self.data}", *as_options(self.options)],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
            )
        if done.returncode:
            shutil.rmtree(self.data, ignore_errors=True)
            raise StackError(f"MySQL could not make its data folder {self.data}", log=self.log_path)

    def _write_init_file(self) -> None:
        """Users and passwords, set at each start: no moment without one, and a changed password holds."""
        lines = ["SET SESSION sql_log_bin = 0", *user("root", HOST, self.root_password, "ALL", " WITH GRANT OPTION")]
        lines += [f"ALTER USER 'root'@'localhost' IDENTIFIED BY {quoted(self.root_password)}"]
        lines += user(USER, "%", self.password, GRANTS)
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


def own_mysqld() -> Path | None:
    """The server program that the machine has: $HEADRACE_MYSQLD, or a mysqld on PATH."""
    given = os.environ.get("HEADRACE_MYSQLD")
    if given:
        if not os.access(given, os.X_OK):
            raise StackError(f"HEADRACE_MYSQLD names {given}, which cannot be run", "Name the program mysqld itself.")
        return Path(given)
    found = shutil.which("mysqld", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")
    return Path(found) if found else None


def server_folder() -> Path:
    """The folder of the unpacked Debian packages."""
    return install(f"mysql-{versions.MYSQL_SERIES}", debian.unpack)


def mysqld() -> list[str]:
    """The start of mysqld's command line: program and the folders that belong to it."""
    own = own_mysqld()
    as_root = ["--user=root"] if os.geteuid() == 0 else []
    if own is not None:
        return [str(own), "--no-defaults", *as_root]
    share = server_folder() / "usr" / "share" / "mysql"
    return [
        *client("mysqld", "sbin"),
        "--no-defaults",
        *as_root,
        f"--basedir={server_folder() / 'usr'}",
        f"--lc-messages-dir={share}",
        f"--character-sets-dir={share / 'charsets'}",
        f"--plugin-dir={server_folder() / 'usr' / 'lib' / 'mysql' / 'plugin'}",
    ]


def client(program: str, folder: str = "bin") -> list[str]:
    """The command line of a program of the packages (mysql, mysqlbinlog, mysqldump, mysqlslap).

    Through the packages' own loader, since they are newer than the machine's C library may be.
    """
    root = server_folder()
    libraries = sorted({str(path.parent) for path in root.glob("usr/lib/*-linux-gnu*/libc.so.6")})
    loader = next(iter(sorted(root.glob("usr/lib*/ld-linux*.so.*"))), None)
    if loader is None or not libraries:
        raise StackError(f"the packages in {root} hold no C library", f"Remove {root} and start again.")
    paths = [*libraries, *(path.replace("/usr/lib/", "/lib/") for path in libraries)]
    return [str(loader), "--library-path", ":".join(paths), str(root / "usr" / folder / program)]
