"""One table's expectations, run by Great Expectations.

In: those of its schema and those of the user's files. Out: a table's part of the check's result, without what it is
that was not asked. What Great Expectations cannot run of the user's is a fault of the file, and is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from great_expectations.core import ExpectationSuite, RunIdentifier
from great_expectations.core.result_format import ResultFormat
from great_expectations.core.validation_definition import ValidationDefinition
from great_expectations.expectations import Expectation
from pyspark.sql import DataFrame

from quality import expectations, found
from quality.custom import Own


@dataclass
class Validation:
    """`context` and `source`: of GX. `rows`: how many the table must have."""

    context: Any
    source: Any
    name: str
    frame: DataFrame
    rows: Any

    def run(self, derived: Sequence[Expectation], own: Sequence[Own], wrong: list[str]) -> dict[str, Any]:
        """What is wrong with a file of the user's goes to `wrong`."""
        checked = self._definition([*derived, *(expectation for _, expectation in own)])
        try:
            outcome = self._outcome(checked)
        except Exception:  # GX says of none which expectation it was, and gives no result of the others
            if not (refused := self._refused(checked, own)):
                raise
            wrong += [f"{file}: {one.configuration.type} cannot be run: {why}" for file, one, why in refused]
            _leave_out(checked, [one for _, one, _ in refused])
            outcome = self._outcome(checked)
        self.frame.unpersist()  # GX keeps what it has read
        told = [found.told(one) for one in outcome.results]
        failed = [{key: value for key, value in one.items() if key != "ok"} for one in told if not one["ok"]]
        return {"ok": bool(outcome.success), "evaluated": len(told), "failed": failed, "evaluations": told}

    def _definition(self, wanted: list[Expectation]) -> ValidationDefinition:
        batch = self.source.add_dataframe_asset(name=self.name).add_batch_definition_whole_dataframe("now")
        suite = self.context.suites.add(ExpectationSuite(name=self.name))
        for expectation in wanted:
            suite.add_expectation(expectation)
        definition = ValidationDefinition(name=self.name, data=batch, suite=suite)
        return self.context.validation_definitions.add(definition)

    @property
    def _parameters(self) -> dict[str, Any]:
        return {expectations.SOURCE_ROWS: self.rows}

    def _outcome(self, checked: ValidationDefinition) -> Any:
        """First only whether all holds, which Spark answers in one pass; the details, a pass an expectation, where
        not."""
        given: dict[str, Any] = {
            "batch_parameters": {"dataframe": self.frame},
            "expectation_parameters": self._parameters,
            "run_id": RunIdentifier(run_name=f"check of {self.name}", run_time=datetime.now(UTC)),
        }
        outcome = checked.run(**given, result_format=ResultFormat.BOOLEAN_ONLY)
        if outcome.success:
            return outcome
        self._forget()
        return checked.run(**given, result_format=ResultFormat.SUMMARY)

    def _refused(self, checked: ValidationDefinition, own: Sequence[Own]) -> list[tuple[Any, Expectation, str]]:
        """Those of the user's that GX raises an error at, each tried alone, and which."""
        batch = checked.data.get_batch(batch_parameters={"dataframe": self.frame})
        refused = []
        for file, one in own:
            try:
                batch.validate(one, result_format=ResultFormat.BOOLEAN_ONLY, expectation_parameters=self._parameters)
            except Exception as error:  # an expectation may be a class of the user's
                text = str(error) or type(error).__name__
                print(f"{file}: {text}", flush=True)
                refused.append((file, one, found.reason(text, "what the job's log shows")))
        return refused

    def _forget(self) -> None:
        """Takes the table's first result out of what the pages are made from: the second says more."""
        store = self.context.validation_results_store
        for key in store.list_keys():
            if key.expectation_suite_identifier.name == self.name:
                store.remove_key(key)


def _leave_out(checked: ValidationDefinition, refused: list[Expectation]) -> None:
    for one in refused:
        with suppress(KeyError):  # the same in two files is one of the suite's
            checked.suite.delete_expectation(one)
