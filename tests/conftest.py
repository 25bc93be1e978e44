"""What every test has: an Airflow home of its own, made before anything imports Airflow."""

from __future__ import annotations

import logging
import os
import tempfile

from hypothesis import settings

# How long an example takes is the machine's load, not the code's fault: a busy one failed tests without this.
settings.register_profile("headrace", deadline=None)
settings.load_profile("headrace")
# Airflow reads its home once, when it is first imported, and would else write into the user's own.
os.environ.setdefault("AIRFLOW_HOME", tempfile.mkdtemp(prefix="headrace-airflow-"))
os.environ.setdefault("AIRFLOW__CORE__LOAD_EXAMPLES", "False")


def pytest_unconfigure() -> None:
    # Spark's gateway logs while the interpreter ends, when pytest has closed the output that it logs to.
    logging.raiseExceptions = False
