"""What a check keeps in the lake: with the lake's slot, and nothing lost of what another check has found meanwhile."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from contract.pipeline import Pipeline
from contract.pipeline_columns import Columns
from contract.status import TableStatus
from headrace.alerts import Alert, AllClear
from headrace.spark_job import JobFailed
from quality import folder
from quality.report import SUITES
from spark.errors import LakeError, PassingError, TableAlteredError, TableGoneError
from spark.job import JobFailedError
from spark.jobs import verify as checking
from spark.jobs.verify import verify
from spark.lake.applied import Applied, AppliedSnapshots
from spark.lake.lake import Lake
from spark.lake.slot import writing
from spark.proof.answer import Answer
from spark.proof.boundary import Read
from spark.proof.checksum import Total
from spark.proof.comparing import findings
from spark.proof.differences import (
    CHANGED,
    CHUNK,
    Difference,
    Unmet,
    dated,
    latest,
    next_run,
    note_checks,
    note_differences,
    unmet_last,
)
from spark.proof.finding import Finding
from spark.proof.judged import ALTERED, ROWS, Rules
from spark.proof.splits import Ranges
from spark.proof.verification import Verification
from tests.checkpoints import checkpoint
from tests.spark.changes_by_hand import ITEMS
from tests.spark.lake_by_hand import NAME

EQUAL = Finding(Total(1, 1), "", 1, 0.0)
ONE, TWO = (Difference("shop", "items", CHANGED, f'{{"id":{n}}}', ("name",)) for n in (1, 2))


class Check:
    """One that finds what it is told to find. `chosen`: of the two chunks; `meanwhile` runs while it does; `rules`: by
    which its expectations judge the `frames`, where there are some."""

    def __init__(self, spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
        self.spark, self.lake = spark, lake
        self.reading = SimpleNamespace(found={}, kept=SimpleNamespace(erasures=0), unread={})
        self.lost, self.status = set[str](), SimpleNamespace(run=7, tables={})
        self.frames: dict[str, Any] = {}
        self.made_anew = lambda name: False
        self.rules: dict[str, Rules] = {}
        self.found: list[Difference] = []
        self.meanwhile: list[Difference] = []
        self.facts: dict[str, Any] = {}
        split, read = Ranges((ITEMS.columns[0],), [("9",)]), Read({0: Total(1, 1)}, "", (0, 1, 5))
        self.answer = Answer(Columns().show(ITEMS), split, [read], chosen=frozenset({0}))
        self.source = SimpleNamespace(pipeline=lake.pipeline, checks=lambda *_: {})
        monkeypatch.setattr(checking, "Broker", lambda _: SimpleNamespace(checkpoint=checkpoint))
        monkeypatch.setattr(checking, "streamed", self._streamed)
        monkeypatch.setattr(checking, "refuse_other_rules", lambda *_: None)
        monkeypatch.setattr(checking, "chosen", lambda *_: [("shop", "items")])
        monkeypatch.setattr(checking, "Verification", lambda *_: self)
        monkeypatch.setattr(checking, "_compare", self._compare)
        monkeypatch.setattr(checking, "_rules", lambda *_: self.rules)
        judge = checking._expectations
        monkeypatch.setattr(checking, "_expectations", lambda *given: judge(*given) if self.rules else {})

    @contextmanager
    def _streamed(self, *_: Any) -> Iterator[Any]:
        yield self.source

    def ask(self, tables: Any) -> list[Answer]:
        return [self.answer]

    def _compare(self, check: Any, answers: Any, shapes: Any, results: dict[str, Any]) -> list[Difference]:
        if self.meanwhile:
            note(self.spark, self.lake, *self.meanwhile)
        results["shop.items"] = {"equal": True, "source_count": 1, "lake_count": 1, **self.facts}
        return self.found

    def run(self, *before: Difference) -> dict[str, Any]:
        """The table's line of the report of a check before which these were known."""
        self.reading.found = {("shop", "items"): [*before]}
        facts: dict[str, Any] = verify(self.spark, self.lake.pipeline, [])["tables"]["shop.items"]
        return facts


