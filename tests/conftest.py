"""What every test has: a time zone that is none of the product's, and an Airflow home of its own."""

from __future__ import annotations

import os
import tempfile

# Airflow reads its home once, when it is first imported, and would else write into the user's own.
os.environ.setdefault("AIRFLOW_HOME", tempfile.mkdtemp(prefix="headrace-airflow-"))
os.environ.setdefault("AIRFLOW__CORE__LOAD_EXAMPLES", "False")
os.environ.setdefault("AIRFLOW__CORE__UNIT_TEST_MODE", "False")
