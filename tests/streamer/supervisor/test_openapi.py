"""The API does what its OpenAPI document says, whatever is sent to it."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance

from streamer.supervisor.api import application
from streamer.supervisor.tokens import Tokens
from tests.streamer.supervisor.conftest import Served

TOKEN = "operate-token-0123456789"  # The document calls a pipeline file a text: which texts are one, it does not say.
NO_FILES = [positive_data_acceptance, negative_data_rejection]
OPERATIONS = 17
FEW = settings(
    max_examples=12, deadline=None, phases=[Phase.explicit, Phase.generate], derandomize=True,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip


@pytest.fixture
def operations(served: Served) -> list[Any]:
    served.put("shop")
    served.run().wait(lambda: served.supervisor.units())
    app = application(served.supervisor, Tokens([], [TOKEN]))
    schema = schemathesis.openapi.from_asgi("/openapi.json", app)
    return [one.ok() for one in schema.get_all_operations()]


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_every_operation_answers_as_it_is_described(operations: list[Any], mode: GenerationMode) -> None:
    assert len(operations) == OPERATIONS
    for operation in operations:

        @FEW
        @given(case=operation.as_strategy(generation_mode=mode))
        def answers(case: Any) -> None:
            pinned = mode is GenerationMode.POSITIVE and "name" in case.path_parameters
            if (
                pinned and case.method != "DELETE" and not case.path.endswith(("/seek", "/events"))
            ):  # they would ask a broker
                case.path_parameters["name"] = "shop"  # one that there is
            left_out = NO_FILES if case.operation.body else []
            case.call_and_validate(headers={"Authorization": f"Bearer {TOKEN}"}, excluded_checks=left_out)

        with suppress(Unsatisfiable):  # nothing of the operation can be sent wrong
            answers()
