"""Secrets of a pipeline file: which keys hold them, and that no message, status or representation shows one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from contract import pipeline_file
from contract.pipeline import Pipeline, PipelineFileError, load, parse

HIDDEN = "hunter2Secret"
FILE = """\
format: 1
name: shop
source: {host: h, user: u, password_file: p, server_id: 7}
tables: {include: ["shop.*"]}
kafka: {bootstrap: "127.0.0.1:9092"}
lake: {path: lake}
"""


@pytest.fixture(autouse=True)
def _secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTHER_PASSWORD", HIDDEN)


def edited(old: str, new: str) -> str:
    assert old in FILE
    return FILE.replace(old, new)


def refused(text: str, folder: Path) -> str:
    with pytest.raises(PipelineFileError) as caught:
        parse(text, folder / "shop.yaml")
    return str(caught.value)


@pytest.mark.parametrize(
    "key",
    ["token", "sas_token", "account_key", "connection_string", "clientSecret", "api_key", "passphrase", "credentials",
     "aws_secret_access_key", "private_key"],
)  # fmt: skip
@pytest.mark.parametrize("form", ["{}: {}", "{}: {{inside: {}}}", "{}: [{}]"])
def test_a_secret_of_any_name_in_the_file_is_a_mistake(tmp_path: Path, key: str, form: str) -> None:
    sink = "sinks: [{type: kafka}, {type: objects, url: 's3://b/x', options: {%s}}]\n"
    told = refused(FILE + sink % form.format(key, HIDDEN), tmp_path)
    assert "stands in the file as plain text" in told
    assert HIDDEN not in told
    given = parse(FILE + sink % form.format(key, "'${OTHER_PASSWORD}'"), tmp_path / "shop.yaml")
    assert HIDDEN not in repr(given)


@pytest.mark.parametrize(
    "key", ["ssl.key.pem", "sasl.oauthbearer.config", "sasl.oauthbearer.assertion.private.key.passphrase",
            "sasl.oauthbearer.assertion.private.key.pem", "sasl.oauthbearer.client.credentials.client.secret"]
)  # fmt: skip
def test_a_secret_property_of_kafka_in_the_file_is_a_mistake(tmp_path: Path, key: str) -> None:
    told = refused(edited('9092"', f'9092", properties: {{{key}: {HIDDEN}}}'), tmp_path)
    assert f"kafka.properties.{key}: stands in the file as plain text" in told
    given = parse(edited('9092"', f'9092", properties: {{{key}: "${{OTHER_PASSWORD}}"}}'), tmp_path / "shop.yaml")
    assert given.kafka.properties == {key: HIDDEN}
    assert HIDDEN not in repr(given)


def test_what_only_sounds_like_a_secret_may_stand_in_the_file(tmp_path: Path) -> None:
    plain = "{sasl.oauthbearer.token.endpoint.url: 'https://h:8080/a@b', ssl.ca.pem: x, ssl.key.location: y}"
    assert parse(edited('9092"', f'9092", properties: {plain}'), tmp_path / "shop.yaml").name == "shop"


@pytest.mark.parametrize(
    "more",
    [
        "sinks: [{type: kafka}, {type: objects, url: '%s'}]",
        "archive: {target: '%s', spool: s}",
        "records: {oversized: {target: '%s'}}",
        "quality: {webhook: '%s'}",
    ],
)
@pytest.mark.parametrize("password", ["hunter2Secret", "${OTHER_PASSWORD}"])
def test_a_password_in_a_url_is_a_mistake(tmp_path: Path, more: str, password: str) -> None:
    told = refused(FILE + more % f"ftp://user:{password}@h/x" + "\n", tmp_path)
    assert "holds a password, and is shown" in told
    assert "fix: leave user and password out" in told
    assert HIDDEN not in told
    stores = () if "webhook" in more else ("abfs://box@account.dfs.core.windows.net/x", "s3://bucket/a:b@c")
    for harmless in ("https://h:8443/a@b", *stores):
        assert parse(FILE + more % harmless + "\n", tmp_path / "shop.yaml").name == "shop"


def test_a_password_in_a_url_that_is_referred_to_is_a_mistake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FTP", f"ftp://user:{HIDDEN}@h/x")
    told = refused(FILE + "archive: {target: '${FTP}', spool: s}\n", tmp_path)
    assert "archive.target: holds a password" in told
    assert HIDDEN not in told
    monkeypatch.setenv("HOOK", f"https://user:{HIDDEN}@h/x")
    assert HIDDEN not in repr(parse(FILE + "quality: {webhook: '${HOOK}'}\n", tmp_path / "shop.yaml"))


WRONG_HOOKS = [
    "nonsense",
    "h/x",
    "ftp://h/x",
    "file:///x",
    "https:///x",
    "https://?x=",
    "http://h:x/y",
    "https://[::1/x",
]


@pytest.mark.parametrize("url", [one + HIDDEN for one in WRONG_HOOKS])
@pytest.mark.parametrize("referred", [False, True])
def test_a_webhook_is_a_url_of_the_web(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str, referred: bool
) -> None:
    monkeypatch.setenv("HOOK", url)
    told = refused(FILE + "quality: {webhook: '%s'}\n" % ("${HOOK}" if referred else url), tmp_path)
    assert "7: quality.webhook: " in told
    assert "fix: correct the value behind ${HOOK}" in told if referred else "fix: write https://HOST/PATH" in told
    assert HIDDEN not in told


@pytest.mark.parametrize("url", ["", "http://h", "HTTPS://h:8443/x?y=z", "http://[::1]:80/x"])
def test_a_webhook_may_be_left_empty_or_have_a_port(tmp_path: Path, url: str) -> None:
    assert parse(FILE + f"quality: {{webhook: '{url}'}}\n", tmp_path / "shop.yaml").quality.webhook == url


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('["shop.*"]', '["${OTHER_PASSWORD}"]'),
        ('["shop.*"]', '["a${OTHER_PASSWORD}b"]'),
        ('["shop.*"]', '[{password: "${OTHER_PASSWORD}"}]'),
        ('9092"', '9092", topic: "${OTHER_PASSWORD}{nothing}"'),
        ("host: h,", 'host: "${OTHER_PASSWORD}", failover: ["${OTHER_PASSWORD}"],'),
        ("host: h,", 'host: h, failover: ["${OTHER_PASSWORD}:x"],'),
        ("name: shop", 'name: "${OTHER_PASSWORD}"'),
        ("path: lake}", 'path: lake}\ncompaction: {schedule: "${OTHER_PASSWORD}"}'),
        ("path: lake}", 'path: lake}\nstreamer: {start: "${OTHER_PASSWORD}"}'),
        ("path: lake}", 'path: lake}\ntransforms: [{tables: ["a.b"], script: "${OTHER_PASSWORD}"}]'),
        ("path: lake}", 'path: lake}\ntransforms: [{tables: ["a.b"], function: "${OTHER_PASSWORD}"}]'),
        ("path: lake}", 'path: lake}\ntransforms: [{tables: ["a.b"], script: x, helpers: {a: "${OTHER_PASSWORD}"}}]'),
        ("path: lake}", "path: lake}\nsinks: [&one {type: files, path: '${OTHER_PASSWORD}'}, *one]"),
        ("path: lake}", 'path: lake}\ncolumns: {masks: [{columns: ["${OTHER_PASSWORD}"], mask: "${OTHER_PASSWORD}"}]}'),
    ],
)  # fmt: skip
def test_no_mistake_shows_what_is_referred_to(tmp_path: Path, old: str, new: str) -> None:
    told = refused(edited(old, new), tmp_path)
    assert HIDDEN not in told
    assert "fix: " in told


def test_a_part_of_what_is_referred_to_is_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARTED", "7 of hunter2Secret * *")
    told = refused(edited("path: lake}", 'path: lake}\ncompaction: {schedule: "${PARTED}"}'), tmp_path)
    assert "compaction.schedule: what ${PARTED} gives is not allowed here" in told
    assert "hunter2" not in told


def test_a_default_that_stands_in_the_file_may_be_shown(tmp_path: Path) -> None:
    told = refused(edited("name: shop", "name: shop\nextra: ${NOT_SET_AT_ALL:-x}"), tmp_path)
    assert "extra: is no known key" in told


def test_a_text_from_elsewhere_refers_to_secrets_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "shop.yaml"
    other = edited("host: h", 'host: "${OTHER_PASSWORD}"')
    with pytest.raises(PipelineFileError, match=r"source\.host: is no secret, and .* taken for those alone") as caught:
        parse(other, path, {})
    assert HIDDEN not in str(caught.value)
    asked = edited("password_file: p", 'password: "${OTHER_PASSWORD}"')
    monkeypatch.setenv("HOOK", "https://h/x")
    given: Pipeline = parse(asked + "quality: {webhook: '${HOOK}'}\n", path, {})
    assert given.source.secret() == HIDDEN
    path.write_text(other)  # by somebody who may write there: from then on it may stay
    known = pipeline_file.references(path)
    assert parse(other + "# more\n", path, known).source.host == HIDDEN
    with pytest.raises(PipelineFileError, match=r"source\.user"):
        parse(other.replace("user: u", 'user: "${OTHER_PASSWORD}"'), path, known)


def test_a_secret_is_read_from_no_device_and_no_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "large").write_bytes(b"x" * 70_000)
    for name, why in (
        ("/dev/zero", "no regular file"),
        (tmp_path / "pipe", "no regular"),
        (tmp_path / "large", "larger"),
    ):
        assert why in refused(edited("password_file: p", f'password: "${{file:{name}}}"'), tmp_path)
        (tmp_path / "shop.yaml").write_text(edited("password_file: p", f"password_file: {name}"))
        with pytest.raises(OSError, match=why):
            load(tmp_path / "shop.yaml").source.secret()


def test_aliases_of_aliases_are_counted(tmp_path: Path) -> None:
    lists = "a: &a [%s]\nb: &b [%s]\nc: &c [%s]\nd: [%s]\n"
    many = lists % tuple(", ".join([one] * 100) for one in ("x", "*a", "*b", "*c"))
    told = refused(FILE + many, tmp_path)
    assert f"has more than {pipeline_file.NODES} keys and values" in told
    few = FILE.replace('include: ["shop.*"]', "include: &some [shop.*], exclude: *some")
    assert parse(few, tmp_path / "shop.yaml").tables.exclude == ("shop.*",)


def test_a_file_of_nothing_but_mistakes_is_told_in_short(tmp_path: Path) -> None:
    told = refused(edited('["shop.*"]', f"[{', '.join(['a'] * 5000)}]"), tmp_path)
    assert "file: has 4900 more mistakes than are told here" in told
    assert told.count("not of the form db.table") == 100
