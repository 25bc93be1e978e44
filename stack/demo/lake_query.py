"""One question to the lake, answered by Polars from the Delta tables alone: no Spark, no MySQL."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import date
from typing import NamedTuple

import polars as pl

from contract.names import lake_table
from contract.pipeline import Pipeline
from stack.demo.dataset import DATABASE

QUESTION = "Who flew most on the replayed days, and how late did they arrive?"
AIRLINES = 5


class Answer(NamedTuple):
    """`rows`: airline, flights, mean arrival delay in minutes (None: none arrived), planes."""

    rows: list[tuple[str, int, float | None, int]]
    flights: int
    seconds: float


def ask(pipeline: Pipeline, days: Sequence[date]) -> Answer:
    began = time.monotonic()
    flights = _table(pipeline, "flights")
    flown = flights.filter(pl.date("year", "month", "day").is_in(list(days)))
    answer = (
        flown.join(_table(pipeline, "airlines"), on="carrier")
        .group_by("name")
        .agg(pl.len(), pl.col("arr_delay").mean(), pl.col("tailnum").n_unique())
        .sort("len", descending=True)
        .head(AIRLINES)
        .collect()
    )
    total = flights.select(pl.len()).collect().item()
    return Answer(answer.rows(), total, time.monotonic() - began)


def _table(pipeline: Pipeline, table: str) -> pl.LazyFrame:
    return pl.scan_delta(lake_table(pipeline, DATABASE, table))
