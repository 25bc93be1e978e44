"""Every pipeline file gives its DAGs; a wrong one is shown and takes no other with it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk import DagRunState
from airflow.sdk.exceptions import ParamValidationError

from headrace import forms

DAGS = Path(__file__).resolve().parents[2] / "dags"
PURPOSES = ("topics", "snapshot", "compaction", "quality", "maintenance", "erase", "repair", "backfill")
CHANGING = ("compaction/compact", "erase/erase")
FIRST_TRY = SimpleNamespace(try_number=1)
SCHEDULED = 'compaction: {schedule: "*/5 * * * *"}\nquality: {schedule: "0 3 * * *"}\n'


def text(name: str, extra: str = "") -> str:
    return (
        f"format: 1\nname: {name}\nsource: {{host: localhost, user: u, password_file: p, server_id: 7}}\n"
        "tables: {include: ['shop.*']}\nkafka: {bootstrap: 'localhost:9092'}\n"
        f"lake: {{path: /srv/lake}}\n{extra}"
    )


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HEADRACE_PIPELINES", str(tmp_path))
    return tmp_path


def bag() -> DagBag:
    return DagBag(DAGS, bundle_path=DAGS, bundle_name="dags-folder")


def test_the_dags_of_each_pipeline_no_other_and_no_import_error(folder: Path) -> None:
    (folder / "shop.yaml").write_text(text("shop", SCHEDULED))
    (folder / "crm.yaml").write_text(text("crm"))
    found = bag()
    assert found.import_errors == {}
    assert set(found.dags) == {f"{name}.{purpose}" for name in ("shop", "crm") for purpose in PURPOSES}


def test_the_example_pipeline_has_its_dags(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEADRACE_PIPELINES", raising=False)
    monkeypatch.setenv("HEADRACE_MYSQL_PASSWORD", "p")
    found = bag()
    assert found.import_errors == {}
    assert set(found.dags) >= {f"flights.{purpose}" for purpose in PURPOSES}


def test_schedules_come_from_the_file_and_nothing_is_caught_up(folder: Path) -> None:
    (folder / "shop.yaml").write_text(text("shop", SCHEDULED))
    (folder / "crm.yaml").write_text(text("crm"))
    dags = bag().dags
    assert dags["shop.compaction"].schedule == "*/5 * * * *"
    assert dags["shop.quality"].schedule == "0 3 * * *"
    assert dags["crm.compaction"].schedule is None
    assert dags["crm.maintenance"].schedule == "@daily"
    assert all(dag.catchup is False and dag.max_active_runs == 1 for dag in dags.values())
    # A DAG that only a person starts would otherwise keep its first run waiting unseen.
    assert dags["crm.compaction"].is_paused_upon_creation is False
    assert dags["shop.compaction"].is_paused_upon_creation is None


def test_tasks_and_their_order(folder: Path) -> None:
    (folder / "shop.yaml").write_text(text("shop", SCHEDULED))
    (folder / "crm.yaml").write_text(text("crm"))
    dags = bag().dags
    assert dags["shop.topics"].task_ids == ["provision"]
    assert dags["shop.compaction"].task_ids == ["compact"]
    assert dags["shop.quality"].task_ids == ["verify"]
    assert dags["shop.maintenance"].task_ids == ["maintain"]
    assert dags["shop.snapshot"].get_task("stage").downstream_task_ids == {"all_staged", "applied"}
    chain = [task.task_id for task in dags["crm.snapshot"].topological_sort()]
    assert chain == ["stage", "all_staged", "streamed", "compact", "applied"]
    assert not dags["crm.snapshot"].get_task("all_staged").downstream_task_ids, "it holds up nothing"
    assert dags["crm.snapshot"].get_task("compact").trigger_dag_id == "crm.compaction"
    # Without a schedule the check has to see to it that the lake gets to where it compares.
    tasks = {"waits", "streamed", "compact"}
    assert set(dags["crm.quality"].task_ids) == {"verify", *tasks, *(f"{task}_again" for task in tasks)}
    assert dags["crm.quality"].get_task("waits_again").upstream_task_ids == {"compact"}
    assert dags["crm.quality"].get_task("compact").upstream_task_ids == {"streamed"}


def test_a_stopped_table_which_fails_a_compaction_fails_no_run_for_other_tables(folder: Path) -> None:
    """All others are complete behind it: the task that follows tells of those that the run is for."""
    (folder / "crm.yaml").write_text(text("crm"))
    dags, failed = bag().dags, ("", {"run_ids": ["r"], "r": "failed"})
    ti = MagicMock(try_number=1, max_tries=1)
    ti.get_dagrun_state.return_value = "failed"
    ti.xcom_pull.return_value = {"tables": {"crm.b": {"stopped": "crm.b: no key"}}, "error": "crm.b: no key"}
    for purpose, names in {
        "snapshot": ["compact"], "quality": ["compact", "compact_again"],
        **{purpose: ["compact", "compact_proof", "compact_proof_again"] for purpose in ("repair", "backfill")},
    }.items():  # fmt: skip
        dag = dags[f"crm.{purpose}"]
        assert sorted(task for task in dag.task_ids if task.startswith("compact")) == names
        for name in names:
            task = dag.get_task(name)
            task.execute_complete({"ti": ti}, failed)
            assert DagRunState.FAILED in task.allowed_states, "else it would be waited for without an end"
        if purpose != "quality":
            assert dag.get_task("applied").compaction == "crm.compaction"


def test_a_wait_behind_a_compaction_by_schedule_asks_for_no_run_of_it(folder: Path) -> None:
    (folder / "shop.yaml").write_text(text("shop", SCHEDULED))
    dags = bag().dags
    for purpose in ("snapshot", "repair", "backfill"):
        assert dags[f"shop.{purpose}"].get_task("applied").compaction == ""


@pytest.mark.parametrize(("tries", "compacts"), [(1, ""), (2, "yes")])
def test_a_check_that_is_tried_again_compacts_by_itself_where_no_schedule_does(
    folder: Path, tries: int, compacts: str
) -> None:
    """The tasks that compact for the first try have run, and do not run again."""
    (folder / "crm.yaml").write_text(text("crm"))
    (folder / "shop.yaml").write_text(text("shop", SCHEDULED))
    for purpose in ("quality", "repair", "backfill"):
        for name, wanted in (("crm", compacts), ("shop", "")):
            task = bag().dags[f"{name}.{purpose}"].get_task("verify")
            report = {"tables": {"a.b": {}}}
            ti = SimpleNamespace(try_number=tries, xcom_pull=lambda task_ids, report=report: SimpleNamespace(**report))
            task.render_template_fields({"params": dict.fromkeys(("tables", "whole", "anew")), "ti": ti})
            assert task.options.get("compact", "") == wanted


def test_what_was_mended_is_proven_behind_the_compaction_that_puts_it_in_its_place(folder: Path) -> None:
    (folder / "shop.yaml").write_text(text("shop", SCHEDULED))
    (folder / "crm.yaml").write_text(text("crm"))
    dags = bag().dags
    for purpose in ("repair", "backfill"):
        order = [task.task_id for task in dags[f"shop.{purpose}"].topological_sort()]
        assert order == ["stage", "all_staged", "applied", "verify"]
    alone = dags["crm.repair"]
    assert alone.get_task("applied").upstream_task_ids == {"compact"}
    assert alone.get_task("applied").downstream_task_ids == {"verify", "waits_proof"}
    assert alone.get_task("waits_proof_again").upstream_task_ids == {"compact_proof"}


def test_whatever_has_the_lake_throughout_takes_its_one_slot_and_nothing_that_lets_it_go_does(folder: Path) -> None:
    """A check waits for a compaction, and maintenance lets one in between two tables."""
    for name in ("shop", "crm"):
        (folder / f"{name}.yaml").write_text(text(name))
    pools = {f"{dag.dag_id}/{task.task_id}": task.pool for dag in bag().dags.values() for task in dag.tasks}
    taken = {f"{name}.{task}": f"headrace-{name}-lake" for name in ("shop", "crm") for task in CHANGING}
    assert {task: pool for task, pool in pools.items() if pool != "default_pool"} == taken


def test_a_forms_keys_reach_the_job_as_they_were_written(folder: Path) -> None:
    (folder / "shop.yaml").write_text(text("shop"))
    task = bag().dags["shop.erase"].get_task("erase")
    params = {"table": "shop.items", "keys": ["7", "o'neil@example.org", '{"a": "<ü"}'], "present": False, "now": True}
    run = SimpleNamespace(triggering_user_name="ada")
    task.render_template_fields({"params": params, "run_id": "manual__1", "dag_run": run})
    assert task.tables == "shop.items"
    assert json.loads(task.options.pop("keys")) == params["keys"]
    assert task.options == {"present": "", "now": "yes", "run": "manual__1", "by": "ada"}
    for purpose in ("repair", "backfill"):
        task = bag().dags[f"shop.{purpose}"].get_task("stage")
        lines = ["7", "", " o'neil@example.org", '{"a": "<ü"}']
        task.render_template_fields({"params": {**dict.fromkeys(forms.BACKFILL.params), "keys": lines}, "run_id": "r"})
        assert json.loads(task.options["keys"]) == lines


def test_a_form_can_be_sent_as_it_opens(folder: Path) -> None:
    """By the rule of Airflow's page: what may not be null may not be an empty text either, else nothing is sent."""
    (folder / "shop.yaml").write_text(text("shop", SCHEDULED))
    dags = bag().dags
    wanted = {
        (id, name)
        for id, dag in dags.items()
        for name in dag.params
        if "null" not in (param := dag.params.get_param(name)).schema["type"]
        and not (param.has_value and param.value != "")
    }
    assert wanted == {("shop.erase", "table"), ("shop.erase", "keys"), ("shop.backfill", "tables")}
    task = dags["shop.backfill"].get_task("stage")
    task.render_template_fields(
        {"params": dict.fromkeys(dags["shop.backfill"].params) | {"tables": ["a.b"]}, "run_id": "r"}
    )
    assert task.options == {**dict.fromkeys(("keys", "from", "to", "source", "since", "until"), ""), "by": "r"}


