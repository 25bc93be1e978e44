"""The pipeline file: what is right loads, and every mistake is named with file, line, key and fix."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from contract import cron, names
from contract.pipeline import Pipeline, PipelineFileError, load
from contract.pipeline_mistakes import OTHERS
from contract.start_at import Place

EXAMPLE = Path(__file__).parents[2] / "pipelines" / "flights.yaml"


@pytest.fixture(autouse=True)
def _password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_MYSQL_PASSWORD", "s3cret")


def edited(tmp_path: Path, **changes: str) -> Path:
    """A copy of the example in which each text (underscores stand for itself) is replaced."""
    text = EXAMPLE.read_text()
    for old, new in changes.values():
        assert old in text
        text = text.replace(old, new, 1)
    path = tmp_path / "edited.yaml"
    path.write_text(text)
    return path


def line_of(path: Path, text: str) -> int:
    return next(n for n, line in enumerate(path.read_text().splitlines(), 1) if text in line)


def test_the_example_loads_and_is_frozen() -> None:
    pipeline = load(EXAMPLE)
    assert pipeline.name == "flights"
    assert pipeline.path == EXAMPLE
    assert pipeline.source.secret() == "s3cret"
    with pytest.raises(ValueError, match="frozen"):
        pipeline.name = "other"  # type: ignore[misc]


def test_environment_variables_fill_in_and_defaults_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_MYSQL_PORT", "3999")
    monkeypatch.delenv("HEADRACE_KAFKA_PORT", raising=False)
    pipeline = load(EXAMPLE)
    assert pipeline.source.port == 3999
    assert pipeline.kafka.bootstrap == "127.0.0.1:29092"


def test_three_mistakes_are_told_in_one_go(tmp_path: Path) -> None:
    path = edited(
        tmp_path,
        a=("flavor: mysql", "flavor: oracle"),
        b=("partitions: 2", "partitons: 2"),
        c=("chunk_rows: 100000", "chunk_rows: 3"),
    )
    with pytest.raises(PipelineFileError) as caught:
        load(path)
    text = str(caught.value)
    assert "3 mistakes" in text
    for key, mark in (
        ("source.flavor", "oracle"),
        ("kafka.partitons", "partitons"),
        ("snapshot.chunk_rows", "chunk_rows: 3"),
    ):
        assert f"{path}:{line_of(path, mark)}: {key}: " in text
    assert "did you mean partitions?" in text
    assert "fix: write one of mysql, mariadb" in text
    assert "allowed: mysql" not in text, "it would be the same words again"
    assert "at least 100" in text


def test_a_wrong_pattern_is_one_mistake_and_not_an_empty_list_too(tmp_path: Path) -> None:
    with pytest.raises(PipelineFileError, match="1 mistake\n") as caught:
        load(edited(tmp_path, a=('["nycflights.*"]', '["nycflights"]')))
    assert caught.value.problems[0].key == "tables.include[0]"


def test_a_text_that_is_no_start_is_not_said_to_be_a_wrong_gtid(tmp_path: Path) -> None:
    with pytest.raises(PipelineFileError, match="'lates' is none of earliest, latest") as caught:
        load(edited(tmp_path, a=("start: latest", "start: lates")))
    assert "MariaDB" not in str(caught.value)


def test_a_missing_key_names_its_section(tmp_path: Path) -> None:
    path = edited(tmp_path, a=("  server_id: 54001", "  #"))
    with pytest.raises(PipelineFileError, match=r"source\.server_id: is missing"):
        load(path)


def test_a_missing_environment_variable_is_a_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEADRACE_MYSQL_PASSWORD")
    with pytest.raises(PipelineFileError, match="HEADRACE_MYSQL_PASSWORD is not set"):
        load(EXAMPLE)


def test_no_secret_is_shown(tmp_path: Path) -> None:
    assert "s3cret" not in repr(load(EXAMPLE))
    path = edited(tmp_path, a=("password: ${HEADRACE_MYSQL_PASSWORD}", "password: [hunter2]"))
    with pytest.raises(PipelineFileError) as caught:
        load(path)
    assert "hunter2" not in str(caught.value)


def test_a_password_file_is_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("from-file\n")
    path = edited(tmp_path, a=("password: ${HEADRACE_MYSQL_PASSWORD}", f"password_file: {secret}"))
    assert load(path).source.secret() == "from-file"


@pytest.mark.parametrize(
    ("written", "begin"),
    [
        ("latest", "latest"),
        ("earliest", "earliest"),
        ("binlog.000012:4567", Place("binlog.000012", 4567)),
        ("my-host-bin.1000001:4294967300", Place("my-host-bin.1000001", 4294967300)),
        ("2026-11-21T17:00:00Z", datetime(2026, 11, 21, 17, tzinfo=UTC)),
        ('"2026-11-21 19:00:00.25+02:00"', datetime(2026, 11, 21, 17, 0, 0, 250000, tzinfo=UTC)),
    ],
)
def test_every_way_to_say_where_to_begin(tmp_path: Path, written: str, begin: object) -> None:
    assert load(edited(tmp_path, a=("start: latest", f"start: {written}"))).streamer.begin() == begin


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('["nycflights.*"]', '["nycflights"]', "not of the form db.table"),
        ("start: latest", "start: yesterday", "none of earliest, latest, a GTID set, a file and position"),
        ("start: latest", "start: 2026-11-21T17:00:00", "has no zone: add Z for UTC"),
        ("start: latest", "start: 2026-11-21", "has no zone: add Z for UTC"),
        ("start: latest", "start: 2026-13-21T17:00:00Z", "is no time"),
        ("start: latest", "start: 0001-01-01T00:00:00+14:00", "in no year that a calendar has"),
        ("host: 127.0.0.1", 'host: "a\\0b"', "source.host: holds a NUL"),
        ("start: latest", "start: binlog.000001:3", "begins before position 4"),
        ("start: latest", "start: 0-1-270", "is no GTID: uuid:n"),
        ("{pipeline}.{db}.{table}", "{pipeline}.{dbs}", "allowed: pipeline, db, table"),
        ("delivery: exactly_once", "delivery: at_most_once", "exactly_once"),
        ("127.0.0.1:${HEADRACE_KAFKA_PORT:-29092}", "nowhere", "host:port"),
        ("name: flights ", "name: Flights!", "name"),
        ("format: 1 ", "format: 7 ", "fix: write 1"),
        ("name: flights ", "name: Flights! ", "form that is wanted\n    fix: write a lower case letter, then"),
        (
            "path: ${HEADRACE_LAKE:-.headrace/lake}",
            'path: ""',
            "lake.path: is empty\n    fix: write a text; folder, or",
        ),
        ('["nycflights.*"]', "nycflights.*", "fix: write a list, such as [a, b]"),
        ('["nycflights.*"]', "[]", "tables.include: is empty"),
        ("flavor: mysql", "flavor: oracle", "fix: write one of mysql, mariadb"),
        ("\nlake:", "\nlakes:", "fix: did you mean lake?"),  # a part of its default path, which is no secret
    ],
)
def test_what_is_not_allowed_is_said(tmp_path: Path, old: str, new: str, words: str) -> None:
    path = edited(tmp_path, a=(old, new))
    with pytest.raises(PipelineFileError) as caught:
        load(path)
    assert words in str(caught.value)
    assert OTHERS not in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "fix"),
    [
        ('["nycflights.*"]', '["nycflights"]', "write nycflights.* where nycflights is a database, or DB.nycflights"),
        ("\nlake:", "\ncolumns: {exclude: [shop.a]}\nlake:", "write shop.a.COLUMN"),
        ('"{pipeline}.{db}.{table}"', "{pipeline}", "write the value in quotes"),
        ("start: latest", "start: yesterday", "write one of them"),
        ("start: latest", "start: 2026-11-21", "write it as 2026-11-21T17:00:00Z"),
        ("start: latest", "start: binlog.000001:3", "write binlog.000001:4, or a later position"),
        ('schedule: "* * * * *"', "schedule: every minute", "write '*/5 * * * *' for every five minutes"),
        ("{pipeline}.{db}.{table}", "{pipeline}.{dbs}", "write {pipeline} or {db} or {table} in its place"),
        ("host: 127.0.0.1", "host: a/b", "write a host's name or address, such as db.example.org"),
        ("host: 127.0.0.1", "failover: [x:y]\n  host: h", "write host or host:port, such as db2.example.org:3306"),
        ("\nlake:", "\nkeys: [{tables: [a.b], columns: [c, C]}]\nlake:", "name each column once"),
        ("\nlake:", "\ntopics: [{tables: [a.b]}]\nlake:", "give partitions, replication"),
        (
            "\nlake:",
            "\ntransforms: [{tables: [a.b], function: f}]\nlake:",
            "write one, such as package.module.function",
        ),
        ("quality:", "quality:\n  notifier: {type: Smtp}", "write a notifier by its dotted path"),
        ("quality:", "quality:\n  notifier: a.B", "write its keys below it, or remove the line"),
        ("flavor: mysql", "flavor: mysql\n  tls:", "write its keys below it, or remove the line"),
        ("partitions: ", "properties: {acks.x: 1}\n  partitions: ", "write the value in quotes"),
        ("quality:", "quality:\n  webhook: http://h/x\n  notifier: {type: a.B}", "remove one of the two"),
    ],
)
def test_each_mistake_of_a_value_says_what_to_write_instead(tmp_path: Path, old: str, new: str, fix: str) -> None:
    with pytest.raises(PipelineFileError) as caught:
        load(edited(tmp_path, a=(old, new)))
    assert f"\n    fix: {fix}" in str(caught.value)
    assert OTHERS not in str(caught.value)


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        ("every minute", "it has 2 fields, not 5"),
        ("* * * *", "it has 4 fields"),
        ("", "it has 0 fields"),
        ("@often", "it has 1 fields"),
        ("60 * * * *", "'60' is no minute of a cron schedule: 0 to 59"),
        ("* 24 * * *", "is no hour"),
        ("* * 0 * *", "is no day of the month"),
        ("* * * month *", "is no month"),
        ("* * * * 8", "is no day of the week"),
        ("*/0 * * * *", "is no minute"),
        ("30-10 * * * *", "is no minute"),
        ("1,,2 * * * *", "is no minute"),
        ("0 0 30 2 *", "no such month has a day 30"),
    ],
)
def test_a_wrong_schedule_is_named_with_its_line(tmp_path: Path, schedule: str, words: str) -> None:
    path = edited(tmp_path, a=('schedule: "* * * * *"', f'schedule: "{schedule}"'))
    with pytest.raises(PipelineFileError) as caught:
        load(path)
    assert f"{path}:{line_of(path, 'schedule:')}: compaction.schedule: " in str(caught.value)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "schedule", ["* * * * *", "*/5 0-6,22 1 jan-mar,12 MON-fri", "0 0 31 2 sun", "1-59/2 * * * 7", "@daily"]
)
def test_a_schedule_that_is_taken_is_one_to_airflow(schedule: str) -> None:
    croniter = pytest.importorskip("croniter").croniter
    assert cron.check(schedule) == schedule
    assert croniter.is_valid(schedule)


@pytest.mark.parametrize(
    "value", ["2026-13-45", "2026-02-30 00:00:00", "!!python/object:os.system x", "!!int x", "!!bool x", '!!int ""']
)
def test_a_scalar_that_yaml_cannot_read_is_a_mistake(tmp_path: Path, value: str) -> None:
    path = edited(tmp_path, a=("start: latest", f"start: {value}"))
    with pytest.raises(PipelineFileError) as caught:
        load(path)
    assert f"{path}:{line_of(path, 'start:')}: streamer.start: YAML takes the value for one of the kind" in str(
        caught.value
    )
    assert "fix: write it in quotes" in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new"), [("exclude: []", "exclude: &all [*all]"), ("start: latest", "start: late\x00st")]
)
def test_yaml_that_no_reader_can_take_is_a_mistake(tmp_path: Path, old: str, new: str) -> None:
    with pytest.raises(PipelineFileError, match="fix: "):
        load(edited(tmp_path, a=(old, new)))


PASSWORD = "password: ${HEADRACE_MYSQL_PASSWORD}"


@pytest.mark.parametrize("written", ["hunter2", "${UNKNOWN_TO_ALL:-hunter2}", "2026-12-31", "0x12345"])
def test_a_password_in_the_file_is_a_mistake(tmp_path: Path, written: str) -> None:
    path = edited(tmp_path, a=(PASSWORD, f"password: {written}"))
    with pytest.raises(PipelineFileError) as caught:
        load(path)
    text = str(caught.value)
    assert f"{path}:{line_of(path, 'password:')}: source.password: stands in the file as plain text" in text
    assert "set the environment variable NAME, or give password_file" in text
    assert "hunter2" not in text


def test_a_password_of_the_broker_in_the_file_is_a_mistake(tmp_path: Path) -> None:
    path = edited(tmp_path, a=("kafka:\n", "kafka:\n  properties: {sasl.password: hunter2}\n"))
    with pytest.raises(PipelineFileError, match=r"properties\.sasl\.password: stands in the file as plain"):
        load(path)
    path = edited(tmp_path, a=("kafka:\n", "kafka:\n  properties: {sasl.password: '${HEADRACE_MYSQL_PASSWORD}'}\n"))
    assert load(path).kafka.properties == {"sasl.password": "s3cret"}


def test_a_secret_is_read_from_the_file_that_is_named(tmp_path: Path) -> None:
    secret = tmp_path / "run-secret"
    secret.write_text("from a file \n")
    path = edited(tmp_path, a=(PASSWORD, f"password: ${{file:{secret}}}"))
    pipeline = load(path)
    assert pipeline.source.secret() == "from a file "
    assert "from a file" not in repr(pipeline)
    secret.write_text("\n")
    with pytest.raises(PipelineFileError, match=r"source\.password: is empty\n.*write a text into"):
        load(path)
    secret.unlink()
    with pytest.raises(
        PipelineFileError, match=r"source\.password: the file .*run-secret cannot be read: No such file"
    ):
        load(path)
    assert load(path, secrets=False).name == "flights"


def test_a_file_is_read_for_secrets_alone(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("never shown")
    path = edited(tmp_path, a=("kafka:\n", f"kafka:\n  properties: {{client.id: '${{file:{other}}}'}}\n"))
    with pytest.raises(PipelineFileError, match=r"client\.id: is no secret") as caught:
        load(path)
    assert "never shown" not in str(caught.value)


def test_an_empty_password_is_a_mistake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_MYSQL_PASSWORD", "")
    with pytest.raises(PipelineFileError, match=r"source\.password: is empty\n.*HEADRACE_MYSQL_PASSWORD"):
        load(EXAMPLE)
    with pytest.raises(PipelineFileError, match=r"source\.password: is empty"):
        load(edited(tmp_path, a=(PASSWORD, "password: ${UNKNOWN_TO_ALL:-}")))
    secret = tmp_path / "secret"
    secret.write_text("\n")
    pipeline = load(edited(tmp_path, a=(PASSWORD, f"password_file: {secret}")))
    with pytest.raises(OSError, match="the file is empty"):
        pipeline.source.secret()


def test_the_servers_own_tables_never_take_part(tmp_path: Path) -> None:
    tables = load(edited(tmp_path, a=('["nycflights.*"]', '["*.*"]'))).tables
    assert tables.match("shop", "user")
    assert not any(tables.match(db, "user") for db in ("mysql", "sys", "information_schema", "performance_schema"))


def test_kafka_properties_that_break_a_promise_are_refused(tmp_path: Path) -> None:
    given = """  properties:
    security.protocol: SASL_SSL
    acks: "1"
    enable.idempotence: "false"
    sasl.password: hunter2
    bootstrap.servers: elsewhere:9092
