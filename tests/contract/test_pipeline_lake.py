"""The section `lake`: a folder, or a bucket on S3 with the way to its store; each mistake with line, key and fix."""

from __future__ import annotations

from pathlib import Path

import pytest

from contract import CHECKOUT, types
from contract.names import lake_root
from contract.pipeline import Pipeline, PipelineFileError, load
from contract.schema import Column, TableSchema
from readers.store import options
from spark.lake.store import settings

FILE = """\
format: 1
name: sales
source: {host: h, user: u, password: "${SALES_PASSWORD}", server_id: 7}
tables: {include: ["shop.*"]}
kafka: {bootstrap: "h:9092"}
"""
STORE = """\
lake:
  path: s3a://lakes/here
  s3: {endpoint_url: "http://h:9000", key: "${LAKE_KEY}", secret: "${LAKE_SECRET}"}
"""


def loaded(folder: Path, text: str, secrets: bool | str = True) -> Pipeline:
    path = folder / "sales.yaml"
    path.write_text(FILE + text)
    return load(path, secrets)


@pytest.fixture(autouse=True)
def variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"SALES_PASSWORD": "p", "LAKE_KEY": "akey", "LAKE_SECRET": "s3cret"}.items():
        monkeypatch.setenv(name, value)


def test_spark_and_the_readers_get_the_same_of_it(tmp_path: Path) -> None:
    pipeline = loaded(tmp_path, STORE)
    assert pipeline.lake.bucket == "lakes"
    told = settings(pipeline)
    assert (told["endpoint"], told["access.key"], told["secret.key"]) == ("http://h:9000", "akey", "s3cret")
    assert (told["path.style.access"], told["create.conditional.enabled"]) == ("true", "true")
    assert told["aws.credentials.provider"].endswith(".SimpleAWSCredentialsProvider")
    given = options(pipeline)
    assert given is not None
    assert (given["AWS_ACCESS_KEY_ID"], given["AWS_SECRET_ACCESS_KEY"]) == ("akey", "s3cret")
    assert (given["AWS_ENDPOINT_URL"], given["AWS_ALLOW_HTTP"]) == ("http://h:9000", "true")


@pytest.mark.parametrize(
    ("written", "root"),
    [
        (".headrace/lake", f"{CHECKOUT}/.headrace/lake/sales"),
        ("/srv/lake/", "/srv/lake/sales"),
        ("s3a://lakes/here/", "s3a://lakes/here/sales"),
        ("hdfs://h:9000/lake", "hdfs://h:9000/lake/sales"),
    ],
)
def test_a_lake_is_at_one_place_wherever_a_command_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str, root: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert lake_root(loaded(tmp_path, f"lake: {{path: '{written}'}}\n")) == root


