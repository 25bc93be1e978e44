"""Each failure that an operator can cause becomes one message with the cause and the next step."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pymysql
import pytest
from confluent_kafka import KafkaError, KafkaException
from pyspark.sql import SparkSession

from contract.names import lake_root
from contract.status import StatusFormatError, parse
from spark import job
from spark.errors import LakeError, PassingError
from spark.failures import message_of, passing
from spark.kafka.reading import Reading
from tests.spark.sessions import pipeline_in


def raised(cause: Exception) -> Exception:
    error = RuntimeError("Job aborted due to stage failure\n\tat org.apache.spark.Whatever(Whatever.scala:1)")
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError("java.io.IOException: No space left on device"), "compaction.max_offsets_per_batch"),
        (OSError("java.io.FileNotFoundException: /lake/x (Permission denied)"), "cannot be written"),
        (pymysql.err.OperationalError(1045, "Access denied for user 'headrace'"), "refused the user headrace"),
        (pymysql.err.OperationalError(2003, "Can't connect to MySQL server on '127.0.0.1'"), "does not answer"),
        (pymysql.err.OperationalError(2006, "MySQL server has gone away (Broken pipe)"), "does not answer"),
        (ValueError("Can not read response from server. Expected to read 171 bytes, read 67"), "does not answer"),
        (ValueError("[KAFKA_DATA_LOSS.PARTITIONS_DELETED] gone"), "DAG shop.snapshot"),
        (ValueError("org.apache.kafka.common.errors.TimeoutException: Timeout"), "Kafka at 127.0.0.1:1"),
        (
            ValueError("Total size of serialized results of 41 tasks is bigger than spark.driver.maxResultSize 1 GiB"),
            "give it more, by HEADRACE_SPARK_MEMORY",
        ),
        (OSError("java.lang.OutOfMemoryError: Java heap space"), "(Java heap space): give it more"),
    ],
    ids=[
        "disk",
        "rights",
        "password",
        "mysql",
        "mysql cut",
        "mysql cut in a row",
        "retention",
        "kafka",
        "results",
        "heap",
    ],
)
def test_a_cause_deep_down_is_found(tmp_path: Path, error: Exception, said: str) -> None:
    message = message_of(raised(error), pipeline_in(tmp_path))
    assert said in message
    assert "\n" not in message
    assert "org.apache.spark" not in message


@pytest.mark.parametrize(
    ("folder", "said"),
    [
        ("shop/a_x2eb", "headrace snapshot {path} --table shop.a.b --compact`, which makes it anew"),
        ("_changes/tbl=shop.a", "where it is one of a table, run the DAG shop.snapshot"),
        ("other/a", "where it is one of a table, run the DAG shop.snapshot"),
    ],
)
def test_of_a_file_that_is_lost_the_way_back_is_that_of_its_table(tmp_path: Path, folder: str, said: str) -> None:
    pipeline = pipeline_in(tmp_path)
    error = raised(
        RuntimeError(f"[FAILED_READ_FILE.FILE_NOT_EXIST] {lake_root(pipeline)}/{folder}/part-0.parquet gone")
    )
    assert said.format(path=pipeline.path) in message_of(error, pipeline)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("_repairs", "run the DAG shop.snapshot, or `headrace snapshot {path}`, for the tables that were repaired"),
        ("_checks", "or `headrace verify {path} --whole`, which finds anew"),
        ("_differences", "or `headrace verify {path} --whole`, which finds anew"),
        ("_schema_changes", "No row and no mark of a table goes by it"),
        ("_dead_letters", "Their tables count as unequal until a snapshot all the same"),
        ("_erasures", "What was erased does not come back"),
    ],
)
def test_so_is_it_of_the_lake_s_own_tables(tmp_path: Path, name: str, said: str) -> None:
    folder = tmp_path / "a lake"
    folder.mkdir()
    pipeline = pipeline_in(folder)
    path = f"file:{lake_root(pipeline)}/{name}/part-0.c000.zstd.parquet".replace(" ", "%20")
    told = message_of(raised(RuntimeError(f"[FAILED_READ_FILE.NO_HINT] reading file {path}. SQLSTATE: 1")), pipeline)
    table = f"{lake_root(pipeline)}/{name}"
    assert f"It is part-0.c000.zstd.parquet of the lake's own table {table}. Put it back from a copy" in told
    assert said.format(path=pipeline.path) in told
    assert "snapshot that was taken in meanwhile" not in told


def test_our_own_words_are_kept(tmp_path: Path) -> None:
    assert message_of(raised(LakeError("what, where, what to do")), pipeline_in(tmp_path)) == "what, where, what to do"


def test_a_status_that_is_none_or_of_a_newer_version_is_told_in_its_own_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    newer = json.dumps({"format": 99, "pipeline": "shop", "run": 1, "written_at": 0, "seconds": 1, "tables": {}})
    for text, said in (("{}", "_status.json of the lake is broken.*Remove it"), (newer, "format 99.*upgrade Headrace")):
        with pytest.raises(StatusFormatError) as found:
            parse(text)
        assert re.search(said, message_of(raised(found.value), pipeline_in(tmp_path)))
    assert capsys.readouterr().err == "", "no frames"


def test_what_is_not_known_is_told_by_its_innermost_reason(tmp_path: Path) -> None:
    message = message_of(raised(KeyError("something odd")), pipeline_in(tmp_path))
    assert "something odd" in message
    assert "log above" in message


def casts(value: str) -> None:
    raise ValueError(f"[CAST_INVALID_INPUT] The value '{value}' is malformed. SQLSTATE: 22018")


def test_of_what_is_not_known_the_log_has_the_place_and_nothing_has_a_value(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    value = "a-secret"
    with pytest.raises(ValueError, match=value) as caught:
        casts(value)
    message, log = message_of(raised(caught.value), pipeline_in(tmp_path)), capsys.readouterr()
    assert re.search(r'ValueError:\n(  File ".*\n.*\n)+  File ".*test_failures\.py", line \d+, in casts', log.err)
    assert "[CAST_INVALID_INPUT]: it tells a value of a row, and is left out. The log above" in message
    assert "a-secret" not in message + log.err + log.out
    message_of(pymysql.err.OperationalError(2003, "Can't connect to MySQL server"), pipeline_in(tmp_path))
    assert capsys.readouterr().err == "", "of what is known the message is enough"


def test_the_log_has_java_s_frames_without_what_java_says(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    statement = "SELECT raise_error('a-secret')"
    with pytest.raises(Exception, match="a-secret") as caught:
        spark.sql(statement).collect()
    message_of(caught.value, pipeline_in(tmp_path))
    log = capsys.readouterr().err
    assert re.search(r"^org\.apache\.spark\.\S+:\n  at org\.apache\.spark\.", log, re.MULTILINE)
    assert "a-secret" not in log


S3 = "software.amazon.awssdk.core.exception.SdkClientException: "


@pytest.mark.parametrize(
    ("error", "again"),
    [
        (pymysql.err.OperationalError(2003, "Can't connect to MySQL server on '127.0.0.1'"), True),
        (pymysql.err.OperationalError(1045, "Access denied for user 'headrace'"), False),
        (ValueError("org.apache.kafka.common.errors.TimeoutException: Timeout"), True),
        (ValueError("KafkaException: Failed to construct kafka consumer"), False),
        (OSError(f"{S3}Unable to execute HTTP request: Connect to 127.0.0.1:1 failed"), True),
        (OSError("S3Exception: Please reduce your request rate. (Service: S3, Status Code: 503, Request ID: 1)"), True),
        (OSError("S3Exception: Bad Request (Service: S3, Status Code: 400, Request ID: 1)"), False),
        (OSError("java.io.IOException: No space left on device"), False),
        (KeyError("something odd"), False),
        (PassingError("late"), True),
        (LakeError("wrong"), False),
    ],
)
def test_only_who_is_away_may_be_there_by_the_next_run(error: Exception, again: bool) -> None:
    assert passing(raised(error)) == again


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (KafkaError._ALL_BROKERS_DOWN, PassingError),
        (KafkaError.NOT_LEADER_FOR_PARTITION, PassingError),
        (KafkaError._AUTHENTICATION, LakeError),
    ],
)
def test_a_broker_that_is_away_may_be_there_by_the_next_run(tmp_path: Path, code: int, kind: type[LakeError]) -> None:
    with pytest.raises(LakeError, match="cannot be read") as caught, Reading(pipeline_in(tmp_path)):
        raise KafkaException(KafkaError(code))
    assert type(caught.value) is kind


@pytest.mark.parametrize(("error", "facts"), [(PassingError("late"), {"again": True}), (LakeError("wrong"), {})])
def test_the_report_tells_whether_another_run_may_do_better(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, facts: dict[str, Any]
) -> None:
    class EndedError(Exception):
        pass

    def end(*told: Any, file: str) -> None:
        raise EndedError(told)

    def work(*_: Any) -> dict[str, Any]:
        raise error

    monkeypatch.setattr(job, "_end", end)
    monkeypatch.setattr(job, "session", lambda name: None)
    monkeypatch.setattr(job.Interrupt, "listen", lambda self, spark: None)
    monkeypatch.setattr("sys.argv", ["verify", "--pipeline", str(pipeline_in(tmp_path).path)])
    with pytest.raises(EndedError) as caught:
        job.run("verify", work)
    assert caught.value.args[0] == ("verify", "shop", str(error), facts)
