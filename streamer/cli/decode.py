"""`headrace decode`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from streamer.cli.console import Patterns, err, explained, table_patterns

EXAMPLE = "Example: [cyan]headrace decode binlog.000012 --table 'shop.*' | jq 'select(.op == \"d\")'[/]"


def decode(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="a binlog file, such as /var/lib/mysql/binlog.000012")],
    table: Patterns = None,
) -> None:
    """Print a binlog file as JSON lines: changes as their records have them, statements, ends of transactions.

    With --table, of these tables alone, with the ends of those transactions that have something of them.

    No server is asked. What the file does not tell, or what is broken in it, ends the output with an error and status
    1; all lines before it are right.
    """
    from streamer.binlog_file import BinlogFile

    found = BinlogFile(file, table_patterns(table))
    write = sys.stdout.buffer.write
    with explained():
        try:
            for line in found.lines():
                write(line + b"\n")
        finally:
            sys.stdout.buffer.flush()
    if found.open_xa:
        err.print(f"{found.open_xa} XA transactions are prepared and do not end in this file: their rows are left out")
