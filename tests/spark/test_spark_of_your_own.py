"""The session that docs/readers.md makes reads a table of the lake."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from stack.maven import spark_jars_folder

ROOT = Path(__file__).parents[2]
TABLE = ".headrace/lake/flights/nycflights/flights"


@pytest.mark.soak
def test_it_reads_a_table(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path / "flights"), pa.table({"tailnum": ["N10156"]}))
    [code] = re.findall(r"```python\n(from pyspark.*?)```", (ROOT / "docs" / "readers.md").read_text(), re.DOTALL)
    assert TABLE in code
    script = tmp_path / "read.py"
    script.write_text(code.replace(TABLE, str(tmp_path / "flights")))
    given = {"HEADRACE_SPARK_JARS": str(spark_jars_folder()), "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, env={**os.environ, **given}, capture_output=True, text=True
    )
    assert "N10156" in done.stdout, done.stderr[-2000:]
