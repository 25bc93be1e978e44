"""A lake on S3 without Spark: the words of delta-rs and Polars for its store, and the text of a small file of it."""

from __future__ import annotations

from pathlib import Path

from contract import names, steps
from contract.pipeline import Pipeline
from contract.pipeline_lake import S3A
from contract.whole_files import broken, whole
from readers.errors import LakeReadError

PATIENCE = 10.0  # seconds of one question, of which there are two


def options(pipeline: Pipeline) -> dict[str, str] | None:
    """`storage_options` of delta-rs and Polars; None of a lake that is not on S3. What is not in the pipeline file they
    look for in the environment."""
    if pipeline.lake.bucket is None:
        return None
    s3 = pipeline.lake.s3
    given = {
        "AWS_ENDPOINT_URL": s3.endpoint_url,
        "AWS_REGION": s3.of_region,
        "AWS_ACCESS_KEY_ID": s3.key,
        "AWS_SECRET_ACCESS_KEY": s3.secret,
        "AWS_SESSION_TOKEN": s3.token,
        "AWS_ALLOW_HTTP": "true" if s3.plain else None,
        "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "false" if s3.in_path else "true",
    }
    return {name: value for name, value in given.items() if value is not None}


def text(pipeline: Pipeline, path: str) -> str | None:
    """Of a file of an S3 lake, by its whole URI; None where there is none. Raises OSError, and ModuleNotFoundError
    without pyarrow."""
    from pyarrow.fs import AwsStandardS3RetryStrategy, S3FileSystem

    s3 = pipeline.lake.s3
    files = S3FileSystem(
        access_key=s3.key,
        secret_key=s3.secret,
        session_token=s3.token,
        region=s3.of_region,
        scheme="http" if s3.plain else "https",
        endpoint_override=s3.endpoint_url.partition("://")[2].rstrip("/") if s3.endpoint_url else None,
        force_virtual_addressing=not s3.in_path,
        connect_timeout=PATIENCE,
        request_timeout=PATIENCE,
        retry_strategy=AwsStandardS3RetryStrategy(max_attempts=2),
    )
    try:
        with files.open_input_stream(path.removeprefix(S3A)) as stream:
            return str(stream.read().decode())
    except FileNotFoundError:
        return None


def small_file(pipeline: Pipeline, name: str) -> str | None:
    """The text of a JSON file of the lake, wherever that is; None where there is none. Raises as `text`, and
    LakeReadError where it is not whole."""
    root = names.lake_root(pipeline)
    path = f"{root}/{name}"
    found = text(pipeline, path) if pipeline.lake.bucket else _in_folder(Path(path))
    if found is not None and not whole(found):
        raise LakeReadError(broken(path, found, root, steps.snapshot(pipeline)))
    return found


def _in_folder(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace")  # of what is no text the rest is no JSON
    except FileNotFoundError:
        return None
