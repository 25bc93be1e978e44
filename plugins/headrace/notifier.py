"""The pipeline's `quality.notifier`: a notifier of Airflow's providers, or of the user's, called with each alert.

What it is given are templates, as Airflow fills them in for the class, which see the task's context and the `alert`. A
password is in the connection that the class names, not in the pipeline file.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from types import SimpleNamespace
from typing import Any

from airflow.sdk import BaseNotifier

from contract.pipeline import Pipeline, PipelineFileError
from contract.pipeline_file import problem_at
from contract.pipeline_quality import Notifier

PATH = (
    "correct the path (module.Class), or install the provider's package where Airflow runs: its scheduler's "
    "DAG processor and its workers"
)
KIND = "name a class that derives from airflow.sdk.BaseNotifier"
GIVEN = "write what the class takes, by its arguments' names"


def took(log: Any, pipeline: Pipeline, chosen: Notifier, alert: dict[str, Any], context: Any) -> bool:
    """Whether it did; else the log says why not."""
    try:
        # Not as a dict: of one, a template's `alert.clear` is the method.
        made(pipeline, chosen)({**context, "alert": SimpleNamespace(**alert)})
    except (Exception, SystemExit) as error:  # whatever a class of somebody else's does
        log.error("quality.notifier (%s) did not take the alert: %s: %s", chosen.type, type(error).__name__, error)
        return False
    return True


def mistakes(pipelines: Iterable[Pipeline]) -> list[str]:
    """A paragraph for each notifier that cannot be made here. Nothing else of its pipeline is wrong by that."""
    found = []
    for pipeline in pipelines:
        try:
            if chosen := pipeline.quality.notifier:
                made(pipeline, chosen)
        except PipelineFileError as error:
            found.append(str(error))
    return found


def made(pipeline: Pipeline, chosen: Notifier) -> BaseNotifier:
    """A new one: its templates are filled in once. Raises PipelineFileError."""
    name = chosen.type
    kind = _class(pipeline, name)
    if not (isinstance(kind, type) and issubclass(kind, BaseNotifier)):
        raise _mistake(pipeline, "type", f"{name} is no notifier of Airflow's", KIND)
    try:
        return kind(**chosen.settings)
    except (Exception, SystemExit) as error:
        raise _mistake(pipeline, "settings", f"are refused by {name}: {type(error).__name__}: {error}", GIVEN) from None


def _class(pipeline: Pipeline, path: str) -> Any:
    module, _, name = path.rpartition(".")
    try:
        return getattr(import_module(module), name)
    except AttributeError:
        raise _mistake(pipeline, "type", f"the module {module} has no {name}", PATH) from None
    except (Exception, SystemExit) as error:  # whatever the module does when it is imported
        told = f"{module} cannot be imported: {type(error).__name__}: {error}"
        raise _mistake(pipeline, "type", told, PATH) from None


def _mistake(pipeline: Pipeline, key: str, message: str, fix: str) -> PipelineFileError:
    return problem_at(pipeline.path, ("quality", "notifier", key), message, "", fix)