def test_what_a_form_refuses_is_told_in_words(folder: Path) -> None:
    (folder / "shop.yaml").write_text(text("shop"))
    dags = bag().dags
    for form, values in {
        ("snapshot", "tables", "a table, as db.table"): (["orders"], ["a.b, a.c"], ["a.b", "c"]),
        ("backfill", "tables", "a table, as db.table"): (["orders"],),
        ("backfill", "tables", "at least one"): ([], [""], [" ", ""]),
        ("erase", "keys", "at least one"): ([], [""]),
        ("erase", "table", "as db.table"): ("orders", "orders."),
        ("snapshot", "tables", "a name with a comma is not taken"): (["a.b,c"],),
        ("repair", "keys", 'a list of keys, each a text, such as ["7", "8"]'): ("[1, 2]", "1", {"id": 1}),
        ("backfill", "keys", "a key, as a text"): ([7], [{"id": 1}]),
        ("erase", "keys", "a list of keys, each a text"): ("[1, 2]", "1"),
    }.items():
        purpose, name, told = form
        for value in values:
            with pytest.raises(ParamValidationError, match=re.escape(told)):
                dags[f"shop.{purpose}"].params.get_param(name).resolve(value)
    for purpose in ("snapshot", "backfill"):
        assert dags[f"shop.{purpose}"].params.get_param("tables").resolve(["shop.a.b"]) == ["shop.a.b"]
    assert dags["shop.erase"].params.get_param("table").resolve("shop.orders.2024") == "shop.orders.2024"


