"""Each pipeline has a process: what one does leaves the others, and what is wanted outlives the supervisor."""

from __future__ import annotations

import os
import signal

import psutil
import pytest
from structlog.testing import capture_logs

from contract.pipeline import PipelineFileError
from streamer.supervisor.errors import ConflictError, UnknownPipelineError
from tests.streamer.supervisor.conftest import Served, text


def pid(served: Served, name: str) -> int:
    process = served.supervisor.unit(name).process
    assert process is not None
    return process.pid


def test_a_crash_leaves_the_others_and_is_followed_by_restarts_that_are_counted(served: Served) -> None:
    served.put("shop")
    served.put("crashes")
    served.run().wait(lambda: served.supervisor.unit("crashes").restarts >= 3)
    served.wait(lambda: served.state("shop") == "streaming")
    first = pid(served, "shop")
    unit = served.supervisor.unit("crashes")
    assert unit.error is not None
    assert (unit.error["kind"], unit.error["retryable"]) == ("crashed", True)
    assert "signal 9" in unit.error["message"]
    os.kill(first, signal.SIGKILL)
    served.wait(lambda: served.state("shop") == "streaming" and pid(served, "shop") != first)
    assert served.supervisor.unit("shop").restarts == 1


def test_the_pauses_between_restarts_grow(served: Served) -> None:
    served.put("crashes")
    with capture_logs() as logs:
        served.run().wait(lambda: served.supervisor.unit("crashes").restarts >= 4)
    pauses = [line["in_seconds"] for line in logs if line["event"] == "restarting"]
    assert pauses[0] <= 0.05
    assert pauses[3] >= 0.2


def test_an_error_that_wants_a_person_is_shown_and_waits_for_one(served: Served) -> None:
    served.put("wants-help")
    served.run().wait(lambda: served.state("wants-help") == "failed")
    unit = served.supervisor.unit("wants-help")
    assert unit.error is not None
    assert (unit.error["kind"], unit.error["next_step"], unit.error["retryable"]) == ("purged", "Begin anew.", False)
    assert unit.restarts == 0
    served.supervisor.start("wants-help")
    served.wait(lambda: len([one for one in unit.errors.all() if one["kind"] == "purged"]) == 2)


def test_a_oneshot_pipeline_is_finished_when_its_process_ended_well(served: Served) -> None:
    served.put("once", mode="oneshot")
    served.run().wait(lambda: served.state("once") == "finished")


def test_a_file_with_a_mistake_leaves_the_others_and_starts_when_it_is_mended(served: Served) -> None:
    served.put("shop")
    wrong = served.put("wrong")
    good = wrong.read_text()
    wrong.write_text(good.replace("tables:", "tabels:"))
    served.run().wait(lambda: served.state("shop") == "streaming")
    assert served.state("wrong") == "invalid"
    assert "did you mean tables" in str(served.supervisor.unit("wrong").found.error)
    wrong.write_text(good)
    served.wait(lambda: served.state("wrong") == "streaming")


def test_two_files_of_one_name_or_one_port_are_told_of_and_the_first_runs(served: Served) -> None:
    first = served.put("shop")
    (served.folder / "twin.yaml").write_text(first.read_text())
    served.put("other", port=served.port)
    served.run().wait(lambda: served.state("shop") == "streaming")
    assert "is the name of" in str(served.supervisor.unit("twin").found.error)
    assert "streamer.http.port" in str(served.supervisor.unit("other").found.error)


def test_a_file_that_comes_is_started_and_one_that_goes_is_stopped(served: Served) -> None:
    served.run()
    path = served.put("late")
    served.wait(lambda: served.supervisor.units() and served.state("late") == "streaming")
    process = pid(served, "late")
    path.unlink()
    served.wait(lambda: not served.supervisor.units())
    assert not psutil.pid_exists(process)


def test_what_is_paused_or_stopped_stays_so_when_the_supervisor_is_started_again(served: Served) -> None:
    for name in ("one", "two", "three"):
        served.put(name)
    served.run().wait(lambda: all(served.state(name) == "streaming" for name in ("one", "two", "three")))
    served.supervisor.pause("one")
    served.supervisor.stop("two")
    served.wait(lambda: (served.state("one"), served.state("two")) == ("paused", "stopped"))
    served.close()
    served.open()
    served.run().wait(lambda: served.state("three") == "streaming")
    assert (served.state("one"), served.state("two")) == ("paused", "stopped")
    with pytest.raises(ConflictError, match="Resume it"):
        served.supervisor.start("one")
    with pytest.raises(ConflictError, match="Start it"):
        served.supervisor.resume("two")
    served.supervisor.resume("one")
    served.supervisor.start("two")
    served.wait(lambda: (served.state("one"), served.state("two")) == ("streaming", "streaming"))


