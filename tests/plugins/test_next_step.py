"""What an alert says to do next, by what the job found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from headrace.alerts import Alert
from headrace.run_conf import UnknownParameter
from headrace.spark_job import JobFailed, JobFailedForNow
from tests.plugins.failures_by_hand import RESULT, failed, pipeline_file, verified


def next_step(file: str, received: Any, exception: Exception) -> str:
    Alert(file)({**failed(), "exception": exception})
    return str(received.bodies[-1]["next_step"])


def test_a_repair_is_the_next_step_only_where_there_is_a_difference_for_it(tmp_path: Path, received: Any) -> None:
    file, equal = pipeline_file(tmp_path, received.url), {"shop.orders": {"equal": True, "source_count": 5}}
    uncompared = {"equal": False, "source_count": None, "reason": "it could not be compared: no right"}
    unmet = {"tables": {"shop.orders": {"failed": [{"expectation": "not null"}]}}}

    def step(**report: Any) -> str:
        return next_step(file, received, JobFailed({**RESULT, **report}))

    mend = "Mend the rows in the source, or the suite file; then start the DAG shop.quality"
    assert step(tables=equal, expectations=unmet) == mend
    assert step(tables=equal, expectations={"files": ["shop.orders.json: cannot be read"]}) == mend
    assert step(expectations=unmet).startswith("Start the DAG shop.repair"), "one table differs"
    for nothing_found in ({"tables": {}}, {"tables": {"shop.orders": uncompared}, "expectations": unmet}):
        assert step(**nothing_found).startswith("Do as the message says")
    away = next_step(file, received, JobFailed({"ok": False, "error": "the commit log of shop is empty"}))
    assert away.startswith("Do as the message says")
    assert next_step(file, received, RuntimeError("the verify job died")) == away


def test_an_error_that_knows_its_next_step_tells_that(tmp_path: Path, received: Any) -> None:
    """A check that was started with a misspelled name has found nothing that a repair could mend."""
    Alert(pipeline_file(tmp_path, received.url))({**failed(), "exception": UnknownParameter("no parameter 'tabels'")})
    assert received.bodies[-1]["next_step"] == "Start the DAG again, with a conf of the names that it has"


def test_what_another_check_is_to_tell_asks_for_that(tmp_path: Path, received: Any) -> None:
    context = verified(orders={"equal": False, "reason": "a snapshot of it was applied meanwhile: verify again"})
    context["exception"].result["again"] = True
    Alert(pipeline_file(tmp_path, received.url))(context)
    assert received.bodies[-1]["next_step"].startswith("Start the DAG shop.quality: ")
    away = JobFailedForNow({"job": "verify", "ok": False, "error": "MySQL does not answer: start it", "again": True})
    assert next_step(pipeline_file(tmp_path, received.url), received, away).startswith("Do as the message says; then")
