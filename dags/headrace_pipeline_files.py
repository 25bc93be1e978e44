"""Shows the mistakes of pipeline files as this file's import error in Airflow, and gives no DAG. A notifier that cannot
be made is one, too, for which its pipeline's DAGs go on.

A file of its own: Airflow stops scheduling every DAG of a file that has an import error.
"""

from airflow.sdk import DAG

from headrace import notifier, pipeline_files, settings


class PipelineFilesError(ValueError):
    """The mistakes of all pipeline files."""


class Mistakes(DAG):
    """Refused by Airflow with the mistakes as the reason, and without the traceback of a failed import."""

    def validate(self) -> None:
        raise PipelineFilesError("\n" + self.description)


pipelines, mistakes = pipeline_files.load_folder(settings.pipelines_folder())
if mistakes := [*mistakes, *notifier.mistakes(pipelines)]:
    refused = Mistakes("headrace.pipeline_files", schedule=None, description="\n".join(mistakes))
