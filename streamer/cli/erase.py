"""`headrace erase`: becomes the Spark job, as whose process it goes on."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from contract.asker import asker
from contract.erased_key import ErasedKeyError, written
from streamer.cli.console import File, explained, named
from streamer.cli.spark_driver import LOCAL, NEEDS, Master, become, told_before_spark, yes

EXAMPLE = f"""Examples: [cyan]headrace erase pipelines/flights.yaml nycflights.planes N10156[/],
[cyan]headrace erase shop.yaml shop.lines '{{"region": "eu", "n": 7}}' --now[/]{NEEDS}"""


def erase(
    pipeline: File,
    table: Annotated[str, typer.Argument(help="DB.TABLE")],
    keys: Annotated[list[str], typer.Argument(help="a key's value each, or a JSON object of its columns")],
    present: Annotated[bool, typer.Option("--present", help="even if the source has the row")] = False,
    now: Annotated[bool, typer.Option("--now", help="from all files at once: readers that have begun fail")] = False,
    master: Master = LOCAL,
) -> None:
    """Erase the rows of some keys from the pipeline's lake, with their history, as its erase DAG does.

    What is left where, and until when, stands in the result, in a pipe a line of JSON behind "headrace-result: ", and
    in the lake's table _erasures.
    """
    with explained():
        named(table, "TABLE")
        with told_before_spark("KEYS", ". Nothing was erased"):
            if not written(json.dumps(keys), table):
                raise ErasedKeyError(f"{table}: no key is given")
        flags = {"present": yes(present), "now": yes(now)}
        # A table that the file has no longer may be in the lake all the same: the job knows.
        become("erase", master, pipeline, {"tables": table, "keys": json.dumps(keys), "by": asker(), **flags})
