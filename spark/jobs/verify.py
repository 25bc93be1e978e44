"""The verification job: counts and checksums of every table, the source's against the lake's, while writes go on."""

from __future__ import annotations

import importlib
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import SparkSession

from contract.checkpoint import Checkpoint
from contract.counted import counted
from contract.pipeline import Pipeline
from contract.status import LakeStatus
from quality.report import SUITES, by_kind, differences
from spark.compaction.compacting import compaction
from spark.errors import LakeError, LakeTakenError
from spark.evolution.renames import in_lake
from spark.job import JobFailedError, run
from spark.kafka.broker import Broker
from spark.lake.lake import Lake
from spark.lake.owner import refuse_others
from spark.lake.slot import writing
from spark.proof.answer import Answer
from spark.proof.aside import Aside, aside, status_of
from spark.proof.comparing import MADE_ANEW, findings
from spark.proof.differences import Difference
from spark.proof.finding import Finding, apart, incomparable, result, unread
from spark.proof.judged import ROWS, Judging, Rules
from spark.proof.kept import keeping, leave
from spark.proof.noted import keep, shorten
from spark.proof.pinning import unopened
from spark.proof.verification import Shapes, Verification
from spark.snapshot.transformed import refuse_other_rules
from spark.source.choice import chosen
from spark.source.streamed import streamed

NOT_KEPT = "what this check found is in no table of the lake, where a repair looks for it: verify again. {}"
PATIENCE = 3600.0  # seconds that a check waits for a compaction, at its end: what it found is not to be lost


def verify(
    spark: SparkSession, pipeline: Pipeline, tables: list[str], whole: str = "", compact: str = "", anew: str = ""
) -> dict[str, Any]:
    """Verifies the named tables, or all; `whole`: also where the pipeline file asks for samples; `compact`: does itself
    what it waits for; `anew`: takes up nothing that a check before has read. Raises LakeError, JobFailedError where a
    table differs or an expectation does not hold."""
    if whole:
        pipeline = pipeline.model_copy(update={"quality": pipeline.quality.model_copy(update={"sample_percent": 100})})
    began, broker, lake = datetime.now(UTC), Broker(pipeline), Lake(spark, pipeline)
    # Great Expectations takes seconds to import; nothing before the answers needs it.
    threading.Thread(target=importlib.import_module, args=("quality.suite",), daemon=True).start()
    low = _low(pipeline, broker, lake)
    with streamed(pipeline, low) as source, keeping(lake) as keeps:
        refuse_other_rules(source.pipeline, low)
        _take_up(lake, keeps, bool(anew))
        own = compaction(spark, pipeline) if compact else None
        check = Verification(spark, source.pipeline, lake, source, low, _tell, keeps, own)
        wanted = chosen(pipeline, source, tables)
        results, shapes = _not_compared(lake, wanted), lambda: in_lake(lake, broker.schemas())
        others = [*results]
        asked = [(db, table) for db, table in wanted if f"{db}.{table}" not in results]
        judging = Judging.begun(source, asked)
        answers = check.ask(asked)
        results |= {".".join(one): unread(error, bool(tables)) for one, error in check.reading.unread.items()}
        found = _compare(check, answers, shapes, results) if answers else []
        check.status = check.status or status_of(lake)  # nothing was waited for where nothing is compared
        rules, beside = _rules(judging, check, answers), aside(check, others, shapes)
    expectations = _expectations(check, pipeline, rules, beside, results, bool(tables))
    report = _report(check, began, results, tables, expectations)
    if answers or expectations.get("tables"):
        _keep(check, began, report, answers, found)
    if wrong := differences(report):
        lost = report.setdefault("again", wrong.keys() <= check.lost)
        told = " | ".join(f"{name}: {text}" for name, text in wrong.items())
        raise JobFailedError(f"{_counted(report, wrong)}: {told}{'' if lost else _mended(pipeline, results)}", report)
    return report


