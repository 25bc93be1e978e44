"""The verification job: count and checksum of every table, MySQL's against the lake's, while writes go on."""

from __future__ import annotations

import importlib
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from pyspark import inheritable_thread_target
from pyspark.sql import SparkSession

from contract.pipeline import Pipeline
from quality.report import differences
from spark.errors import LakeError
from spark.job import JobFailedError, run
from spark.kafka import Broker
from spark.lake import Lake
from spark.schema import Schemas
from spark.snapshot import chosen
from spark.streamed import streamed
from spark.transformed import refuse_other_rules
from spark.verification import Answer, Verification, incomparable, result

THREADS = 4  # tables compared side by side


def verify(spark: SparkSession, pipeline: Pipeline, tables: list[str]) -> dict[str, Any]:
    """Verifies the named tables, or all. Raises LakeError, JobFailedError where a table differs or an
    expectation does not hold."""
    began, broker, lake = time.time(), Broker(pipeline), Lake(spark, pipeline)
    # Great Expectations takes seconds to import; nothing before the answers needs it.
    threading.Thread(target=importlib.import_module, args=("quality.suite",), daemon=True).start()
    low = broker.checkpoint()
    if low is None:
        raise LakeError(f"the commit log of {pipeline.name} is empty: start the streamer, then verify again")
    with streamed(pipeline, low) as source:
        refuse_other_rules(source.pipeline, low)
        check = Verification(spark, source.pipeline, lake, source, low, _tell)
        wanted = chosen(pipeline, source, tables)
        results = {f"{db}.{t}": facts for db, t in wanted if (facts := incomparable(pipeline, db, t))}
        answers = check.ask([(db, table) for db, table in wanted if f"{db}.{table}" not in results])
        executed = source.executed()
    for name, facts in results.items():
        _tell(f"{name}: {facts['reason']}")
    if not answers:
        return {"tables": results, "expectations": {}, "seconds": round(time.time() - began, 1)}
    status = check.wait(answers, executed, pipeline.quality.wait_seconds)
    schemas = Schemas(broker.schemas())

    def compare(answer: Answer) -> None:
        results[answer.name] = result(answer, check.compare(answer, status, schemas), low)
        _tell(_line(answer.name, results[answer.name]))

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(inheritable_thread_target(spark)(compare), answers))
    expectations = _expectations(check, pipeline, answers, results)
    facts = {"tables": results, "expectations": expectations, "seconds": round(time.time() - began, 1)}
    lake.write(lake.at("_quality", f"{int(began * 1000)}.json"), facts)
    if wrong := differences(facts):
        told = " | ".join(f"{name}: {text}" for name, text in wrong.items())
        raise JobFailedError(f"{len(wrong)} of {len(results)} table(s) are not as the source: {told}", facts)
    return facts


def _expectations(
    check: Verification, pipeline: Pipeline, answers: list[Answer], results: dict[str, dict[str, Any]]
) -> dict[str, Any]:
    """The expectation suites over the very versions that were verified."""
    from quality import suite  # begun beside MySQL's reads

    schemas = {answer.name: answer.schema for answer in answers if answer.name in check.frames}
    return suite.run(check.spark, pipeline, results, schemas=schemas, frames=check.frames)


def _line(name: str, facts: dict[str, Any]) -> str:
    word = "equal" if facts["equal"] else "DIFFERENT"
    counts = f"{facts['source_count']:,} rows in the source, {facts['lake_count']:,} in the lake"
    return f"{name}: {word}, {counts}, checksums {facts['source_checksum']} and {facts['lake_checksum']}"


def _tell(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    run("verify", verify)
