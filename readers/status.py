"""The lake's status without Spark, of a lake in a folder or on S3."""

from __future__ import annotations

from contract import names, status
from contract.pipeline import Pipeline
from contract.status import FILE, LakeStatus, StatusFormatError, parse
from readers import store


def read(pipeline: Pipeline) -> LakeStatus | None:
    """None where no compaction has run yet. Raises StatusFormatError for a newer format, StatusElsewhereError for a
    lake that is neither in a folder nor on S3, OSError where the file cannot be read, ValueError where it is no
    status."""
    if pipeline.lake.bucket is None:
        return status.read(pipeline)
    path = f"{names.lake_root(pipeline)}/{FILE}"
    try:
        text = store.text(pipeline, path)
    except ModuleNotFoundError as error:
        raise StatusFormatError(f"{path} cannot be read: Python has no package {error.name}. Install pyarrow") from None
    except OSError as error:
        said = " ".join(str(error).split())
        raise OSError(f"{path} cannot be read: {said}. See to lake.s3 in {pipeline.path}") from None
    return None if text is None else parse(text)
