"""The pipeline files as Airflow sees them: the good ones as pipelines, the others as mistakes.

One wrong file must not take the DAGs of the others with it. Airflow stops scheduling every DAG of a file with
an import error, so the mistakes are reported by a DAG file of their own (dags/headrace_pipeline_files.py).
"""

from __future__ import annotations

from pathlib import Path

from contract.pipeline import Pipeline, PipelineFileError
from contract.pipeline import load as load_file


def load(path: str | Path) -> Pipeline:
    """The pipeline of a file, which tasks find from any folder. Raises PipelineFileError."""
    return load_file(path).model_copy(update={"path": Path(path).absolute()})


def load_folder(folder: Path) -> tuple[list[Pipeline], list[str]]:
    """Every pipeline of the folder that is in order and feeds a lake, by name, and a paragraph for each mistake."""
    pipelines: dict[str, Pipeline] = {}
    mistakes: list[str] = []
    files = sorted([*folder.glob("*.yaml"), *folder.glob("*.yml")])
    if not files:
        mistakes.append(f"{folder}: holds no pipeline file\n    fix: put one there, or set HEADRACE_PIPELINES")
    for path in files:
        try:
            pipeline = load(path)
        except PipelineFileError as error:
            mistakes.append(str(error))
            continue
        first = pipelines.setdefault(pipeline.name, pipeline)
        if first is not pipeline:
            mistakes.append(
                f"{path}: the name {pipeline.name!r} is taken by {first.path}, so this file has no DAGs\n"
                "    fix: give each file a name of its own"
            )
    return [pipeline for pipeline in pipelines.values() if pipeline.feeds_lake], mistakes
