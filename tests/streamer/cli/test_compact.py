"""`headrace compact` and its like become the Spark job: which process, and what is said if it cannot start."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from contract.job_options import taken

ROOT = Path(__file__).parents[3]
FILE = """format: 1
name: orders
source: {host: h, user: u, password: "${SHOP_PASSWORD}", server_id: 7}
tables: {include: ["shop.*"]}
kafka: {bootstrap: "h:9092"}
lake: {path: lake}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "orders.yaml"
    made.write_text(FILE)
    return made


def run(file: Path, *arguments: str, command: str = "compact", **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "streamer.cli", command, str(file), *arguments],
        cwd=ROOT, env={**os.environ, "SHOP_PASSWORD": "p", **environment}, capture_output=True, text=True, timeout=60,
    )  # fmt: skip


def test_it_is_the_jobs_process_with_its_arguments_and_options(file: Path, tmp_path: Path) -> None:
    python, jars = tmp_path / "python", tmp_path / "jars"
    python.write_text('#!/bin/sh\necho "$@"; echo "$PYSPARK_SUBMIT_ARGS"; echo "$PYTHONPATH"; exit 3\n')
    python.chmod(0o755)
    jars.mkdir()
    (jars / "a b.jar").touch()
    settings = {"HEADRACE_SPARK_PYTHON": str(python), "HEADRACE_SPARK_JARS": str(jars), "HEADRACE_SPARK_MEMORY": "3g"}
    once = run(file, **settings)
    assert (once.returncode, once.stderr) == (3, "starting Spark\n")
    job, submit, path = once.stdout.splitlines()
    assert job == f"{ROOT}/spark/jobs/compact.py --pipeline {file}"
    assert submit.startswith(f"--master 'local[*]' --driver-memory 3g --jars '{jars}/a b.jar' --conf")
    logging = f"-Dlog4j2.configurationFile=file://{ROOT}/spark/log4j2.properties"
    java = f"-XX:+UseParallelGC {logging} -Duser.timezone=UTC"
    assert submit.endswith(f"'spark.driver.extraJavaOptions={java}' pyspark-shell")
    assert path == str(ROOT)
    tidied = run(file, "--step", "vacuum", "--table", "shop.a", "--table", "shop.b", command="maintain", **settings)
    job = f"{ROOT}/spark/jobs/maintain.py --pipeline {file} --tables=shop.a,shop.b --steps=vacuum"
    assert tidied.stdout.splitlines()[0] == job
    erased = run(file, "shop.a", "7", '{"n": 8}', "--now", command="erase", **settings, LOGNAME="ada")
    job = f"{ROOT}/spark/jobs/erase.py --pipeline {file} --tables=shop.a"
    words, _, more = erased.stdout.splitlines()[0].partition(" --keys-file=")
    keys, *flags = more.split()
    assert (words, flags) == (job, ["--by=ada", "--now=yes"])
    assert taken(keys) == '["7", "{\\"n\\": 8}"]', "no list of processes shows them"
    mended = run(file, "--table", "shop.a", "--from", "-5", "--to", "9", command="repair", **settings, LOGNAME="ada")
    job = f"{ROOT}/spark/jobs/repair.py --pipeline {file} --tables=shop.a --from=-5 --to=9 --by=ada"
    assert mended.stdout.splitlines()[0] == job
    made = run(file, "shop.a", "shop.b", "--source", "kafka", command="backfill", **settings, LOGNAME="ada")
    job = f"{ROOT}/spark/jobs/backfill.py --pipeline {file} --tables=shop.a,shop.b --source=kafka --by=ada"
    assert made.stdout.splitlines()[0] == job
    read = run(file, "--table", "shop.a", "--existing", "--compact", command="snapshot", **settings)
    job = f"{ROOT}/spark/jobs/snapshot.py --pipeline {file} --tables=shop.a --existing=yes --compact=yes"
    assert read.stdout.splitlines()[0] == job
    checked = run(file, "--table", "shop.a", "--whole", "--anew", command="verify", **settings)
    job = f"{ROOT}/spark/jobs/verify.py --pipeline {file} --tables=shop.a --whole=yes --anew=yes"
    assert checked.stdout.splitlines()[0] == job
    short = "-XX:TieredStopAtLevel=1 -XX:+UseParallelGC"
    assert short in run(file, **settings, HEADRACE_SPARK_JAVA=short).stdout
    looping = run(file, "--loop", "--master", "spark://h:7077", **settings, HEADRACE_SPARK_JAVA=short)
    assert looping.stdout.startswith(f"{ROOT}/spark/jobs/compact_loop.py --pipeline {file}")
    assert "--master spark://h:7077 " in looping.stdout
    assert "TieredStopAtLevel" not in looping.stdout
    assert "-XX:+UseParallelGC" in looping.stdout


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        (
            "HEADRACE_SPARK_JARS",
            "/nowhere",
            "/nowhere, which holds no .jar file: let it name a folder that has them, or",
        ),
        (
            "HEADRACE_CACHE",
            "/nowhere",
            "error (no_spark): start compact: Spark lacks jars (delta-spark*.jar): HEADRACE",
        ),
        ("PATH", "/nowhere", "error (no_spark): start compact: there is no java on PATH"),
        ("HEADRACE_SPARK_PYTHON", "/nowhere", "start /nowhere: No such file or directory. Mend HEADRACE_SPARK_PYTHON"),
    ],
)
def test_what_it_cannot_be_started_with_is_told(file: Path, name: str, value: str, said: str) -> None:
    unset = {"HEADRACE_SPARK_JARS": "", "JAVA_HOME": ""}
    ended = run(file, **{**unset, name: value})
    assert ended.returncode == 1
    assert said in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_mistake_in_the_file_is_told_before_spark_starts(file: Path) -> None:
    file.write_text(FILE + "compaction: {every_seconds: 0}\n")
    ended = run(file, HEADRACE_SPARK_PYTHON="/nowhere")
    assert ended.returncode == 2
    assert "every_seconds" in ended.stderr


