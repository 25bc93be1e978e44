"""A real MySQL server, set as the streamer needs it: row format, full images and names, GTIDs, UTC."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import NamedTuple

from stack import debian, versions
from stack.database import USER, Database, as_options, as_root
from stack.errors import StackError
from stack.fetch import facts, install
from stack.ports import HOST

__all__ = ["GTIDS", "USER", "MySQL"]
GTIDS = ("gtid_mode=ON", "enforce_gtid_consistency=ON", "mysqlx=OFF")


class MySQL(Database):
    """The newest MySQL: the machine's own, else Debian's."""

    name = "mysql"
    title = "MySQL"
    port_option = "--mysql-port"
    settings = (*GTIDS, "innodb_redo_log_capacity=256M")
    made = "auto.cnf"

    def program(self) -> list[str]:
        return mysqld()

    def version(self) -> str:
        own = own_mysqld()
        return str(own) if own else facts(server_folder()).get("mysql-server-core", "")

    def making(self) -> list[str]:
        return [*self.program(), "--initialize-insecure", f"--datadir={self.data}", *as_options(self.options)]


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
    if own is not None:
        return [str(own), "--no-defaults", *as_root()]
    share = server_folder() / "usr" / "share" / "mysql"
    return [
        *client("mysqld", "sbin"),
        "--no-defaults",
        *as_root(),
        f"--basedir={server_folder() / 'usr'}",
        f"--lc-messages-dir={share}",
        f"--character-sets-dir={share / 'charsets'}",
        f"--plugin-dir={server_folder() / 'usr' / 'lib' / 'mysql' / 'plugin'}",
    ]


def client(program: str, folder: str = "bin") -> list[str]:
    """The command line of a program of the packages (mysql, mysqlbinlog, mysqldump, mysqlslap)."""
    return [*debian.loader(server_folder()), str(server_folder() / "usr" / folder / program)]


class Asking(NamedTuple):
    """A client's command line, and the variables that it needs: a password is in no command line."""

    words: list[str]
    variables: dict[str, str]


def asking(server: MySQL) -> Asking:
    """The client as root at a server that is up, of the machine's own or of the packages, as the server is. Raises
    StackError."""
    running = server.running()
    if running is None:
        raise StackError(f"no MySQL is up in {server.home}", "Start it with: .venv/bin/python -m stack up mysql")
    program = client("mysql") if own_mysqld() is None else [shutil.which("mysql") or ""]
    if not program[0]:
        raise StackError("there is no program mysql on PATH", "Install the client of the server that is there.")
    # By itself the client goes by the locale, which may be none.
    words = [*program, "--no-defaults", f"--host={HOST}", f"--port={running.port}", "--user=root"]
    return Asking([*words, "--default-character-set=utf8mb4"], {"MYSQL_PWD": server.root_password})
