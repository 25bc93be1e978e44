"""The tests that every backend of a port passes: run them with pytest on your own by a subclass (docs/sinks.md)."""

import pytest

pytest.register_assert_rewrite("streamer.contract_suites.sink", "streamer.contract_suites.checkpoints")