def _keep(
    check: Verification, began: datetime, report: dict[str, Any], answers: Sequence[Answer], found: Sequence[Difference]
) -> None:
    """Raises LakeTakenError where another job has the lake for too long, and nothing is at fault: else what is wrong is
    told all the same."""
    try:
        with writing(check.lake, "verify", PATIENCE):  # two writers of a table on S3 could lose what one of them wrote
            keep(check, began, report, answers, found)
    except LakeTakenError as error:
        if not differences(report):
            raise
        shorten(report)
        for name in [answer.name for answer in answers] + [".".join(one) for one in check.reading.unread]:
            report["tables"][name]["clears"] = False
        report["again"] = True  # a repair would not know what was found
        report["warnings"] = [*report.get("warnings", ()), NOT_KEPT.format(error)]
        _tell(report["warnings"][-1])


def _low(pipeline: Pipeline, broker: Broker, lake: Lake) -> Checkpoint:
    """Behind which the source is read. Raises LakeError, also where the lake is another pipeline's."""
    low = broker.checkpoint()
    if low is None:
        raise LakeError(f"the commit log of {pipeline.name} is empty: start the streamer, then verify again")
    refuse_others(lake, lambda: low)
    return low


def _take_up(lake: Lake, keeps: bool, anew: bool) -> None:
    """What a check that did not end has read is left where all is to be read `anew`, and is not this one's where
    another check has it (not `keeps`)."""
    if not keeps:
        _tell("another check runs: this one reads all by itself, and what it reads is not kept")
    elif anew:
        leave(lake)


def _not_compared(lake: Lake, wanted: Sequence[tuple[str, str]]) -> dict[str, dict[str, Any]]:
    """The results of tables whose rows are not to be the source's, by the pipeline file."""
    results = {f"{db}.{t}": facts for db, t in wanted if (facts := incomparable(lake.pipeline, db, t))}
    for name, facts in results.items():
        facts["reason"] += _outdated(lake, name)
        _tell(f"{name}: {facts['reason']}")
    return results


def _report(
    check: Verification,
    began: datetime,
    results: dict[str, dict[str, Any]],
    tables: list[str],
    expectations: dict[str, Any],
) -> dict[str, Any]:
    report: dict[str, Any] = {"tables": results, "named": tables, "expectations": expectations}
    if warnings := expectations.pop("warnings", ()):
        report["warnings"] = warnings
    report["seconds"] = round(time.time() - began.timestamp(), 1)
    if check.status:
        report["lake_run"] = check.status.run  # whose tables were compared: a mark of that run, or before, was seen
    return report


def _counted(report: Mapping[str, Any], wrong: Mapping[str, str]) -> str:
    """How many tables are at fault, and whether that is the rows, or what is expected of them alone, or not known."""
    results = report["tables"]
    untold = sum(facts.get("lake_count", 0) is None and facts["equal"] is False for facts in results.values())
    unequal = sum(facts["equal"] is False for facts in results.values()) - untold
    others = [facts for name in wrong if name != SUITES and (facts := results.get(name, {})).get("equal") is not False]
    of = f"of {counted(len(results), 'table')}"
    told = [f"{unequal} {of} not as the source"] if unequal or not (others or untold or SUITES in wrong) else []
    told += [f"{untold} {of} could not be compared"] if untold else []
    if others:
        told.append(f"expectations of {counted(len(others), _kind(unequal, others))} not met")
    if SUITES in wrong:
        told.append("mistakes in suite files")
    return ", and ".join(told)


def _kind(unequal: int, others: Sequence[Mapping[str, Any]]) -> str:
    if unequal:
        return "other table"
    return "equal table" if all(facts.get("equal") for facts in others) else "table"


def _mended(pipeline: Pipeline, results: dict[str, dict[str, Any]]) -> str:
    """By what, of the rows that differ; of other faults, and of a table that waits for a snapshot, the reason says
    it."""
    if not any(facts.get("differences") and not facts.get("reason") for facts in results.values()):
        return ""
    by = f"`headrace repair {pipeline.path} --compact`, or the DAG {pipeline.name}.repair,"
    return f" | {by} mends the rows that differ"


def _outdated(lake: Lake, name: str) -> str:
    """Of a table that is not compared."""
    table = status.tables.get(name) if (status := status_of(lake)) else None
    return f"; {table.outdated}" if table and table.outdated else ""


