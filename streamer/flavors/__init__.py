"""What differs between MySQL and MariaDB, each in one place: asked once, by `flavor(source)`."""

from __future__ import annotations

from contract.pipeline import Source
from streamer.flavors.mariadb import MariaDB
from streamer.flavors.mysql import MySQL
from streamer.flavors.port import Flavor

FLAVORS: dict[str, Flavor] = {"mysql": MySQL(), "mariadb": MariaDB()}


def flavor(source: Source) -> Flavor:
    return FLAVORS[source.flavor]