def test_without_keys_the_usual_places_are_asked(tmp_path: Path) -> None:
    pipeline = loaded(tmp_path, "lake: {path: s3a://lakes, s3: {region: eu-central-1}}\n")
    told = settings(pipeline)
    assert told == {"endpoint.region": "eu-central-1", "create.conditional.enabled": "true"}
    assert options(pipeline) == {"AWS_REGION": "eu-central-1", "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "true"}


def test_a_session_has_a_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKE_TOKEN", "t0ken")
    told = settings(loaded(tmp_path, STORE.replace('RET}"}', 'RET}", token: "${LAKE_TOKEN}"}')))
    assert told["session.token"] == "t0ken"
    assert told["aws.credentials.provider"].endswith(".TemporaryAWSCredentialsProvider")


def test_further_settings_of_the_client(tmp_path: Path) -> None:
    text = "lake: {path: s3a://lakes, s3: {client: {multiobjectdelete.enable: false, threads.max: 8}}}\n"
    told = settings(loaded(tmp_path, text))
    assert (told["multiobjectdelete.enable"], told["threads.max"]) == ("false", "8")
    with pytest.raises(PipelineFileError, match=r"lake\.s3\.client: .*\n    fix: write it as lake\.s3\.secret"):
        loaded(tmp_path, text.replace("threads.max: 8", "secret.key: x"))


def test_a_folder_has_no_store(tmp_path: Path) -> None:
    assert options(loaded(tmp_path, "lake: {path: lake}\n")) is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("lake: {path: 'hdfs:/srv/lake'}", r"sales.yaml:6: lake.path: .*\n    fix: write hdfs:// and host and path"),
        ("lake: {path: file:///srv/lake}", r"sales.yaml:6: lake.path: .*without a scheme\n    fix: write /srv/lake"),
        ("lake: {path: s3://lakes/a}", r"sales.yaml:6: lake.path: .*\n    fix: write s3a://lakes/a"),
        ("lake: {path: s3a://Lakes_1/a}", r"sales.yaml:6: lake.path: .*\n    fix: write s3a://bucket/folder"),
        ("lake: {path: lake, s3: {region: x}}", r"sales.yaml:6: lake.s3: is of a lake on S3"),
        (STORE.replace(', secret: "${LAKE_SECRET}"', ""), r"sales.yaml:8: lake.s3: has key without secret"),
        (STORE.replace('key: "${LAKE_KEY}", ', ""), r"sales.yaml:8: lake.s3: has secret without key"),
        ("lake: {path: s3a://lakes, s3: {token: '${LAKE_SECRET}'}}", r"lake.s3: has token without key"),
        (STORE.replace("http://h:9000", "h:9000"), r"sales.yaml:8: lake.s3.endpoint_url: "),
        (STORE.replace("${LAKE_SECRET}", "plain"), r"lake.s3.secret: stands in the file as plain text"),
    ],
)
def test_what_does_not_fit_is_told_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(PipelineFileError, match=said) as caught:
        loaded(tmp_path, text + "\n")
    assert "s3cret" not in str(caught.value)
    assert "akey" not in str(caught.value)


def test_the_stores_secrets_are_never_shown(tmp_path: Path) -> None:
    pipeline = loaded(tmp_path, STORE)
    assert "s3cret" not in repr(pipeline)
    assert "akey" not in repr(pipeline)


def test_who_reads_the_lake_alone_needs_its_secrets_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SALES_PASSWORD")
    assert loaded(tmp_path, STORE, "lake").lake.s3.secret == "s3cret"
    monkeypatch.delenv("LAKE_SECRET")
    with pytest.raises(PipelineFileError, match=r"sales.yaml:8: .*LAKE_SECRET is not set"):
        loaded(tmp_path, STORE, "lake")
    assert loaded(tmp_path, STORE, False).lake.bucket == "lakes"


@pytest.mark.parametrize(
    ("written", "setting"), [("null", "null"), ("'null'", "null"), ("string", "string"), ("fail", "fail")]
)
def test_what_becomes_of_zero_dates_is_of_the_columns_that_may_have_them(
    tmp_path: Path, written: str, setting: str
) -> None:
    lake = loaded(tmp_path, f"lake: {{path: lake, unrepresentable: {written}}}\n").lake
    kinds = ("date", "datetime", "timestamp", "time", "decimal", "int")
    masked = Column(name="masked", type="date", mask="null")
    columns = (*(Column(name=kind, type=kind) for kind in kinds), masked)
    landed = lake.lands(TableSchema(db="shop", table="t", columns=columns, key=("int",)))
    assert [column.unfit for column in landed.columns] == [setting] * 3 + ["null"] * 4
    assert "unfit" not in landed.model_dump_json(), "no topic has it"
    kept = {column.name: types.of(column).spark for column in landed.columns}
    assert {kept[name] for name in kinds[:3]} == (
        {"string"} if setting == "string" else {"date", "timestamp_ntz", "timestamp"}
    )


def test_no_other_setting_is_taken(tmp_path: Path) -> None:
    with pytest.raises(
        PipelineFileError, match=r"lake\.unrepresentable.*\n.*null, string or fail|lake\.unrepresentable"
    ):
        loaded(tmp_path, "lake: {path: lake, unrepresentable: zero}\n")
