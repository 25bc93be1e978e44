"""Each table's pages are those of its last check, whoever else checks meanwhile, and whatever the folder takes."""

from __future__ import annotations

import errno
import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from contract.pipeline import Pipeline
from quality import folder, pages
from quality.summary import lines
from tests.quality.test_suite import ROWS, check, pipeline  # noqa: F401

WELL = {"evaluated": 3, "failed": []}


class Built:
    """Stands in for Great Expectations: the pages of these tables, which say `text`."""

    def __init__(self, text: str, *tables: str) -> None:
        self.text, self.tables = text, tables

    def add_data_docs_site(self, site_name: str, site_config: Any) -> None:
        self.folder = Path(site_config["store_backend"]["base_directory"])

    def build_data_docs(self) -> None:
        for name in self.tables:
            for file in (Path("validations", name, f"lake-{name}.html"), pages._suite(name)):
                (self.folder / file).parent.mkdir(parents=True, exist_ok=True)
                (self.folder / file).write_text(f"<html><head></head>{self.text}</html>")


def write(pipeline: Pipeline, text: str, *tables: str, some: bool = True) -> list[str]:  # noqa: F811
    return pages.write(Built(text, *tables), pipeline, dict.fromkeys(tables, WELL), some)


def shown(pipeline: Pipeline) -> dict[str, str]:  # noqa: F811
    """What the pages that the index names say."""
    docs, index = folder.docs(pipeline), (folder.docs(pipeline) / "index.html").read_text()
    known = pages.known(docs)
    assert all(page["page"] in index and (docs / page["suite"]).exists() for page in known.values())
    return {name: (docs / page["page"]).read_text().partition("</head>")[2][:-7] for name, page in known.items()}


def beside(pipeline: Pipeline) -> set[str]:  # noqa: F811
    return {one.name for one in folder.folder(pipeline).iterdir()}


def test_a_check_of_one_table_keeps_the_pages_of_the_others(pipeline: Pipeline) -> None:  # noqa: F811
    write(pipeline, "first", "shop.a", "shop.b", "shop.c", some=False)
    write(pipeline, "second", "shop.b")
    assert shown(pipeline) == {"shop.a": "first", "shop.b": "second", "shop.c": "first"}
    left_out = {"shop.a": WELL, "shop.b": {"evaluated": 0, "failed": []}}
    pages.write(Built("third", "shop.a"), pipeline, left_out, False)
    assert shown(pipeline) == {"shop.a": "third", "shop.b": "second"}, "of one not judged; none of one gone"
    assert len([*folder.docs(pipeline).rglob("*.html")]) == 5
    assert beside(pipeline) == {"docs", "checks.lock"}


def test_a_table_without_a_page_is_told(pipeline: Pipeline) -> None:  # noqa: F811
    nothing = {"evaluated": 0, "failed": []}
    found = {"shop.a": WELL, "shop.a/b": WELL, "shop.c": nothing}
    assert pages.write(Built("x", "shop.a"), pipeline, found, False) == ["shop.a/b"]


@pytest.mark.parametrize("locks", [True, False])
def test_two_checks_at_once_break_none_of_each_other(
    pipeline: Pipeline,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    locks: bool,
) -> None:
    if not locks:
        monkeypatch.setattr(folder.fcntl, "flock", lambda *_: (_ for _ in ()).throw(OSError(errno.ENOLCK, "none")))
    names = [f"shop.t{number}" for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        assert [*pool.map(lambda name: [write(pipeline, name, name) for _ in range(10)], names)] == [[[]] * 10] * 8
    found = shown(pipeline)
    assert all(text == name for name, text in found.items())
    assert not locks or sorted(found) == names
    assert beside(pipeline) == {"docs", "checks.lock"}


def test_a_disk_that_is_full_leaves_the_pages_of_before(
    pipeline: Pipeline,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full(page: str) -> str:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    write(pipeline, "first", "shop.a")
    monkeypatch.setattr(pages, "offline", full)
    with pytest.raises(OSError, match="No space left"):
        write(pipeline, "second", "shop.a")
    assert (shown(pipeline), beside(pipeline)) == ({"shop.a": "first"}, {"docs", "checks.lock"})


def test_what_a_killed_check_left_goes_with_time(pipeline: Pipeline) -> None:  # noqa: F811
    for age, name in ((10, "docs.new"), (2 * pages.DAY, "docs.old")):
        left = folder.folder(pipeline) / name
        left.mkdir(parents=True)
        os.utime(left, (left.stat().st_mtime - age,) * 2)
    write(pipeline, "first", "shop.a")
    assert beside(pipeline) == {"docs", "docs.new", "checks.lock"}


def test_a_folder_that_cannot_be_written_is_a_warning_and_the_result_is_there(
    spark: SparkSession,
    pipeline: Pipeline,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HEADRACE_QUALITY", str(tmp_path / "file"))
    found = check(spark, pipeline, ROWS, 5)
    assert (found["docs"], found["ok"], found["tables"]["shop.orders"]["evaluated"]) == (None, False, 9)
    assert [told.partition(" were" if "were" in told else " was")[0] for told in found["warnings"]] == [
        "the pages of this check (data docs)", "this check's result",
    ]  # fmt: skip
    assert all("(Not a directory)" in told for told in found["warnings"])
    report = {"job": "verify", "pipeline": "shop", "ok": True, "tables": {}, "warnings": found["warnings"]}
    assert len([line for line in lines(report) if line.startswith("warning: ")]) == 2
    assert json.dumps(found)
