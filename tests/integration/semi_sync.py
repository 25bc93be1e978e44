"""A server that awaits after the sync an acknowledgement that never comes holds a commit between binlog and engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from stack.database import Database
from tests.integration.decoding import run

OPTIONS: dict[str, Sequence[str]] = {"mysql": ["plugin_load_add=semisync_source.so"], "mariadb": []}
WORDS = {"mysql": ("source", "replica"), "mariadb": ("master", "slave")}


@contextmanager
def held(server: Database, statement: str) -> Iterator[Callable[[], None]]:
    """The statement's commit stands still, behind the binlog and before the engine, until the function is called.
    The server was started with the OPTIONS of its flavor."""
    source, replica = WORDS[server.flavor]
    name = f"GLOBAL rpl_semi_sync_{source}"
    run(server, f"SET {name}_timeout = 600000", f"SET {name}_wait_point = AFTER_SYNC",
        f"SET {name}_wait_no_{replica} = ON", f"SET {name}_enabled = ON")  # fmt: skip
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(run, server, statement)
        try:
            yield lambda: run(server, f"SET {name}_enabled = OFF")
        finally:
            run(server, f"SET {name}_enabled = OFF")
            running.result()
