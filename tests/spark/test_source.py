from __future__ import annotations

import pytest

from contract.pipeline import Pipeline
from spark.errors import LakeError
from spark.source import Source


def test_a_server_of_another_kind_is_refused_before_it_is_asked() -> None:
    pipeline = Pipeline.model_validate(
        {
            "format": 1,
            "name": "other",
            "source": {"flavor": "mariadb", "host": "nowhere.invalid", "user": "u", "password": "p", "server_id": 5},
            "tables": {"include": ["shop.*"]},
            "kafka": {"bootstrap": "localhost:9092"},
            "lake": {"path": "lake"},
        }
    )
    with pytest.raises(LakeError, match="read MySQL alone, and other has the flavor mariadb"):
        Source(pipeline)
