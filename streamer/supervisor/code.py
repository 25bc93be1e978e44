"""What of a pipeline file runs code of the user's: classes of sinks and checkpoints, scripts and functions, a notifier.

Whoever may write the files may run code as it is. Who has a token of the API may not: a text may name no other code
than the file that it replaces, unless `headrace serve` was started with `--allow-code`.
"""

from __future__ import annotations

from collections.abc import Iterator

from contract.pipeline import Pipeline, Problem
from contract.pipeline_file import dotted, line_of
from contract.pipeline_secrets import Keys
from contract.pipeline_sinks import OwnClass

FIX = "write the file in the folder itself, or start headrace serve with --allow-code"


def foreign(pipeline: Pipeline, there: Pipeline | None, text: str) -> Problem | None:
    """The first code that the text names and the pipeline that is there does not."""
    known = {code for _, code in named(there)} if there else set()
    refused = [(keys, code) for keys, code in named(pipeline) if code not in known]
    notifier = pipeline.quality.notifier
    if notifier and notifier != (there and there.quality.notifier):
        # What it is given are templates, which see all that Airflow has, such as its connections.
        refused.append((("quality", "notifier"), f"{notifier.type} with its settings"))
    for keys, code in refused:
        message = f"{code} is code, which the API is not allowed to name"
        return Problem(line_of(pipeline.path, text, *keys), dotted(keys), message, "", FIX)
    return None


def named(pipeline: Pipeline) -> Iterator[tuple[Keys, str]]:
    """Where the file names code, and which."""
    for number, output in enumerate(pipeline.sinks or ()):
        if isinstance(output, OwnClass):
            yield ("sinks", number, "type"), output.type
    if isinstance(pipeline.checkpoints, OwnClass):
        yield ("checkpoints", "type"), pipeline.checkpoints.type
    for number, rule in enumerate(pipeline.transforms):
        if rule.script:
            yield ("transforms", number, "script"), rule.script
        if rule.function:
            yield ("transforms", number, "function"), rule.function
        for name, path in rule.helpers.items():
            yield ("transforms", number, "helpers", name), path
