"""Classes of the user's, named in the pipeline file by their dotted paths."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterable
from typing import Any

from contract.pipeline import Pipeline
from contract.pipeline_file import PipelineFileError, problem_at
from contract.pipeline_secrets import Keys
from contract.pipeline_sinks import OwnClass
from streamer.errors import HeadraceError


def find(pipeline: Pipeline, chosen: OwnClass, at: Keys, methods: Iterable[str]) -> Any:
    """The class, looked for where Python looks, in the working directory and beside the pipeline file. `at`: the key
    that names it; `methods`: those that it must have. Raises PipelineFileError."""
    module, _, name = chosen.type.rpartition(".")
    for folder in (os.getcwd(), str(pipeline.path.parent.resolve())):
        if folder not in sys.path:
            sys.path.append(folder)
    try:
        found = getattr(importlib.import_module(module), name)
    except AttributeError:
        raise _wrong(pipeline, at, f"the module {module} has no {name}") from None
    except (Exception, SystemExit) as error:  # whatever the module does when it is imported
        raise _wrong(pipeline, at, f"{module} cannot be imported: {type(error).__name__}: {error}") from None
    if lacking := [method for method in methods if not callable(getattr(found, method, None))]:
        raise _wrong(pipeline, at, f"{chosen.type} has no {', '.join(lacking)}")
    return found


def make(pipeline: Pipeline, chosen: OwnClass, at: Keys, methods: Iterable[str], attributes: Iterable[str] = ()) -> Any:
    """One of the class, with the file's settings and the pipeline; `attributes`: those that it must have then. Raises
    PipelineFileError, and HeadraceError as the class does."""
    found = find(pipeline, chosen, at, methods)
    try:
        made = found(chosen.settings, pipeline)
    except HeadraceError:
        raise
    except (Exception, SystemExit) as error:
        cause = f"{chosen.type}(settings, pipeline) failed: {type(error).__name__}: {error}"
        raise _wrong(pipeline, (*at[:-1], "settings"), cause) from None
    if lacking := [name for name in attributes if not hasattr(made, name)]:
        raise _wrong(pipeline, at, f"one of {chosen.type} has no {', '.join(lacking)}")
    return made


def _wrong(pipeline: Pipeline, at: Keys, cause: str) -> PipelineFileError:
    fix = "correct the path (module.Class), set PYTHONPATH to its folder, or mend the class (docs/sinks.md)"
    return problem_at(pipeline.path, at, cause, "", fix)