@pytest.mark.parametrize("command", ["snapshot", "compact", "verify", "maintain", "sql"])
def test_a_pipeline_that_feeds_no_lake_is_refused_before_spark_starts(file: Path, command: str) -> None:
    file.write_text(FILE + "checkpoints: {type: file, path: position}\n")
    ended = run(file, *(["SELECT 1"] if command == "sql" else []), command=command)
    assert ended.returncode == 2
    line = len(file.read_text().splitlines())
    assert f"{file}:{line}: checkpoints: the pipeline feeds no lake, which reads events" in ended.stderr
    assert "starting Spark" not in ended.stderr


@pytest.mark.parametrize(
    ("command", "arguments"),
    [("repair", ["--table", "nope.x"]), ("backfill", ["nope.x"]), ("snapshot", ["--table", "nope.x"]),
     ("verify", ["--table", "shop.a", "--table", "nope.x"])],
)  # fmt: skip
def test_a_table_that_the_file_cannot_have_is_refused_before_spark_starts(
    file: Path, command: str, arguments: list[str]
) -> None:
    ended = run(file, *arguments, command=command, HEADRACE_SPARK_PYTHON="/nowhere", COLUMNS="300")
    assert ended.returncode == 2
    assert f"nope.x is not one of the pipeline's tables (shop.*): see tables in {file}" in ended.stderr


