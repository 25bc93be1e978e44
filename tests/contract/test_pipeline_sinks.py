"""Sinks and checkpoints in the pipeline file: what fits together loads, each mistake is told with line, key and fix."""

from __future__ import annotations

from pathlib import Path

import pytest

from contract.pipeline import Pipeline, PipelineFileError, load
from contract.pipeline_sinks import FileCheckpoint, FilesOutput, KafkaOutput, OwnClass, StdoutOutput

HEAD = """\
format: 1
name: sales
source: {host: h, user: u, password_file: secret, server_id: 7}
tables: {include: ["shop.*"]}
"""
KAFKA = 'kafka: {bootstrap: "h:9092"}\nlake: {path: lake}\n'
FILE = "checkpoints: {type: file, path: position}\n"


def written(folder: Path, text: str) -> Path:
    path = folder / "sales.yaml"
    path.write_text(HEAD + text)
    return path


def loaded(folder: Path, text: str) -> Pipeline:
    return load(written(folder, text))


def test_without_sinks_it_is_kafka_exactly_once(tmp_path: Path) -> None:
    found = loaded(tmp_path, KAFKA)
    assert found.sinks == (KafkaOutput(),)
    assert (found.delivery, found.feeds_lake) == ("exactly_once", True)


def test_a_pipeline_needs_no_kafka(tmp_path: Path) -> None:
    found = loaded(tmp_path, "sinks:\n  - {type: files, path: out, compression: zstd}\n  - type: stdout\n" + FILE)
    files, stdout = found.sinks
    assert isinstance(files, FilesOutput)
    assert files.compression == "zstd"
    assert isinstance(stdout, StdoutOutput)
    assert isinstance(found.checkpoints, FileCheckpoint)
    assert (found.delivery, found.has_kafka, found.feeds_lake) == ("at_least_once", False, False)


@pytest.mark.parametrize(
    ("text", "delivery"),
    [
        ("sinks: [{type: kafka}, {type: stdout}]\n" + KAFKA, "at_least_once"),
        (FILE + KAFKA, "at_least_once"),
        ("sinks: [{type: kafka}]\n" + KAFKA, "exactly_once"),
        ("streamer: {delivery: at_least_once}\n" + KAFKA, "at_least_once"),
    ],
)
def test_the_default_delivery_is_the_best_that_the_sinks_can_do(tmp_path: Path, text: str, delivery: str) -> None:
    assert loaded(tmp_path, text).delivery == delivery


def test_a_class_of_ones_own_gets_its_settings(tmp_path: Path) -> None:
    text = "sinks: [{type: my_package.sinks.MySink, settings: {url: 'x', n: [1]}}]\ncheckpoints: {type: my.Positions}\n"
    found = loaded(tmp_path, text)
    assert found.sinks == (OwnClass(type="my_package.sinks.MySink", settings={"url": "x", "n": [1]}),)
    assert found.checkpoints == OwnClass(type="my.Positions")


@pytest.mark.parametrize(
    ("text", "line", "key", "words"),
    [
        ("sinks: [{type: file, path: x}]\n" + FILE, 5, "sinks[0].type", "kafka, files, objects, stdout, or a class"),
        ("sinks: [{path: x}]\n" + FILE, 5, "sinks[0].type", "is missing"),
        ("sinks: [stdout]\n" + FILE, 5, "sinks[0].type", "is missing"),
        ("sinks:\n  - type: files\n    pth: x\n" + FILE, 7, "sinks[0].pth", "did you mean path?"),
        ("sinks:\n  - type: files\n    path: x\n    max_bytes: 3\n" + FILE, 8, "sinks[0].max_bytes", "at least 1024"),
        ("sinks: [{type: objects, url: /x}]\n" + FILE, 5, "sinks[0].url", "s3://bucket"),
        ("sinks: [{type: objects, url: file:///srv/x}]\n" + FILE, 5, "sinks[0].url", "{type: files, path: /srv/x}"),
        ("sinks: []\n" + FILE, 5, "sinks", "names no sink"),
        ("sinks: [{type: stdout}, {type: stdout}]\n" + FILE, 5, "sinks", "named twice"),
        ("sinks: [{type: stdout}]\n", 5, "sinks", "checkpoints: {type: file"),
        ("checkpoints: {type: kafka}\nsinks: [{type: stdout}]\n", 5, "checkpoints", "there is no commit log"),
        ("checkpoints: {type: files}\nsinks: [{type: stdout}]\n", 5, "checkpoints.type", "kafka, file, or a class"),
        ("sinks: [{type: kafka}, {type: stdout}]\nlake: {path: lake}\n", 1, "kafka.bootstrap", "is missing"),
        ('kafka: {bootstrap: "h:9092"}\n', 1, "lake.path", "is missing"),
        (
            "sinks: [{type: stdout}]\nstreamer: {delivery: exactly_once}\n" + FILE, 6, "streamer.delivery",
            "needs Kafka as the only sink",
        ),
        ("streamer: {delivery: exactly_once}\n" + FILE + KAFKA, 5, "streamer.delivery", "delivery: at_least_once"),
        ("streamer: {high_availability: true}\n" + FILE + KAFKA, 5, "streamer.high_availability", "remove"),
        (
            "sinks: [{type: stdout}]\nrecords: {headers: [op]}\n" + FILE, 6, "records.headers",
            "is of Kafka's records, and Kafka is none of the sinks",
        ),
        ("sinks: [{type: a.b-c}]\n" + FILE, 5, "sinks[0].type", "a class by its dotted path"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_its_place(tmp_path: Path, text: str, line: int, key: str, words: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(PipelineFileError) as caught:
        load(path)
    assert f"{path}:{line}: {key}: " in str(caught.value)
    assert words in str(caught.value)


def test_a_secret_of_a_store_never_stands_in_the_file(tmp_path: Path) -> None:
    with pytest.raises(PipelineFileError) as caught:
        loaded(tmp_path, "sinks: [{type: objects, url: 's3://b/x', options: {secret: hunter2}}]\n" + FILE)
    assert "sinks[0].options.secret: stands in the file as plain text" in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_a_secret_is_in_no_repr(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("S3", "hunter2")
    found = loaded(tmp_path, 'sinks: [{type: objects, url: "s3://b/x", options: {secret: "${S3}"}}]\n' + FILE)
    assert "hunter2" not in repr(found)


def test_debeziums_form_goes_without_a_lake_and_exactly_once(tmp_path: Path) -> None:
    found = loaded(tmp_path, 'kafka: {bootstrap: "h:9092", cleanup: compact}\nrecords: {format: debezium}\n')
    assert (found.delivery, found.commits_in_kafka, found.feeds_lake) == ("exactly_once", True, False)


@pytest.mark.parametrize(
    ("text", "place", "fix"),
    [
        (KAFKA + "records:\n  format: debezium\n", "records.format: does not go with a lake", "remove lake"),
        (KAFKA + "records:\n  debezium: {decimal: string}\n", "records.debezium: is of format: debezium", "add format"),
        (KAFKA + "records:\n  format: avro\n", "records.format: ", "write one of headrace, debezium"),
    ],
)
def test_what_does_not_go_with_a_form_of_records_is_told_at_its_line(
    tmp_path: Path, text: str, place: str, fix: str
) -> None:
    with pytest.raises(PipelineFileError) as caught:
        loaded(tmp_path, text)
    assert f"sales.yaml:8: {place}" in str(caught.value)
    assert f"fix: {fix}" in str(caught.value)
