"""A start, a failover or other tables that the server is not set for: refused, with every finding and its mend."""

from __future__ import annotations

from collections.abc import Callable

from contract.gtid import GtidSet
from contract.pipeline import Pipeline, Tables
from streamer.errors import PreflightError
from streamer.flavors import flavor
from streamer.preflight.checks import OF_TABLES, run_checks
from streamer.preflight.findings import Finding

Tell = Callable[[Finding], None]


class Added(Tables):
    """Those of the list that are not followed yet."""

    followed: Tables

    def match(self, db: str, table: str) -> bool:
        return super().match(db, table) and not self.followed.match(db, table)


def refuse(
    pipeline: Pipeline,
    start: GtidSet,
    since: float | None,
    tell: Tell = lambda finding: None,
    followed: Tables | None = None,
) -> None:
    """`tell` gets what is no error: those stand in what is raised. `followed`: the tables of a stream that goes on.
    Raises PreflightError with all that the server lacks, and as `run_checks`."""
    _refuse(pipeline, run_checks(pipeline, start, since, followed), tell)


def refuse_tables(pipeline: Pipeline, followed: Tables, tell: Tell) -> None:
    """Of the pipeline's tables those that the running stream does not follow yet. Raises as `refuse`."""
    tables = Added(**dict(pipeline.tables), followed=followed)
    asked = pipeline.model_copy(update={"tables": tables})
    _refuse(pipeline, run_checks(asked, checks=OF_TABLES), tell)


def _refuse(pipeline: Pipeline, findings: list[Finding], tell: Tell) -> None:
    for finding in findings:
        if finding.level != "error":
            tell(finding)
    errors = [finding for finding in findings if finding.level == "error"]
    if errors:
        server = f"{flavor(pipeline.source).title} at {pipeline.source.where}"
        found = "; ".join(finding.what.rstrip(".") for finding in errors)
        fix = " ".join(finding.statement for finding in errors if finding.statement)
        raise PreflightError("checking", server, found, fix)