@pytest.mark.parametrize(
    ("option", "command", "arguments", "told"),
    [
        (
            "'--master'",
            "compact",
            ["--master", "foo://bar"],
            "'foo://bar' is no place where Spark runs: write local[*] (or",
        ),
        ("'--master'", "maintain", ["--master", "local[x]"], "spark://host:port, yarn or k8s://..."),
        ("--step", "maintain", ["--step", "sweep"], "sweep is no step: there are "),
        ("--table", "repair", ["--table", "orders"], "'orders' is no table's name: write it as db.table"),
        ("--until", "backfill", ["shop.a", "--since", "2026-11-22T10:42Z", "--until", "now"], "'now' is no time"),
        ("--to", "seek", ["--to", "bogus"], "'bogus' is none of earliest, latest, a GTID set, a file and position"),
        ("--keys", "repair", ["--table", "shop.a", "--keys", "7,8"], "what is given as keys is no JSON"),
        ("--table", "repair", ["--keys", "[7]"], "keys and ranges are those of one table: name it, as db.table"),
        ("--table", "repair", ["--from", "9"], "keys and ranges are those of one table: name it, as db.table"),
        (
            "--from / --to",
            "repair",
            ["--table", "shop.a", "--from", "9", "--to", "1"],
            "the wrong way round: from 9 to 1",
        ),
        (
            "--keys / --from",
            "repair",
            ["--table", "shop.a", "--from", "9", "--keys", "[1]"],
            "keys and a range are given: choose one",
        ),
        ("--keys", "backfill", ["shop.a", "--keys", "7,8"], "what is given as keys is no JSON"),
        ("TABLES", "backfill", ["shop.a", "shop.b", "--keys", "[7]"], "keys, ranges and times are those of one table"),
        (
            "--since",
            "backfill",
            ["shop.a", "--since", "10:42"],
            "'10:42' is no time: write it such as 2026-11-22T10:42:00Z",
        ),
        ("--since", "backfill", ["shop.a", "--since", "2026-11-22T10:42"], "has no zone: add Z for UTC"),
        ("--from / --to", "backfill", ["shop.a", "--from", "9", "--to", "1"], "the wrong way round: from 9 to 1"),
        (
            "--from / --until",
            "backfill",
            ["shop.a", "--from", "9", "--until", "2026-11-22T10:42Z"],
            "and a time are given: choose one",
        ),
        ("'--source'", "backfill", ["shop.a", "--source", "mars"], "'mars' is not one of"),
        ("KEYS", "erase", ["shop.a", "7", "{n: 8}"], "shop.a: key 2 is no JSON"),
        ("KEYS", "erase", ["shop.a", ""], "shop.a: no key is given. Nothing was erased"),
        ("TABLE", "erase", ["orders", "7"], "'orders' is no table's name: write it as db.table"),
        ("--table", "maintain", ["--table", "orders"], "'orders' is no table's name: write it as db.table"),
    ],
)
def test_what_the_command_line_alone_shows_to_be_wrong_is_told_before_spark_starts(
    file: Path, option: str, command: str, arguments: list[str], told: str
) -> None:
    ended = run(file, *arguments, command=command, HEADRACE_SPARK_PYTHON="/nowhere", COLUMNS="300")
    assert ended.returncode == 2, ended.stderr
    assert f"Invalid value for {option}: " in ended.stderr
    assert "starting Spark" not in ended.stderr
    assert told in ended.stderr
    assert "Traceback" not in ended.stderr


def test_help_says_what_spark_needs(file: Path) -> None:
    for command in ("compact", "snapshot", "verify", "maintain", "repair", "backfill", "erase"):
        told = " ".join(run(file, "--help", command=command, COLUMNS="200").stdout.split())
        assert "make spark-jars fetches, for a lake on S3 make spark-s3-jars too; HEADRACE_SPARK_JARS names" in told


def test_a_password_that_is_not_set_is_told_once_and_not_by_the_job(file: Path) -> None:
    file.write_text(FILE.replace("SHOP_PASSWORD", "NOT_SET_HERE"))
    ended = run(file, "--step", "vacuum", command="maintain", HEADRACE_SPARK_PYTHON="/nowhere")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "fix: export NOT_SET_HERE=..." in ended.stderr
