"""A short text that tells whether two parts show rows by the same rules: columns, masks, keys, transforms.

It stands in each checkpoint. Nobody finds the secret of the hashes by it who has not guessed the secret before.
"""

from __future__ import annotations

import hashlib
import hmac
import json

from contract.pipeline import Pipeline
from contract.transforms import Step

DIGITS = 16


def of(pipeline: Pipeline, steps: list[Step]) -> str:
    """`steps`: the transforms, with the text of each script."""
    columns = pipeline.columns
    rules = {
        "columns": columns.model_dump(mode="json", exclude={"secret"}),
        "keys": [rule.model_dump(mode="json") for rule in pipeline.keys],
        "secret": hmac.new(columns.key(), b"headrace", hashlib.sha256).hexdigest(),
        "transforms": [
            [rule.tables, step.name, step.text, step.helpers]
            for rule, step in zip(pipeline.transforms, steps, strict=True)
        ],
    }
    return hashlib.sha256(json.dumps(rules, sort_keys=True).encode()).hexdigest()[:DIGITS]