"""
    path = edited(tmp_path, a=("kafka:\n", "kafka:\n" + given), b=("partitions: 2", "partitions: 0"))
    with pytest.raises(PipelineFileError) as caught:
        load(path)
    text = str(caught.value)
    assert "5 mistakes" in text
    for key, reason in (
        ("acks", "changes could be lost"),
        ("enable.idempotence", "changes could be lost"),
        ("bootstrap.servers", "kafka.bootstrap says it"),
    ):
        assert f"{path}:{line_of(path, key)}: kafka.properties.{key}: is refused: " in text
        assert reason in text
    assert "fix: remove it" in text
    assert "hunter2" not in text


@pytest.mark.parametrize(
    "key",
    ["stats_cb", "throttle_cb", "oauth_cb", "on_delivery", "delivery.report.only.error", "default.topic.config"],
)
def test_kafka_properties_that_the_client_takes_as_no_text_are_refused(tmp_path: Path, key: str) -> None:
    path = edited(tmp_path, a=("kafka:\n", f"kafka:\n  properties: {{{key}: 'true'}}\n"))
    with pytest.raises(PipelineFileError, match=f"kafka.properties.{key}: is refused: "):
        load(path)


@pytest.mark.parametrize(
    "key",
    ["plugin.library.paths", "ssl.engine.location", "ssl.engine.id", "ssl.providers", "sasl.kerberos.kinit.cmd"],
)
def test_kafka_properties_that_run_code_are_refused(tmp_path: Path, key: str) -> None:
    path = edited(tmp_path, a=("kafka:\n", f"kafka:\n  properties: {{{key}: /tmp/x.so}}\n"))
    with pytest.raises(
        PipelineFileError, match=rf"properties\.{key}: is refused: it has librdkafka load a library or run"
    ):
        load(path)


@pytest.mark.parametrize("value", ["x; touch /tmp/ran", "$(id)", "`id`", "a b", '"', "-x"])
def test_kerberos_names_that_the_shell_would_run_are_refused(tmp_path: Path, value: str) -> None:
    path = edited(tmp_path, a=("kafka:\n", f"kafka:\n  properties: {{sasl.kerberos.principal: '{value}'}}\n"))
    with pytest.raises(PipelineFileError, match=r"kerberos\.principal: is refused: librdkafka puts the value into"):
        load(path)
    path = edited(tmp_path, a=("kafka:\n", "kafka:\n  properties: {sasl.kerberos.principal: a/b-c.d@E.ORG}\n"))
    assert load(path).kafka.properties["sasl.kerberos.principal"] == "a/b-c.d@E.ORG"


@pytest.mark.parametrize("key", ["security.protocol", "sasl.username", "socket.keepalive.enable", "client.id", "debug"])
def test_other_kafka_properties_are_taken(tmp_path: Path, key: str) -> None:
    path = edited(tmp_path, a=("kafka:\n", f"kafka:\n  properties: {{{key}: x}}\n"))
    assert load(path).kafka.properties == {key: "x"}


@pytest.mark.parametrize(
    ("content", "words"),
    [("a: [", "yaml"), ("- a", "is not a mapping"), ("a: 1\na: 2", "given twice"), ("", "mapping")],
)
def test_what_is_no_pipeline_file_at_all(tmp_path: Path, content: str, words: str) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(content)
    with pytest.raises(PipelineFileError, match=words):
        load(path)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(PipelineFileError) as caught:
        load(tmp_path / "none.yaml")
    told = "cannot be read: No such file or directory\n    fix: check the path and its rights"
    assert str(caught.value) == f"{tmp_path}/none.yaml: {told}"


def test_a_file_in_another_encoding_is_told_so_with_the_line(tmp_path: Path) -> None:
    path = tmp_path / "latin.yaml"
    path.write_bytes("format: 1\n# f\u00fcr den Laden\n".encode("latin-1"))
    told = "is not UTF-8 text: the first byte that is none is on line 2\n    fix: save it as UTF-8"
    with pytest.raises(PipelineFileError) as caught:
        load(path)
    assert told in str(caught.value)


def test_a_misspelled_key_is_not_missing_too(tmp_path: Path) -> None:
    with pytest.raises(PipelineFileError, match="did you mean host") as caught:
        load(edited(tmp_path, a=("  host: 127", "  hostname: 127")))
    assert [one.key for one in caught.value.problems] == ["source.hostname"]


def test_a_password_that_is_a_word_of_ours_masks_none_of_our_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADRACE_MYSQL_PASSWORD", "shop")
    with pytest.raises(PipelineFileError, match=r"such as shop\.\* or shop\.orders"):
        load(edited(tmp_path, a=('["nycflights.*"]', '["nycflights"]')))


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("server_id", "yes", "is true or false (or yes, no, on, off), and no number"),
        ("failover_seconds", "true", "is true or false (or yes, no, on, off), and no number"),
        ("server_id", "010", "YAML takes 010 for the number 8"),
        ("server_id", "1:30", "YAML takes 1:30 for the number 90"),
    ],
)
def test_what_yaml_makes_a_number_of_is_not_taken_in_silence(tmp_path: Path, key: str, value: str, told: str) -> None:
    path = edited(tmp_path, a=("  server_id: 54001", f"  {key}: {value} # "))
    with pytest.raises(PipelineFileError) as caught:
        load(path)
    assert f"{path}:{line_of(path, value)}: source.{key}: {told}" in str(caught.value)
    assert str(caught.value).count(f"source.{key}: ") == 1


def test_switches_and_numbers_are_taken_as_they_were(tmp_path: Path) -> None:
    path = edited(tmp_path, a=("  server_id: 54001", "  statements: yes\n  failover_seconds: 3\n  server_id: 0x10"))
    source = load(path).source
    assert (source.statements, source.failover_seconds, source.server_id) == (True, 3.0, 16)


def test_tables_match_by_glob_and_exclusion(tmp_path: Path) -> None:
    tables = load(edited(tmp_path, a=("exclude: []", 'exclude: ["nycflights.tmp_*"]'))).tables
    assert tables.match("nycflights", "flights")
    assert not tables.match("nycflights", "tmp_x")
    assert not tables.match("other", "flights")


def test_topic_names_are_legal_and_never_meet() -> None:
    pipeline: Pipeline = load(EXAMPLE)
    seen = {
        names.events_topic(pipeline, db, table) for db in ("a", "a.b", "a_x2eb") for table in ("c", "b.c", "ü", "_x")
    }
    assert len(seen) == 12
    assert all(set(topic) <= set("abcdefghijklmnopqrstuvwxyz0123456789._-") for topic in seen)


def test_who_asks_no_server_needs_no_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEADRACE_MYSQL_PASSWORD")
    path = edited(tmp_path)
    with pytest.raises(PipelineFileError, match="HEADRACE_MYSQL_PASSWORD is not set"):
        load(path)
    assert load(path, secrets=False).name == "flights"
    wrong = edited(tmp_path, a=("name: flights ", "name: Flights!"))
    with pytest.raises(PipelineFileError, match="name"):
        load(wrong, secrets=False)


@pytest.mark.parametrize("secrets", [False, "lake"])
def test_a_password_in_the_file_is_a_mistake_for_whoever_reads_it(tmp_path: Path, secrets: bool | str) -> None:
    """Else a list of files calls one valid that no streamer begins with."""
    for written in ("s3cret", "${NOT_SET_HERE:-s3cret}"):
        with pytest.raises(PipelineFileError, match=r"source\.password: stands in the file as plain text") as caught:
            load(edited(tmp_path, a=(PASSWORD, f"password: {written}")), secrets)
        assert "s3cret" not in str(caught.value)
