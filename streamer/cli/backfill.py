"""`headrace backfill`: becomes the Spark job, as whose process it goes on."""

from __future__ import annotations

from typing import Annotated

import typer

from streamer.cli.console import File, explained
from streamer.cli.repair import High, Keys, Low, Master, begin

EXAMPLE = """Examples: [cyan]headrace backfill shop.yaml shop.orders[/],
[cyan]headrace backfill shop.yaml shop.orders --source kafka --since 2026-11-22T10:00:00Z[/]"""


def backfill(
    pipeline: File,
    tables: Annotated[list[str], typer.Argument(help="DB.TABLE")],
    source: Annotated[str, typer.Option(help="where the rows come from: changes, kafka, mysql")] = "changes",
    keys: Keys = "",
    low: Low = "",
    high: High = "",
    since: Annotated[str, typer.Option(help="rows that changed at this time or later, such as 2026-11-22T10:42Z")] = "",
    until: Annotated[str, typer.Option(help="and before this time")] = "",
    master: Master = "local[*]",
) -> None:
    """Make tables, or of one table keys, a range of keys, or what changed in some time, anew.

    The rows come from the lake's own history, from Kafka or from MySQL, and are the same whichever it is. They are
    staged: the next compaction puts them in place of those in the lake. The backfill DAG does that, and proves the
    tables, too. The result is a line of JSON behind "headrace-result: ".
    """
    with explained():
        given = {"tables": ",".join(tables), "source": source, "keys": keys, "from": low, "to": high}
        begin("backfill", master, pipeline, given | {"since": since, "until": until})
