"""`headrace backfill`: becomes the Spark job, as whose process it goes on."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from contract.asker import asker
from contract.chosen_rows import refuse_backfill
from streamer.cli.console import File, explained
from streamer.cli.repair import High, Keys, Low
from streamer.cli.spark_driver import LOCAL, NEEDS, Compact, Master, become, told_before_spark, yes

EXAMPLE = f"""Examples: [cyan]headrace backfill shop.yaml shop.orders[/],
[cyan]headrace backfill shop.yaml shop.orders --source kafka --since 2026-11-22T10:00:00Z[/]{NEEDS}"""


def backfill(
    pipeline: File,
    tables: Annotated[list[str], typer.Argument(help="DB.TABLE")],
    source: Annotated[Literal["changes", "kafka", "mysql"], typer.Option(help="where the rows come from")] = "changes",
    keys: Keys = "",
    low: Low = "",
    high: High = "",
    since: Annotated[str, typer.Option(help="rows that changed at this time or later, such as 2026-11-22T10:42Z")] = "",
    until: Annotated[str, typer.Option(help="and before this time")] = "",
    compact: Compact = False,
    master: Master = LOCAL,
) -> None:
    """Make tables, or of one table keys, a range of keys, or what changed in some time, anew.

    The rows come from the lake's own history, from Kafka or from MySQL, and are the same whichever it is. They are
    staged: the next compaction (headrace compact, or with --compact this command itself) puts them in place of those
    in the lake. Then check (headrace verify); the backfill DAG does all three. In a pipe the result is a line of JSON
    behind "headrace-result: ".
    """
    with explained():
        given = {"tables": ",".join(tables), "source": source, "keys": keys, "from": low, "to": high}
        given |= {"since": since, "until": until}
        with told_before_spark("TABLES"):
            refuse_backfill(given, tables)
        given |= {"by": asker(), "compact": yes(compact)}
        become("backfill", master, pipeline, given, of=tables, given_as="TABLES")
