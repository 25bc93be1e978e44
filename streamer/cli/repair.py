"""`headrace repair`: becomes the Spark job, as whose process it goes on."""

from __future__ import annotations

from typing import Annotated

import typer

from contract.asker import asker
from contract.chosen_rows import SEVERAL, refuse_repair
from streamer.cli.console import File, explained
from streamer.cli.spark_driver import LOCAL, NEEDS, Compact, Master, become, told_before_spark, yes

EXAMPLE = f"""Examples: [cyan]headrace repair pipelines/flights.yaml[/],
[cyan]headrace repair shop.yaml --table shop.orders --from 1000 --to 1999[/]{NEEDS}"""

Table = Annotated[list[str] | None, typer.Option(metavar="DB.TABLE", help="several by several --table")]
Keys = Annotated[str, typer.Option(help=f"of one table, a JSON list: [1, 2]; of several columns {SEVERAL}")]
Low = Annotated[str, typer.Option("--from", help="the first value of the key's first column, of one table")]
High = Annotated[str, typer.Option("--to", help="the last one; both are in")]


def repair(
    pipeline: File,
    table: Table = None,
    keys: Keys = "",
    low: Low = "",
    high: High = "",
    compact: Compact = False,
    master: Master = LOCAL,
) -> None:
    """Read from the source again what the last check of each table found to differ, or what is named.

    The rows are staged: the next compaction (headrace compact, or with --compact this command itself) puts them in
    place of those in the lake. Then check again (headrace verify); the repair DAG does all three. In a pipe the result
    is a line of JSON behind "headrace-result: ".
    """
    with explained():
        given = {"tables": ",".join(table or ()), "keys": keys, "from": low, "to": high}
        with told_before_spark("--table"):
            refuse_repair(given, table or ())
        become("repair", master, pipeline, {**given, "by": asker(), "compact": yes(compact)}, of=table)
