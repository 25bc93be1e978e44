"""What Airflow's side of Headrace takes from the environment; read when it is used, not at import.

| variable           | meaning                     | default                |
|--------------------|-----------------------------|------------------------|
| HEADRACE_PIPELINES | folder of the pipeline files| `<checkout>/pipelines` |

How the Spark jobs are started is said by the variables of contract/spark_process.py.
"""

from __future__ import annotations

import os
from pathlib import Path

from headrace import CHECKOUT


def pipelines_folder() -> Path:
    return Path(os.environ.get("HEADRACE_PIPELINES") or CHECKOUT / "pipelines")