@pytest.mark.parametrize(
    ("mended", "proven"), [(["shop.a", "shop.b.c"], "shop.a,shop.b.c"), (["shop.a", "shop.b,c"], "")]
)
def test_where_a_name_with_a_comma_was_mended_all_tables_are_proven(
    folder: Path, mended: list[str], proven: str
) -> None:
    """The job would take it for two."""
    (folder / "shop.yaml").write_text(text("shop", SCHEDULED))
    for purpose in ("repair", "backfill"):
        task = bag().dags[f"shop.{purpose}"].get_task("verify")
        report = SimpleNamespace(tables={name: {"part": ""} for name in mended})
        task.render_template_fields({"ti": SimpleNamespace(xcom_pull=lambda task_ids, report=report: report)})
        assert task.tables == proven


@pytest.mark.parametrize(
    ("given", "taken"),
    [(None, ""), ([], ""), ([""], ""), (["shop.a", " shop.B ", "", "shop.b", "shop.a"], "shop.a,shop.B,shop.b")],
)
def test_tables_are_named_in_lines_of_which_empty_ones_are_nothing(
    folder: Path, given: list[str] | None, taken: str
) -> None:
    (folder / "shop.yaml").write_text(text("shop"))
    for purpose, task_id in {"snapshot": "stage", "quality": "verify", "maintenance": "maintain"}.items():
        dag = bag().dags[f"shop.{purpose}"]
        assert dag.params.get_param("tables").resolve(given) == given
        task = dag.get_task(task_id)
        task.render_template_fields({"params": {**dag.params.dump(), "tables": given}, "ti": FIRST_TRY})
        assert task.tables == taken


