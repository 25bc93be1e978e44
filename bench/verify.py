"""How fast a table is proven: `python -m bench.verify`.

A lake is made from a MySQL's rows, and a check's reading of the source and its comparison are timed, over tables of one
content and other keys: integers (read in ranges by several connections), texts (buckets, one pass), and with a DOUBLE
(hashed by its fraction and exponent).
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bench.headrace import ROOT
from contract.checkpoint import Checkpoint
from contract.pipeline import Pipeline
from contract.sequence import file_number
from contract.spark_process import COLLECTOR
from contract.status import LakeStatus, TableStatus
from spark.lake.lake import Lake
from spark.proof.verification import Verification
from spark.source.row_texts import rows_of
from spark.source.source import Source
from spark.tables.rows import parsed, typed
from spark.tables.schema import Schemas, prepare
from stack.mysql import USER, MySQL
from stack.ports import free_port

COLUMNS = """customer INT UNSIGNED NOT NULL, status ENUM('new','paid','sent') NOT NULL, amount DECIMAL(10,2) NOT NULL,
  note VARCHAR(100), created DATETIME NOT NULL, changed TIMESTAMP(3) NULL"""
TABLES = {
    "integers": "id BIGINT PRIMARY KEY",
    "texts": "id VARCHAR(20) PRIMARY KEY",
    "doubles": "id BIGINT PRIMARY KEY, ratio DOUBLE",
}
SEED = 1000


def fill(mysql: MySQL, rows: int) -> None:
    number = "a.n * 1000000 + b.n * 1000 + c.n"
    values = (
        f"({number}) % 9973, elt(({number}) % 3 + 1, 'new', 'paid', 'sent'), (({number}) % 100000) / 100, "
        f"concat('order ', {number}, ' of a customer who writes notes'), '2026-01-01' + interval ({number}) second, "
        f"'2026-01-01' + interval ({number}) second"
    )
    numbers = f"bench.n a JOIN bench.n b JOIN bench.n c WHERE {number} < {rows} AND a.n <= {rows // 1_000_000}"
    with mysql.connect(autocommit=True) as connection, connection.cursor() as cursor:
        for statement in ("CREATE DATABASE bench", "SET sql_log_bin = 0", "CREATE TABLE bench.n (n INT PRIMARY KEY)"):
            cursor.execute(statement)
        cursor.execute(f"INSERT INTO bench.n VALUES {','.join(f'({n})' for n in range(SEED))}")
        for table, key in TABLES.items():
            cursor.execute(f"CREATE TABLE bench.{table} ({key}, {COLUMNS})")
            first = {"texts": f"concat('k', {number})", "doubles": f"{number}, ({number}) / 7e0"}.get(table, number)
            cursor.execute(f"INSERT INTO bench.{table} SELECT {first}, {values} FROM {numbers}")
            cursor.execute(f"ANALYZE TABLE bench.{table}")


def pipeline_of(mysql: MySQL, folder: Path, readers: int) -> Pipeline:
    source = {"host": "127.0.0.1", "port": mysql.port, "user": USER, "password": mysql.password, "server_id": 7}
    given = {"include": ["bench.*"], "exclude": ["bench.n"]}
    return Pipeline.model_validate(
        {
            "format": 1, "name": "bench", "source": source, "tables": given, "kafka": {"bootstrap": "127.0.0.1:1"},
            "lake": {"path": str(folder)}, "snapshot": {"parallelism": readers},
        }
    )  # fmt: skip


def lake_of(lake: Lake, source: Source, low: Checkpoint) -> LakeStatus:
    """The tables as MySQL has them, and what says so."""
    tables = {}
    for table in TABLES:
        schema = source.schema("bench", table)
        assert schema is not None
        path = lake.table("bench", table)
        prepare(lake.spark, path, schema, schema)
        rows = rows_of(lake.spark, source, schema, ["1 = 1"]).withColumn("_wire", parsed("after", schema.columns))
        rows.select(*typed("_wire", schema)).write.format("delta").mode("append").save(path)
        version = lake.version(path)
        tables[f"bench.{table}"] = TableStatus(db="bench", table=table, rows=0, changes=0, version=version)
    facts: dict[str, Any] = {"run": 1, "written_at": 0, "seconds": 0, "changes_version": None}
    return LakeStatus(pipeline="bench", tables=tables, checkpoint=low, **facts)


def measure(check: Verification, status: LakeStatus, table: str) -> dict[str, float]:
    began = time.monotonic()
    (answer,) = check.ask([("bench", table)])
    read = time.monotonic()
    finding = check.compare(answer, status, Schemas([]))
    seconds = time.monotonic() - read
    check.reading.kept.forget([answer.name])
    if finding.boundary is None:
        raise SystemExit(f"bench.{table} is not equal: {answer.total} and {finding.lake}")
    rows = answer.total.rows
    whole = rows / (read - began + seconds)
    return {"rows": rows, "source": rows / (read - began), "lake": rows / seconds, "together": whole}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.verify", description=__doc__)
    parser.add_argument("--rows", type=int, default=3_000_000, help="of each table; less than a thousand million")
    parser.add_argument("--readers", type=int, default=2, help="snapshot.parallelism")
    parser.add_argument("--java", default=COLLECTOR, help="options of Spark's JVM; a job's own")
    parser.add_argument("--out", type=Path, default=ROOT / "bench" / "out" / "verify.json")
    return parser.parse_args()


def main() -> None:
    from spark.session import session
    from stack.maven import spark_jars

    chosen = arguments()
    settings = {"spark.master": "local[2]", "spark.jars": ",".join(map(str, spark_jars())), "spark.driver.memory": "2g"}
    spark = session("bench", settings | {"spark.driver.extraJavaOptions": f"-Duser.timezone=UTC {chosen.java}"})
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as name, ExitStack() as running:
        mysql = MySQL(Path(name) / "mysql", free_port())
        mysql.start()
        running.callback(mysql.kill)
        fill(mysql, chosen.rows)
        pipeline = pipeline_of(mysql, Path(name) / "lake", chosen.readers)
        source = running.enter_context(Source(pipeline))
        file, pos = source.position()
        facts: dict[str, Any] = {"connector_id": "bench", "server_id": 7, "server_uuid": "bench", "epoch": 0}
        low = Checkpoint(
            pipeline="bench", file=file, pos=pos, gtid_set=source.executed(), ts_ms=0, events=0, written_at=0, **facts
        )
        assert file_number(file)
        lake = Lake(spark, pipeline)
        lake.prove_writable()
        status = lake_of(lake, source, low)
        found: dict[str, dict[str, float]] = {}
        for table in (next(iter(TABLES)), *TABLES):  # the first once more: what was cold, is warm
            found[table] = measure(Verification(spark, pipeline, lake, source, low), status, table)
            told = ", ".join(f"{part} {found[table][part]:,.0f} rows/s" for part in ("source", "lake", "together"))
            print(f"{table}: {found[table]['rows']:,} rows; {told}", flush=True)
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    chosen.out.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
