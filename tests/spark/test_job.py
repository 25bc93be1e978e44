"""The jobs' command line: a job that is one of all tables takes no names of some."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from contract.pipeline import Pipeline
from spark import job
from tests.spark.sessions import PIPELINE


@pytest.mark.parametrize("named", [True, False])
def test_tables_are_named_where_the_job_asks_for_them_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], named: bool
) -> None:
    file = tmp_path / "shop.yaml"
    file.write_text(PIPELINE.format(lake=tmp_path))
    given: list[object] = []

    def work(spark: object, pipeline: Pipeline, *tables: list[str]) -> dict[str, object]:
        given.extend(tables)
        return {}

    def end(*_: object, file: str) -> None:
        raise SystemExit(0)

    monkeypatch.setattr(job, "session", lambda name: None)
    monkeypatch.setattr(job.Interrupt, "hold", lambda self: None)
    monkeypatch.setattr(job.Interrupt, "listen", lambda self, spark: None)
    monkeypatch.setattr(job, "_end", end)
    monkeypatch.setattr(sys, "argv", ["compact", "--pipeline", str(file), "--tables", "shop.a, shop.b"])
    with pytest.raises(SystemExit) as ended:
        job.run("compact", work, tables=named)
    assert given == ([["shop.a", "shop.b"]] if named else [])
    assert ended.value.code == (0 if named else 2)
    assert ("unrecognized arguments: --tables" in capsys.readouterr().err) == (not named)


def test_keys_come_from_a_file_which_is_gone_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pipeline, keys, given = tmp_path / "shop.yaml", tmp_path / "keys", dict[str, str]()
    pipeline.write_text(PIPELINE.format(lake=tmp_path))
    keys.write_text(' ["7"]\n')

    def work(spark: object, pipeline: Pipeline, tables: list[str], **more: str) -> dict[str, object]:
        given.update(more)
        return {}

    def ended(status: int) -> None:
        raise SystemExit(status)

    monkeypatch.setattr(job, "session", lambda name: None)
    monkeypatch.setattr(job.Interrupt, "hold", lambda self: None)
    monkeypatch.setattr(job.Interrupt, "listen", lambda self, spark: None)
    monkeypatch.setattr(job.os, "_exit", ended)
    monkeypatch.setattr(sys, "argv", ["erase", "--pipeline", str(pipeline), "--by=ada", f"--keys-file={keys}"])
    for status in (0, 1):
        with pytest.raises(SystemExit) as end:
            job.run("erase", work, {"keys": "the keys", "by": "who"})
        assert end.value.code == status
    assert given == {"keys": '["7"]', "by": "ada"}
    assert not keys.exists()
    assert f"{keys} cannot be read (No such file or directory): run the job again" in capsys.readouterr().err


def test_compaction_is_one_of_all_tables() -> None:
    jobs = Path(job.__file__).parent / "jobs"
    assert all("tables=False" in (jobs / f"{name}.py").read_text() for name in ("compact", "compact_loop"))
