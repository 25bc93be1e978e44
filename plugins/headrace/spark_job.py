"""The operator that runs one of Headrace's Spark jobs: one Spark application for all tables of a pipeline.

In: the job's name and the pipeline file. Out (XCom): the result that the job reported (contract/jobs.py).
Fails without a retry, with the job's own words, where the job reported an error; with a retry, where the job said that
another run may do better (it waited for the lake in vain, or a server, Kafka or the store is away), and, with the last
thing that Spark said, where it died without a report. A conf of the run that its DAG does not know fails it before
there is any Spark (run_conf.py).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import count
from typing import Any

from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowNotFoundException

from contract import job_options, jobs, spark_process
from contract.pipeline import PipelineFileError, load
from contract.spark_jars import spark_jars
from headrace import CHECKOUT
from headrace.run_conf import refuse_unknown
from quality.summary import lines

CODE = re.compile(r"Error code is: (-?\d+)")
KILLED = (-9, 137)  # SIGKILL, as of Python and of a shell
CAUSE = re.compile(r"^(?:Exception in thread \S+ |Caused by: )?(?:[\w$]+\.)*[\w$]*(?:Error|Exception|Interrupt)\b")
WAITS = "waits_for_{}"  # the XCom that holds the GTID set which the job waits for in the lake, the nth time
NO_CONNECTION = (
    "Airflow has no connection named {name!r}, which says where Spark runs: add it, for this machine alone as "
    'AIRFLOW_CONN_{upper}=\'{{"conn_type": "spark", "host": "local[2]"}}\''
)


class JobFailed(AirflowFailException):
    """A job that reported its own failure; `result` is its whole report, `tables` the part about tables."""

    def __init__(self, result: dict[str, Any]) -> None:
        super().__init__(str(result.get("error") or f"the {result.get('job')} job failed"))
        self.result = result


class JobFailedForNow(AirflowException):
    """The same of a job whose next run may do better: it is retried."""

    def __init__(self, result: dict[str, Any]) -> None:
        super().__init__(str(result.get("error")))
        self.result = result


class ReportingHook(SparkSubmitHook):
    """Takes out of spark-submit's output what the job has to say (contract/jobs.py), and starts it in the checkout.
    `on_wait` gets the GTID set that the job begins to wait for."""

    result: dict[str, Any] | None = None
    on_wait: Callable[[str], None]

    def submit(self, application: str = "", **kwargs: Any) -> str | None:
        return super().submit(application, cwd=CHECKOUT, **kwargs)

    def _process_spark_submit_log(self, itr: Iterator[Any]) -> None:
        super()._process_spark_submit_log(self._listen(itr))

    def _listen(self, output: Iterable[str]) -> Iterator[str]:
        for line in output:
            if (report := jobs.read(line)) is not None:
                self.result = report
                continue
            if gtid_set := jobs.wait_of(line):
                self.on_wait(gtid_set)
            yield line


class SparkJob(SparkSubmitOperator):
    """Runs `spark/jobs/<job>.py --pipeline <file>` on the connection `spark_default`.

    `tables`: `db.table` names by comma (templated); empty means all of the pipeline's. `options`: further arguments of
    the job, each by its name (templated); an empty one is left out. `partly`: a job that failed of some tables alone
    has its report taken for a success, with which the tasks behind it go on; a task AllStaged tells of those tables.
    """

    template_fields = (*SparkSubmitOperator.template_fields, "tables", "options")
    ui_color = "#e6f2f5"

    def __init__(
        self,
        *,
        job: str,
        pipeline_file: str,
        tables: str = "",
        options: Mapping[str, str] | None = None,
        partly: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            application=str(CHECKOUT / "spark" / "jobs" / f"{job}.py"), conf=dict(spark_process.CONF), **kwargs
        )
        self.job = job
        self.pipeline_file = pipeline_file
        self.tables = tables
        self.options = dict(options or {})
        self.partly = partly
        self._on_wait: Callable[[str], None] = lambda gtid_set: None

    def execute(self, context: Any) -> dict[str, Any]:  # type: ignore[override]
        refuse_unknown(context)
        self._prepare()
        failure: Exception | None = None
        times = count(1)
        self._on_wait = lambda gtid_set: context["ti"].xcom_push(key=WAITS.format(next(times)), value=gtid_set)
        try:
            super().execute(context)
        except (AirflowException, OSError, RuntimeError) as error:
            failure = error
        finally:
            job_options.forget(self.given.files)
        result = self._hook.result if isinstance(self._hook, ReportingHook) else None
        for line in lines(result) if result else ():
            self.log.info("%s", line)
        if result and not result["ok"] and self.partly and result.get("tables"):
            self.log.error("%s", result["error"])
        elif result and not result["ok"]:
            context["ti"].xcom_push(key="return_value", value=result)  # a failed task keeps no return value
            raise JobFailedForNow(result) if result.get("again") else JobFailed(result)
        elif failure or not result:
            raise self._died(failure)
        return result

    def _prepare(self) -> None:
        try:
            master = BaseHook.get_connection(self._conn_id).host or ""
            self.jars = spark_jars(_on_s3(self.pipeline_file))
        except AirflowNotFoundException:
            text = NO_CONNECTION.format(name=self._conn_id, upper=self._conn_id.upper())
            raise AirflowFailException(text) from None
        except FileNotFoundError as error:
            raise AirflowFailException(str(error)) from None
        self.env_vars = spark_process.spark_environment(local=master.startswith("local"))
        self.given = job_options.given({"tables": self.tables, **self.options})
        self.application_args = ["--pipeline", self.pipeline_file, *self.given.words]

    def _get_hook(self) -> ReportingHook:
        hook = ReportingHook(
            conf={**(self.conf or {}), "spark.driver.extraJavaOptions": spark_process.spark_java()},
            conn_id=self._conn_id,
            jars=self.jars,
            name=self.name,
            driver_memory=spark_process.spark_memory(),
            application_args=self.application_args,
            env_vars=self.env_vars,
        )
        hook.on_wait = self._on_wait
        return hook

    def _died(self, failure: Exception | None) -> AirflowException:
        if isinstance(failure, FileNotFoundError):
            return AirflowFailException(
                f"spark-submit was not found ({failure}): put the bin folder of the Python "
                "environment that holds pyspark on PATH"
            )
        if failure is None:
            return AirflowException(
                f"the {self.job} job ended as if all were well, but without its result; "
                "the lines above are all that it said"
            )
        said = list(self._hook._last_submit_log_lines) if self._hook else []
        return AirflowException(f"the {self.job} job died: {_killed(failure) or cause(said) or failure}")


def _on_s3(pipeline_file: str) -> bool:
    """Whether the lake is; of a file with a mistake the job itself tells."""
    try:
        return load(pipeline_file, secrets=False).lake.bucket is not None
    except PipelineFileError:
        return False


def _killed(failure: Exception) -> str:
    """Empty where the job ended in another way: of one that was killed, the last line tells nothing of it."""
    found = CODE.search(str(failure))
    if found is None or int(found[1]) not in KILLED:
        return ""
    return (
        f"it was killed from outside (exit code {found[1]}), often for want of memory: give the machine, or its "
        "container, more, or Spark less (HEADRACE_SPARK_MEMORY), then clear this task; the next run mends what is left"
    )


def cause(said: list[str]) -> str:
    """The line of a job's last words that names the error: the last exception, else the last line."""
    told = [line.strip() for line in said if line.strip()]
    return next((line for line in reversed(told) if CAUSE.match(line)), told[-1] if told else "")