def test_fields_with_blanks_alone_are_not_given(folder: Path) -> None:
    (folder / "shop.yaml").write_text(text("shop"))
    dag = bag().dags["shop.repair"]
    given = {"tables": ["a.b"], "keys": [" ", ""], "from": " 7", "to": None}
    for name, value in given.items():
        dag.params.get_param(name).resolve(value)
    task = dag.get_task("stage")
    task.render_template_fields({"params": given, "run_id": "r"})
    assert task.options == {"keys": "", "from": "7", "to": "", "by": "r"}


def test_a_check_may_be_of_some_tables_and_of_all_their_rows(folder: Path) -> None:
    (folder / "shop.yaml").write_text(text("shop", SCHEDULED))
    for params, given in (
        (
            {"tables": ["shop.a", "shop.b"], "whole": True, "anew": True},
            ("shop.a,shop.b", {"whole": "yes", "anew": "yes"}),
        ),
        # as the form is, and a scheduled run
        ({"tables": [], "whole": False, "anew": False}, ("", {"whole": "", "anew": ""})),
    ):
        dag = bag().dags["shop.quality"]
        assert {*dag.params} == {*params}
        task = dag.get_task("verify")
        task.render_template_fields({"params": params, "ti": FIRST_TRY})
        assert (task.tables, task.options) == given
    task = bag().dags["shop.quality"].get_task("verify")
    task.render_template_fields({"params": {**params, "anew": True}, "ti": SimpleNamespace(try_number=2)})
    assert task.options["anew"] == "", "what its own first try has read is taken up"


def test_stale_tables_are_read_again_where_the_file_says_so(folder: Path) -> None:
    (folder / "shop.yaml").write_text(text("shop", SCHEDULED + "snapshot: {reread_stale: true}\n"))
    task = bag().dags["shop.compaction"].get_task("reread")
    assert task.upstream_task_ids == {"compact"}
    assert (task.trigger_dag_id, task.wait_for_completion) == ("shop.snapshot", False)
    assert task.is_teardown, "else a run whose task has failed would count as good"
    assert "reread" not in bag().dags["shop.quality"].task_ids
    (folder / "shop.yaml").write_text(text("shop", "snapshot: {reread_stale: true}\n"))
    looped = bag().dags["shop.quality"].get_task("reread")
    assert (looped.upstream_task_ids, looped.of) == ({"verify"}, "verify"), "no task has the report of the loop"
    assert (looped.trigger_dag_id, looped.is_teardown) == ("shop.snapshot", True)


def test_every_task_tells_when_it_fails_and_every_dag_tells_what_it_is_for(folder: Path) -> None:
    (folder / "shop.yaml").write_text(text("shop"))
    dags = bag().dags
    for dag in dags.values():
        assert dag.doc_md
        assert {"headrace", "shop"} <= dag.tags
        for task in dag.tasks:
            assert [type(one).__name__ for one in task.on_failure_callback] == ["Alert"]
            assert task.doc_md.endswith(".")
    again = dags["shop.quality"].get_task("compact_again").doc_md
    assert "for a check of the same run" in again


def test_a_dag_speaks_of_the_kind_of_server_that_it_reads(folder: Path) -> None:
    (folder / "shop.yaml").write_text(text("shop"))
    (folder / "crm.yaml").write_text(text("crm").replace("source: {", "source: {flavor: mariadb, "))
    dags = bag().dags
    for name, its, other in (("shop", "MySQL", "MariaDB"), ("crm", "MariaDB", "MySQL")):
        told = {purpose: f"{(dag := dags[f'{name}.{purpose}']).description} {dag.doc_md}" for purpose in PURPOSES}
        assert {purpose for purpose, words in told.items() if its in words} == {
            "snapshot", "quality", "repair", "backfill"
        }  # fmt: skip
        assert not any(other in words for words in told.values())