@pytest.fixture
def check(spark: SparkSession, lake: Lake, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> Check:
    return Check(spark, lake, monkeypatch)


def note(spark: SparkSession, lake: Lake, *found: Difference) -> None:
    run = next_run(spark, lake, datetime.now(UTC))
    note_differences(spark, lake, run, dated(found, (), run.at))
    note_checks(spark, lake, run, {"tables": {"shop.items": {"equal": False}}})


def keys(spark: SparkSession, lake: Lake) -> set[str | None]:
    return {one.key for one in latest(spark, lake, "shop", "items")}


def test_a_sample_clears_what_it_looked_at_alone(spark: SparkSession, lake: Lake, check: Check) -> None:
    assert not check.run()["clears"], "whatever was at fault, it was in no chunk that is known"
    note(spark, lake, ONE)
    check.meanwhile = [ONE, TWO]
    assert not check.run(ONE)["clears"]
    assert keys(spark, lake) == {TWO.key}, "which another check found while this one read"
    check.meanwhile = []
    assert check.run(TWO)["clears"]
    assert keys(spark, lake) == set()


def test_what_a_check_could_not_tell_of_is_still_known(spark: SparkSession, lake: Lake, check: Check) -> None:
    note(spark, lake, ONE)
    check.lost, check.found = {"shop.items"}, [TWO]
    assert not check.run(ONE)["clears"]
    assert keys(spark, lake) == {ONE.key, TWO.key}


def test_the_report_says_which_run_of_the_lake_was_compared(lake: Lake, check: Check) -> None:
    check.run()
    [name] = lake.list(lake.at("_quality"))
    assert (lake.read(lake.at("_quality", name)) or {})["lake_run"] == 7


def test_the_newest_report_has_the_greatest_number_where_the_clock_was_set_back(lake: Lake, check: Check) -> None:
    numbers, ahead = list[int](), int((datetime.now(UTC) + timedelta(hours=1)).timestamp() * 1000)
    lake.write(lake.at("_quality", f"{ahead}.json"), {})
    lake.write(lake.at("_quality", "unfinished.json"), {})
    for _ in range(2):
        check.run()
        names = [name.removesuffix(".json") for name in lake.list(lake.at("_quality"))]
        numbers.append(max(int(name) for name in names if name.isdecimal()))
    assert numbers == [ahead + 1, ahead + 2]


def test_what_was_not_kept_of_the_pages_is_a_warning(lake: Lake, check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking, "_expectations", lambda *_: {"tables": {}, "warnings": ["no room"]})
    report = verify(check.spark, lake.pipeline, [])
    assert (report["warnings"], report["expectations"]) == (["no room"], {"tables": {}})
    assert lake.is_table(lake.at("_checks"))


def test_nothing_is_kept_while_another_job_writes_the_lake(
    spark: SparkSession, lake: Lake, check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checking, "PATIENCE", 0.5)
    check.found = [ONE]
    with writing(lake, "compact"), pytest.raises(PassingError, match="is being changed by the job compact"):
        check.run()
    check.facts = {"equal": False, "differences": {CHANGED: 1}}
    with writing(lake, "compact"), pytest.raises(JobFailedError, match=r"1 of 1 table not as the source") as told:
        check.run()  # what it found is not to be lost for that
    [warning] = told.value.facts["warnings"]
    assert warning.startswith("what this check found is in no table of the lake")
    assert told.value.facts["again"], "a repair would find nothing of it"
    assert told.value.facts["tables"]["shop.items"]["clears"] is False
    assert "repair" not in str(told.value)
    check.facts = {}
    assert not lake.is_table(lake.at("_differences"))
    check.run()
    assert keys(spark, lake) == {ONE.key}


def test_what_mends_rows_that_differ_is_told_and_other_faults_say_it_themselves(check: Check) -> None:
    check.facts = {"equal": False, "differences": {CHANGED: 1}}
    with pytest.raises(
        JobFailedError, match=r"`headrace repair \S+/shop\.yaml --compact`, or the DAG shop\.repair, mend"
    ):
        check.run()
    check.facts = {"equal": False, "reason": "not yet snapshotted"}
    with pytest.raises(JobFailedError, match=r"not yet snapshotted$"):
        check.run()
    check.facts = {"equal": False, "differences": {CHUNK: 1}, "reason": "stale since noon. To mend it, run a snapshot"}
    with pytest.raises(JobFailedError, match=r"To mend it, run a snapshot$"):
        check.run()


def test_what_is_not_met_and_what_is_not_equal_are_told_apart() -> None:
    def counted(*facts: bool, wrong: set[str]) -> str:
        tables = {f"shop.{name}": {"equal": equal} for name, equal in zip("abcd", facts, strict=False)}
        return checking._counted({"tables": tables}, dict.fromkeys(sorted(wrong), "x"))

    assert counted(True, False, wrong={"shop.b"}) == "1 of 2 tables not as the source"
    assert counted(True, True, wrong={"shop.b"}) == "expectations of 1 equal table not met"
    with_files = "expectations of 1 equal table not met, and mistakes in suite files"
    assert counted(True, True, wrong={"shop.b", SUITES}) == with_files
    assert counted(True, True, wrong={SUITES}) == "mistakes in suite files"
    both = "2 of 4 tables not as the source, and expectations of 1 other table not met"
    assert counted(True, False, True, False, wrong={"shop.a", "shop.b", "shop.d"}) == both
    unread = {"tables": {"shop.a": {"equal": False, "lake_count": None}, "shop.b": {"equal": True, "lake_count": 2}}}
    assert checking._counted(unread, {"shop.a": "x"}) == "1 of 2 tables could not be compared"


def test_a_table_whose_snapshot_is_applied_meanwhile_is_to_be_checked_again(
    spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the first one the files take the place of those that are read."""
    table = SimpleNamespace(snapshot=None)
    check: Any = SimpleNamespace(
        lake=lake, lost=set[str](), mended={}, frames={}, spark=spark, low=checkpoint(), source=SimpleNamespace()
    )
    check.status = SimpleNamespace(tables={"shop.items": table})
    check.made_anew, check._replaced = partial(Verification.made_anew, check), partial(Verification._replaced, check)
    assert not check.made_anew(NAME)
    answer = Check(spark, lake, monkeypatch).answer
    monkeypatch.undo()

    def compare(*_: Any) -> None:
        AppliedSnapshots(lake).note(NAME, Applied(id="1", p0="", p1="", rows=1, applied_at=1, floor=[0, 1, 4, -1, -1]))
        raise FileNotFoundError("part-00000.parquet")

    check.compare, check.wait = compare, lambda *_: SimpleNamespace(tables={})
    check.pipeline, check.source.executed = lake.pipeline, lambda: ""
    check.reading = SimpleNamespace(kept=SimpleNamespace(forget=lambda names: None))
    results: dict[str, Any] = {}
    assert checking._compare(check, [answer], lambda: None, results) == []  # type: ignore[arg-type,return-value]
    assert (results["shop.items"]["equal"], results["shop.items"]["reason"]) == (False, checking.MADE_ANEW)
    assert check.lost == {"shop.items"}
    table.snapshot = SimpleNamespace(id="1")
    with pytest.raises(FileNotFoundError):
        checking._compare(check, [answer], lambda: None, results)  # type: ignore[arg-type,return-value]


def test_a_table_that_was_mended_while_it_was_checked_is_to_be_checked_again(
    spark: SparkSession, pipeline: Pipeline, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer, mended, forgotten = Check(spark, lake, monkeypatch).answer, dict[str, str](), list[str]()
    monkeypatch.undo()
    table = TableStatus(db="shop", table="items", rows=1, changes=1)
    check: Any = SimpleNamespace(
        spark=spark, lake=lake, pipeline=pipeline, mended=mended, low=checkpoint(),
        source=SimpleNamespace(executed=lambda: ""),
        wait=lambda *_: SimpleNamespace(tables={"shop.items": table}),
        compare=lambda *_: Finding(Total(), None, 0, 0.0, wrong=frozenset({0})),
        pin=lambda *_: mended.update({"shop.items": "mended: verify again"}) or [],
        reading=SimpleNamespace(kept=SimpleNamespace(forget=forgotten.extend)),
    )  # fmt: skip
    results: dict[str, Any] = {}
    assert checking._compare(check, [answer], lambda: None, results) == []  # type: ignore[arg-type,return-value]
    assert (results["shop.items"]["equal"], results["shop.items"]["reason"]) == (False, "mended: verify again")
    assert "differences" not in results["shop.items"]
    assert forgotten == ["shop.items"], "what was read of other tables is theirs"


def test_one_table_that_cannot_be_compared_keeps_no_other_from_it(spark: SparkSession, pipeline: Pipeline) -> None:
    def compare(answer: Any, *_: Any) -> Finding:
        if answer.name == "shop.items":
            raise ValueError("no cast")
        return EQUAL

    frames = {"shop.items": "unread", "shop.lines": "read"}
    check: Any = SimpleNamespace(
        spark=spark, pipeline=pipeline, lost=set[str](), frames=frames, made_anew=lambda _: False
    )
    check.compare = compare
    answers: Any = [SimpleNamespace(name=f"shop.{table}", schema=ITEMS) for table in ("items", "lines")]
    failed, other = findings(check, answers, None, None)  # type: ignore[arg-type]
    assert (failed.boundary, failed.reason, other) == (
        None, "it could not be compared: ValueError: no cast. The log above has the details", EQUAL,
    )  # fmt: skip
    assert (check.lost, frames) == ({"shop.items"}, {"shop.lines": "read"})


def test_a_value_that_does_not_fit_its_column_is_in_the_log_alone(
    spark: SparkSession, pipeline: Pipeline, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is told of a table goes to the notifier's webhook."""

    def compare(*_: Any) -> Finding:
        spark.sql("SELECT CAST('a secret' AS int)").collect()
        return EQUAL

    check: Any = SimpleNamespace(spark=spark, pipeline=pipeline, lost=set[str](), frames={}, made_anew=lambda _: False)
    check.compare = compare
    one: Any = SimpleNamespace(name="shop.items", schema=ITEMS)
    with pytest.raises(LakeError, match=r"shop\.items: a value does not fit its column's type \(CAST_INVALID") as error:
        findings(check, [one], None, None)  # type: ignore[arg-type]
    assert "secret" not in str(error.value)
    assert "a secret" in capsys.readouterr().out


LINES, DROPPED = ("shop", "lines"), TableGoneError("shop.lines: dropped meanwhile")


def test_a_table_that_is_gone_is_no_fault_and_nothing_is_said_of_it(
    spark: SparkSession, lake: Lake, check: Check
) -> None:
    run = next_run(spark, lake, datetime.now(UTC))
    known = Difference("shop", "lines", CHANGED, '{"id":1}', ("name",))
    note_differences(spark, lake, run, dated([known], (), run.at))
    failed = {"tables": {"shop.lines": {"evaluations": [{"expectation": "CHECK cheap", "ok": False}]}}}
    note_checks(spark, lake, run, {"tables": {"shop.lines": {"equal": False}}, "expectations": failed})
    check.reading.unread = {LINES: DROPPED}
    report = verify(spark, lake.pipeline, [])
    facts = report["tables"]["shop.lines"]
    assert (facts["equal"], facts["clears"]) == (None, False)
    assert facts["reason"].startswith("not compared: dropped meanwhile")
    assert report["tables"]["shop.items"]["equal"]
    assert [one.key for one in latest(spark, lake, "shop", "lines")] == [known.key], "another one of its name may come"
    assert unmet_last(spark, lake)["shop.lines"] == [Unmet("CHECK cheap", None)]


def test_a_table_that_is_gone_and_was_named_is_an_error_behind_the_others(
    spark: SparkSession, lake: Lake, check: Check
) -> None:
    check.reading.unread = {LINES: DROPPED}
    told = r"^1 of 2 tables could not be compared: shop\.lines: not compared: dropped meanwhile"
    with pytest.raises(JobFailedError, match=told) as caught:
        verify(spark, lake.pipeline, ["shop.items", "shop.lines"])
    assert caught.value.facts["tables"]["shop.items"]["equal"]
    assert not caught.value.facts["again"], "which another run says as well"


def test_a_table_that_was_altered_all_the_while_is_another_check_s(
    spark: SparkSession, lake: Lake, check: Check
) -> None:
    check.reading.unread, check.lost = {LINES: TableAlteredError("shop.lines: altered")}, {"shop.lines"}
    with pytest.raises(
        JobFailedError, match=r"1 of 2 .*shop\.lines: it could not be compared: it was altered"
    ) as caught:
        verify(spark, lake.pipeline, [])
    assert caught.value.facts["again"]
    assert caught.value.facts["tables"]["shop.items"]["equal"]


CHEAP = {"cheap": "`price` < 5"}
JUDGED_FREELY = Rules(ITEMS, {}, {})
JUDGED, LEFT_OUT = Rules(ITEMS, CHEAP, {}), Rules(None, {}, {ROWS: ALTERED})
PARTLY = Rules(ITEMS, {}, {"CHECK cheap": ALTERED})


class Judged:
    """Checks of all rows of a table that is equal, by these rules, with the notifiers that their task has."""

    def __init__(self, check: Check) -> None:
        self.check, self.pipeline = check, check.lake.pipeline
        check.answer = replace(check.answer, chosen=None)

    def run(self, rules: Rules, *rows: tuple[int, str, int]) -> list[str]:
        """What was told of it."""
        frame = self.check.spark.createDataFrame([*rows], "id bigint, name string, price int")
        self.check.frames = {"shop.items": frame.withColumn("price", frame.price.cast("decimal(10,2)"))}
        self.check.rules, self.check.facts = {"shop.items": rules}, {"frame_rows": len(rows)}
        ti: Any = SimpleNamespace(dag_id="shop.quality", task_id="verify", run_id="r", log_url="")
        before = len(folder.read_alerts(self.pipeline, 100))
        try:
            report = verify(self.check.spark, self.pipeline, [])
            self.facts = report["tables"]["shop.items"]
        except JobFailedError as error:
            told = JobFailed({"error": "1 of 1 table(s)", **error.facts})
            Alert(str(self.pipeline.path))({"ti": ti, "exception": told})
        else:
            ti.xcom_pull = lambda task_ids: report
            AllClear(str(self.pipeline.path))({"ti": ti})
        kept = folder.read_alerts(self.pipeline, 100)
        return [alert["message"] for alert in kept[: len(kept) - before]]


@pytest.fixture
def judged(check: Check, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Judged:
    monkeypatch.setenv("HEADRACE_SUITES", str(tmp_path / "suites"))
    return Judged(check)


def test_an_expectation_that_was_not_met_is_all_clear_when_it_is_judged_again(
    spark: SparkSession, lake: Lake, judged: Judged
) -> None:
    assert judged.run(LEFT_OUT) == [], "nothing was at fault"
    assert judged.run(JUDGED, (1, "a", 1), (1, "b", 9)) == ["1 of 1 table(s)"]
    assert judged.run(LEFT_OUT) == []
    assert judged.run(LEFT_OUT) == [], "nor does the next one that judges nothing"
    assert judged.run(PARTLY, (1, "a", 1)) == [], "the key is unique by now, and of the constraint nobody knows"
    assert judged.run(JUDGED, (1, "a", 1)) == ["all clear: shop.items"]
    noted = spark.read.format("delta").load(lake.at("_checks")).where("check = 'CHECK cheap'").orderBy("run")
    assert [row["ok"] for row in noted.collect()] == [False, None, None, None, True]


def test_a_sample_clears_an_expectation_that_alone_was_not_met(judged: Judged) -> None:
    """It is asked of all rows, whichever chunks are compared."""
    judged.check.answer = replace(judged.check.answer, chosen=frozenset({0}))
    assert judged.run(JUDGED, (1, "a", 9)) == ["1 of 1 table(s)"]
    assert judged.run(LEFT_OUT) == []
    assert judged.run(JUDGED, (1, "a", 1)) == ["all clear: shop.items"]


def test_a_sample_does_not_clear_what_was_not_equal_nobody_knows_where(
    spark: SparkSession, lake: Lake, judged: Judged
) -> None:
    judged.check.answer = replace(judged.check.answer, chosen=frozenset({0}))
    failed = {"tables": {"shop.items": {"evaluations": [{"expectation": "CHECK cheap", "ok": False}]}}}
    note_checks(spark, lake, next_run(spark, lake, datetime.now(UTC)), {
        "tables": {"shop.items": {"equal": False}}, "expectations": failed,
    })  # fmt: skip
    judged.run(JUDGED, (1, "a", 1))
    assert not judged.facts["clears"]


@pytest.mark.soak
def test_an_expectation_is_not_well_again_because_its_suite_file_broke(judged: Judged) -> None:
    own = Path(os.environ["HEADRACE_SUITES"], "shop", "shop.items.json")
    own.parent.mkdir(parents=True)
    wanted = {"type": "expect_column_values_to_be_between", "kwargs": {"column": "price", "max_value": 5}}

    def told(text: str, *rows: tuple[int, str, int]) -> dict[str, Any]:
        own.write_text(text)
        judged.run(JUDGED_FREELY, *rows)
        [alert] = folder.read_alerts(judged.pipeline, 1)
        return {word: [*alert.get(word, ())] for word in ("mended", "since")}

    suite = json.dumps({"expectations": [wanted]})
    assert told(suite, (1, "a", 9)) == {"mended": [], "since": ["shop.items"]}
    for _ in range(2):
        assert told("{", (1, "a", 9)) == {"mended": [], "since": ["shop.items", SUITES]}
    assert told(suite.replace("price", "cost"), (1, "a", 9))["mended"] == [], "a column that is none"
    assert told(suite, (1, "a", 9))["mended"] == []
    assert {*told(suite, (1, "a", 1))["mended"]} == {"shop.items", SUITES}


def test_nobody_is_alarmed_by_a_table_that_is_gone(judged: Judged) -> None:
    judged.check.reading.unread = {LINES: DROPPED}
    assert judged.run(JUDGED, (1, "a", 1)) == []


def test_what_a_check_of_a_part_has_judged_is_clear(judged: Judged) -> None:
    """Of the constraint nothing was at fault."""
    assert judged.run(JUDGED, (1, "a", 1), (1, "b", 1)) == ["1 of 1 table(s)"]
    assert judged.run(PARTLY, (1, "a", 1)) == ["all clear: shop.items"]


def test_a_suite_file_of_another_table_of_the_lake_is_no_mistake(judged: Judged) -> None:
    """By the status that the check itself read: one on hdfs:// is read by nobody else."""
    own = Path(os.environ["HEADRACE_SUITES"], "shop", "shop.other.json")
    own.parent.mkdir(parents=True)
    own.write_text("{}")
    assert judged.run(JUDGED, (1, "a", 1)) != [], "it fits no table"
    judged.check.status = SimpleNamespace(run=7, tables={"shop.other": None})
    assert judged.run(JUDGED, (1, "a", 1)) == [f"all clear: {SUITES}"]


def test_another_tables_fault_leaves_one_that_was_not_judged_at_fault(judged: Judged) -> None:
    assert judged.run(JUDGED, (1, "a", 9)) == ["1 of 1 table(s)"]
    own = Path(os.environ["HEADRACE_SUITES"], "shop", "shop.other.json")
    own.parent.mkdir(parents=True)
    own.write_text("{}")
    judged.run(LEFT_OUT)
    [alert] = folder.read_alerts(judged.pipeline, 1)
    assert (alert["mended"], {*alert["since"]}) == ([], {"shop.items", SUITES})
