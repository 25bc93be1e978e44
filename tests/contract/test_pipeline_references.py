"""What is filled in, what only looks as if it were, and that nothing further is said of a value that is not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from contract.pipeline import PipelineFileError, load, parse
from contract.pipeline_file import read_text

FILE = """\
format: 1
name: shop
source: {host: h, user: u, password_file: p, server_id: 7}
tables: {include: ["shop.*"]}
kafka: {bootstrap: "127.0.0.1:9092"}
lake: {path: lake}
"""


def refused(old: str, new: str) -> PipelineFileError:
    assert old in FILE
    with pytest.raises(PipelineFileError) as caught:
        parse(FILE.replace(old, new), Path("shop.yaml"))
    return caught.value


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ("server_id: 7", "server_id: '${NOT_SET}'", "source.server_id"),
        ("host: h", "host: '${NOT_SET}'", "source.host"),
        ("path: lake}", "path: lake}\nstreamer: {http: {host: '${NOT_SET}'}}", "streamer.http.host"),
        ("path: lake}", "path: lake}\nstreamer: {http: {port: 'x${NOT_SET}'}}", "streamer.http.port"),
        ("server_id: 7", "server_id: '${file:/x}'", "source.server_id"),
    ],
)
def test_of_a_value_that_is_not_there_one_mistake_is_told(old: str, new: str, key: str) -> None:
    assert [one.key for one in refused(old, new).problems] == [key]


def test_a_key_that_there_is_not_is_told_though_its_value_is_none(tmp_path: Path) -> None:
    file = tmp_path / "shop.yaml"
    file.write_text(f"{FILE}token: '${{NOPE}}'\n")
    with pytest.raises(PipelineFileError, match=r"1 mistake\n.*: token: is no known key"):
        load(file, secrets=False)


def test_what_others_fill_in_is_left_to_them() -> None:
    text = "lake: {s3: {client: {a: '${hadoop.tmp.dir}/s3a'}}}\nkafka: {properties: {x: '${a.b}'}}\n"
    assert read_text(text).problems == []


def test_a_mistake_beside_it_is_told_too() -> None:
    error = refused("server_id: 7", "server_id: '${NOT_SET}', port: 0")
    assert [one.key for one in error.problems] == ["source.server_id", "source.port"]


def test_who_needs_no_secret_is_told_what_else_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "shop.yaml"
    path.write_text(FILE.replace("password_file: p", "password_file: p, password: '${NOT_SET}'"))
    with pytest.raises(PipelineFileError, match="has both of password and password_file"):
        load(path, secrets=False)


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("${LAKE", "${LAKE is not closed"),
        ("a/${}", "${} is none of the forms"),
        ("${LAKE-x}", "${LAKE-x} is none of the forms"),
        ("${A:-${B}}", "${A:-${B} is none of the forms"),
        ("${my-lake}/${OK:-x}", "${my-lake} is none of the forms"),
    ],
)
def test_what_is_almost_a_reference_is_a_mistake(written: str, told: str) -> None:
    [problem] = refused("path: lake", f"path: '{written}'").problems
    assert (problem.line, problem.key) == (6, "lake.path")
    assert told in problem.message
    assert problem.fix == "write ${NAME} or ${NAME:-default}"


def test_of_a_secret_it_is_not_shown() -> None:
    told = str(refused("password_file: p", "password: '${hunter2'"))
    assert "source.password: ${ is not closed" in told
    assert "hunter2" not in told


@pytest.mark.parametrize("written", ["/shop_\\d+$/.*", "/a.b$/"])
def test_a_dollar_of_an_expression_is_none(written: str) -> None:
    assert parse(FILE.replace('["shop.*"]', f"['{written}']"), Path("shop.yaml")).tables.include == (written,)


@pytest.mark.parametrize(
    ("old", "new", "key", "fix"),
    [
        ("path: lake", "path: ~/lake", "lake.path", "write ${HOME}/lake, or the whole path"),
        ("path: lake", "path: $DATA/lake", "lake.path", "write ${DATA}/lake, or the whole path"),
        ("path: lake", "path: '${SHOP_HOME:-~}/x'", "lake.path", "into what ${SHOP_HOME:-~}/x gives"),
        ("password_file: p", "password_file: ~/p", "source.password_file", "write ${HOME}/p"),
        ("path: lake}", "path: lake}\nsinks: [{type: kafka}, {type: files, path: ~/x}]", "sinks[1].path", "${HOME}/x"),
        ("path: lake}", "path: lake}\narchive: {target: ~/x}", "archive.target", "${HOME}/x"),
    ],
)
def test_a_path_that_a_shell_would_fill_in_is_a_mistake(old: str, new: str, key: str, fix: str) -> None:
    [problem] = refused(old, new).problems
    assert problem.key == key
    assert fix in problem.fix


def test_elsewhere_it_is_a_text_as_others() -> None:
    own = FILE + "checkpoints: {type: a.B, settings: {path: ~/x}}\n"
    assert parse(own, Path("shop.yaml")).name == "shop"
    assert parse(FILE.replace("lake}", "~lake}"), Path("shop.yaml")).lake.path == "~lake"