def _compare(
    check: Verification, answers: Sequence[Answer], shapes: Shapes, results: dict[str, dict[str, Any]]
) -> list[Difference]:
    """Puts each table's line into the results. Gives the differences that were found."""
    seconds, high = check.pipeline.quality.wait_seconds, max(answer.high for answer in answers)
    status = check.wait([answer.name for answer in answers], high, check.source.executed(), seconds)
    wrong = []
    found: list[Difference] = []
    for answer, finding in zip(answers, findings(check, answers, status, shapes()), strict=True):
        results[answer.name] = result(answer, finding, check.low)
        _tell(_line(answer.name, results[answer.name]))
        for told in finding.doubts if results[answer.name]["equal"] else ():
            _tell(f"{answer.name}: what speaks against it: {told}")
        if finding.wrong and _open(status, answer, finding):
            wrong.append((answer, finding))
        else:
            found += unopened(answer, finding.wrong)
    found += check.pin(wrong, shapes, seconds) if wrong else []
    for name, told in check.mended.items():
        results[name]["reason"] = told
    check.reading.kept.forget(answer.name for answer in answers)
    for name, facts in results.items():
        if (table := status.tables.get(name)) and table.stale:
            facts["stale"] = table.stale.reason
        _tell_differences(name, facts, [one for one in found if f"{one.db}.{one.table}" == name])
    return found


def _open(status: LakeStatus, answer: Answer, finding: Finding) -> bool:
    """Whether its rows are of interest: not where all of the table waits for a snapshot."""
    table = status.tables.get(answer.name)
    return table is not None and apart(table) is None and finding.reason is None


def _tell_differences(name: str, facts: dict[str, Any], found: Sequence[Difference]) -> None:
    """How many there are of each kind; the keys are in the lake's `_differences` alone."""
    if found:
        facts["differences"] = dict(Counter(one.kind for one in found))
        facts["columns"] = sorted({column for one in found for column in one.columns})
        _tell(f"{name}: {by_kind(facts)}")


def _rules(judging: Judging, check: Verification, answers: Sequence[Answer]) -> dict[str, Rules]:
    """Of the tables that the lake has."""
    frames, there = check.frames, [answer for answer in answers if answer.name in check.frames]
    return {one.name: judging.rules(one, check.later[one.name], frames[one.name].columns) for one in there}


def _expectations(
    check: Verification,
    pipeline: Pipeline,
    rules: Mapping[str, Rules],
    beside: Aside,
    results: dict[str, dict[str, Any]],
    some: bool,
) -> dict[str, Any]:
    """The expectation suites over the very versions that were verified. `some`: of tables that were named."""
    from quality import suite  # begun beside the source's reads

    schemas = beside.schemas | {name: one.schema for name, one in rules.items() if one.schema}
    constraints = {name: one.checks for name, one in rules.items()}
    unjudged = beside.unjudged | {name: dict(one.unjudged) for name, one in rules.items() if one.unjudged}
    unjudged |= {(table := ".".join(name)): {ROWS: results[table]["reason"]} for name in check.reading.unread}

    def later(name: str) -> dict[str, str]:
        return {ROWS: MADE_ANEW} if check.made_anew((schemas[name].db, schemas[name].table)) else {}

    told = suite.run(
        check.spark, pipeline, results, schemas=schemas, frames={**check.frames, **beside.frames},
        constraints=constraints, unjudged=unjudged, some=some, lake=check.status.tables if check.status else (),
        own_alone=beside.schemas, later=later,
    )  # fmt: skip
    for name in {*beside.schemas, *beside.unjudged}:
        if (table := told["tables"].get(name)) and table["unjudged"]:
            results[name]["clears"] = False  # what it did not meet before may be so still
    for name, table in told["tables"].items():
        for what, reason in {**table["untranslated"], **table["unjudged"]}.items():
            _tell(f"{name}: no expectation checks {what}: {reason}")
    return told


def _line(name: str, facts: dict[str, Any]) -> str:
    if facts["lake_count"] is None:
        return f"{name}: {facts['reason']}"
    word = "equal" if facts["equal"] else "DIFFERENT"
    counts = f"{facts['source_count']:,} rows in the source, {facts['lake_count']:,} in the lake"
    before = f", as it was from {facts['oldest_read']} on (a check before read that)" if facts.get("taken_up") else ""
    return f"{name}: {word}{before}, {counts}, checksums {facts['source_checksum']} and {facts['lake_checksum']}"


def _tell(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    more = {
        "whole": "no samples: any text, such as yes",
        "compact": "compact while it waits for that: likewise",
        "anew": "read all again, also what a check that did not end has read: likewise",
    }
    run("verify", verify, more)
