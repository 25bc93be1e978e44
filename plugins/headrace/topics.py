"""The operator that makes a pipeline's Kafka topics, and says what of an existing one is not as the file wants."""

from __future__ import annotations

from typing import Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowFailException

from contract.pipeline import PipelineFileError
from headrace import pipeline_files
from headrace.run_conf import refuse_unknown


class ProvisionTopics(BaseOperator):
    """Makes the topics of the tables that match now. An existing topic is never changed: the task fails, with
    the difference and the next step, where one is not as wanted. Result: `created`, `as_wanted`, `differing`."""

    template_fields = ("pipeline_file",)
    ui_color = "#fdf3dc"

    def __init__(self, *, pipeline_file: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pipeline_file = pipeline_file

    def execute(self, context: Any) -> dict[str, Any]:
        refuse_unknown(context)
        report = self._provision()
        for topic in report["created"]:
            self.log.info("created     %s", topic)
        for topic in report["as_wanted"]:
            self.log.info("as wanted   %s", topic)
        for topic, difference in report["differing"].items():
            self.log.error("differs     %s: %s", topic, difference)
        if report["differing"]:
            context["ti"].xcom_push(key="return_value", value=report)
            told = "; ".join(f"{topic}: {difference}" for topic, difference in report["differing"].items())
            raise AirflowFailException(f"topics are not as {self.pipeline_file} wants them: {told}")
        return report

    def _provision(self) -> dict[str, Any]:
        from streamer.errors import HeadraceError  # the Kafka client is not loaded when DAG files are parsed
        from streamer.kafka.topics import provision

        try:
            report = provision(pipeline_files.load(self.pipeline_file))
        except (HeadraceError, PipelineFileError) as error:
            raise AirflowFailException(str(error)) from None
        return {
            "created": list(report.created),
            "as_wanted": list(report.as_wanted),
            "differing": dict(report.differing),
        }