def test_the_stop_of_the_supervisor_lets_every_pipeline_flush(
    served: Served, capfd: pytest.CaptureFixture[str]
) -> None:
    served.put("one")
    served.put("two")
    served.run().wait(lambda: all(served.state(name) == "streaming" for name in ("one", "two")))
    pids = [pid(served, name) for name in ("one", "two")]
    served.close()
    said = capfd.readouterr().err
    assert not any(psutil.pid_exists(one) for one in pids)
    assert '"event": "flushed", "level": "info", "pipeline": "one"' in said
    assert '"event": "flushed", "level": "info", "pipeline": "two"' in said
    assert "never-to-be-seen" not in said


def test_a_changed_pipeline_goes_on_with_the_new_file_and_its_text_is_kept(served: Served) -> None:
    path = served.put("shop")
    served.run().wait(lambda: served.state("shop") == "streaming")
    first = pid(served, "shop")
    changed = path.read_text().replace("shutdown_seconds: 1", "shutdown_seconds: 2") + "# to the last byte\r\n"
    served.supervisor.files.change("shop", changed)
    assert path.read_bytes().decode() == changed
    served.wait(lambda: served.state("shop") == "streaming" and pid(served, "shop") != first)
    second = pid(served, "shop")
    served.supervisor.files.change("shop", changed.replace('["shop.*"]', '["shop.*", "more.*"]'))
    served.wait(lambda: served.state("shop") == "streaming")
    assert pid(served, "shop") == second, "tables alone are taken without a restart"
    with pytest.raises(PipelineFileError, match="another name is another pipeline"):
        served.supervisor.files.change("shop", text("else"))


def test_a_literal_password_is_refused_and_nothing_is_written(served: Served) -> None:
    served.run()
    bad = text("shop").replace("${SERVED_PASSWORD}", "hunter2-literal")
    with pytest.raises(PipelineFileError, match="plain text") as caught:
        served.supervisor.files.create(bad, start=True)
    assert "hunter2" not in str(caught.value)
    assert list(served.folder.iterdir()) == []


def test_a_pipeline_made_stopped_waits_and_a_deleted_one_is_forgotten(served: Served) -> None:
    served.run()
    served.supervisor.files.create(text("shop"), start=False)
    assert served.state("shop") == "stopped"
    with pytest.raises((ConflictError, PipelineFileError)):
        served.supervisor.files.create(text("shop"), start=True)
    served.supervisor.files.delete("shop")
    served.wait(lambda: not served.supervisor.units())
    with pytest.raises(UnknownPipelineError):
        served.supervisor.unit("shop")
    served.supervisor.files.create(text("shop"), start=True)
    served.wait(lambda: served.state("shop") == "streaming")


def test_one_that_is_being_deleted_is_made_again_in_a_moment(served: Served) -> None:
    served.put("slow")
    served.run().wait(lambda: served.state("slow") == "streaming")
    served.supervisor.files.delete("slow")
    with pytest.raises(ConflictError, match="deleting it is under way"):
        served.supervisor.files.create(text("slow"), start=True)
    served.wait(lambda: not served.supervisor.units())
    served.supervisor.files.create(text("slow"), start=True)
    served.wait(lambda: served.state("slow") == "streaming")


def test_nobody_starts_what_must_stand_still(served: Served) -> None:
    served.put("shop")
    served.run().wait(lambda: served.state("shop") == "streaming")
    with pytest.raises(ConflictError, match="Pause it first"), served.supervisor.standing("shop", "moving"):
        pass
    served.supervisor.pause("shop")
    served.wait(lambda: served.state("shop") == "paused")
    with served.supervisor.standing("shop", "moving"), pytest.raises(ConflictError, match="moving is under way"):
        served.supervisor.resume("shop")
    served.supervisor.resume("shop")
    served.wait(lambda: served.state("shop") == "streaming")
