"""The maintenance job: the files of a pipeline's lake made few, and those removed that nothing needs any more."""

from __future__ import annotations

from contract.pipeline_maintenance import STEPS
from spark.job import run
from spark.maintenance.maintenance import maintain

if __name__ == "__main__":
    run("maintain", maintain, {"steps": f"of {', '.join(STEPS)}, by comma; all when left out"})