def test_two_parses_give_the_same(folder: Path) -> None:
    from airflow.serialization.serialized_objects import DagSerialization

    (folder / "shop.yaml").write_text(text("shop", SCHEDULED))
    first, second = ({name: DagSerialization.to_dict(dag) for name, dag in bag().dags.items()} for _ in range(2))
    assert first == second


def test_no_secret_in_what_airflow_stores(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow.serialization.serialized_objects import DagSerialization

    monkeypatch.setenv("SHOP_PASSWORD", "hunter2secret")
    (folder / "shop.yaml").write_text(text("shop").replace("password_file: p", "password: '${SHOP_PASSWORD}'"))
    stored = [DagSerialization.to_dict(dag) for dag in bag().dags.values()]
    assert len(stored) == len(PURPOSES)
    assert "hunter2secret" not in str(stored)


def test_a_wrong_file_is_named_with_line_and_fix_and_the_others_go_on(folder: Path) -> None:
    (folder / "shop.yaml").write_text(text("shop"))
    (folder / "crm.yaml").write_text(text("crm").replace("server_id: 7", "server_id: no") + "lakes: {}\n")
    (folder / "broken.yaml").write_text("name: [\n")
    (folder / "often.yaml").write_text(text("often", "compaction: {schedule: every minute}\n"))
    (folder / "dated.yaml").write_text(text("dated", "streamer: {start: 2026-13-45}\n"))
    found = bag()
    assert set(found.dags) == {f"shop.{purpose}" for purpose in PURPOSES}
    # Airflow stops scheduling the DAGs of a file that has an import error: it must not be theirs.
    assert set(found.import_errors) == {"headrace_pipeline_files.py"}
    error = found.import_errors["headrace_pipeline_files.py"]
    assert f"{folder}/crm.yaml:3: source.server_id" in error
    assert "did you mean lake?" in error
    assert "broken.yaml" in error
    assert f"{folder}/often.yaml:7: compaction.schedule: 'every minute' is no cron schedule" in error
    assert f"{folder}/dated.yaml:7: streamer.start: " in error
    assert "Traceback" not in error


def test_a_notifier_that_airflow_lacks_is_named_and_its_pipeline_goes_on(folder: Path) -> None:
    (folder / "shop.yaml").write_text(text("shop", "quality: {notifier: {type: no_provider.Notifier}}\n"))
    found = bag()
    assert set(found.import_errors) == {"headrace_pipeline_files.py"}
    error = found.import_errors["headrace_pipeline_files.py"]
    assert "shop.yaml:7: quality.notifier.type: no_provider cannot be imported" in error
    assert "fix: correct the path (module.Class), or install the provider's package" in error
    assert set(found.dags) == {f"shop.{purpose}" for purpose in PURPOSES}
    assert "and alerts by Notifier." in found.dags["shop.quality"].doc_md


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({}, "holds no pipeline file"),
        ({"a.yaml": "shop", "b.yaml": "shop"}, "b.yaml: the name 'shop' is taken by"),
    ],
)
def test_an_empty_folder_and_a_name_used_twice_are_mistakes(folder: Path, files: dict[str, str], told: str) -> None:
    for file, name in files.items():
        (folder / file).write_text(text(name))
    found = bag()
    assert told in found.import_errors["headrace_pipeline_files.py"]
    assert len(found.dags) == len(PURPOSES) * bool(files)


def test_parsing_loads_neither_spark_nor_the_kafka_client_nor_great_expectations(folder: Path) -> None:
    import subprocess
    import sys

    (folder / "shop.yaml").write_text(text("shop"))
    heavy = "{'pyspark', 'confluent_kafka', 'great_expectations', 'pandas'}"
    plugins = DAGS.parent / "plugins"
    code = (
        f"import sys; sys.path.insert(0, {str(plugins)!r}); import runpy; "
        f"runpy.run_path({str(DAGS / 'headrace_pipelines.py')!r}); print(sorted({heavy} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip().splitlines()[-1] == "[]"
