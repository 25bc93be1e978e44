"""What a power cut left behind: taken back where nothing vouches for it, and nowhere else."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from contract.status import LakeStatus, TableStatus
from spark.lake import cut_off
from spark.lake.cut_commits import take_back_commits, vector_file
from spark.lake.cut_off import take_back
from spark.session import OURS

NOTED = 1_700_000_000_000_000_000  # ns
VECTOR = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "offset": 1, "sizeInBytes": 30}


class Folder:
    """What is asked of a lake; `forgot`: whether Delta was told to look again."""

    def __init__(self, root: Path) -> None:
        self.root, self.forgot, self.changes = str(root), False, f"{root}/_changes"

    def table(self, db: str, table: str) -> str:
        return f"{self.root}/{db}/{table}"

    def forget_logs(self) -> None:
        self.forgot = True


@pytest.fixture(autouse=True)
def _each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the machine does not tell when it was started."""
    monkeypatch.setattr(cut_off, "BOOT", Path("nowhere"))


@pytest.fixture
def lake(tmp_path: Path) -> Any:
    status(tmp_path)
    return Folder(tmp_path)


def status(root: Path, written: int = NOTED, **known: Any) -> None:
    facts = {"pipeline": "shop", "run": 1, "seconds": 1, "checkpoint": None, "changes_version": None, "tables": {}}
    told = LakeStatus.model_validate({**facts, "written_at": written // 1_000_000, **known})
    write(root / "_status.json", told.model_dump_json(), NOTED)


def write(file: Path, text: str, at: int) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    os.utime(file, ns=(at, at))
    os.utime(file.parent, ns=(at, at))
    return file


def lines(*actions: dict[str, Any]) -> str:
    return "\n".join(map(json.dumps, ({"commitInfo": {"userMetadata": OURS}}, *actions)))


def commit(table: Path, version: int, at: int, text: str | None = None, **added: Any) -> Path:
    """Of one file of eight bytes, which is there."""
    data = write(table / "day=a b" / f"{version}.parquet", "PAR1PAR1", at)
    write(data.with_name(f".{data.name}.crc"), "", at)
    whole = lines({"add": {"path": f"day=a%20b/{version}.parquet", "size": 8, **added}})
    log = table / "_delta_log"
    write(log / f".{version:020d}.json.crc", "", at)
    return write(log / f"{version:020d}.json", whole if text is None else text, at)


def versions(table: Path) -> list[int]:
    return sorted(int(file.stem) for file in (table / "_delta_log").glob("[0-9]*.json"))


@pytest.mark.parametrize("table", ["_changes", "shop/items", "_shapes/shop/items", "_schema_changes"])
@pytest.mark.parametrize("text", ["", '{"commitInfo": {', None], ids=["empty", "half", "no data"])
def test_a_commit_that_is_not_whole_is_taken_back(lake: Any, tmp_path: Path, table: str, text: str | None) -> None:
    commit(tmp_path / table, 0, NOTED - 1)
    commit(tmp_path / table, 1, NOTED + 1, text)
    made = write(tmp_path / table / "_delta_log" / f"{1:020d}.checkpoint.parquet", "", NOTED + 1)
    if text is None:
        (tmp_path / table / "day=a b" / "1.parquet").write_text("")
    [told] = take_back(lake)
    assert "commit 1 was cut off, as by a power cut, and noted nowhere: it is done again" in told
    assert (versions(tmp_path / table), made.exists(), lake.forgot) == ([0], False, True)
    assert take_back(lake) == []


def test_what_delta_made_of_one_that_is_gone_goes_too(lake: Any, tmp_path: Path) -> None:
    """A checksum of a version has its table's id and files: those of the next commit of that number are others."""
    log = tmp_path / "_changes" / "_delta_log"
    commit(tmp_path / "_changes", 0, NOTED - 1)
    kept = write(log / f"{0:020d}.crc", "{}", NOTED + 1)
    made = [write(log / f"{1:020d}{name}", "{}", NOTED + 1) for name in (".crc", ".checkpoint.parquet")]
    pointer = write(log / "_last_checkpoint", "{}", NOTED + 1)
    assert take_back(lake) == []
    assert [file.exists() for file in (kept, *made, pointer)] == [True, False, False, False]
    assert versions(tmp_path / "_changes") == [0]


def test_those_before_it_that_are_not_whole_go_too(lake: Any, tmp_path: Path) -> None:
    for version in range(4):
        commit(tmp_path / "_changes", version, NOTED + version, "" if version > 1 else None)
    assert len(take_back(lake)) == 2
    assert versions(tmp_path / "_changes") == [0, 1]


def test_what_a_note_vouches_for_is_left_as_it_is(lake: Any, tmp_path: Path) -> None:
    commit(tmp_path / "_changes", 0, NOTED, "")
    write(tmp_path / "_changes" / "_delta_log" / "another", "", NOTED + 1)
    assert take_back(lake) == []
    assert versions(tmp_path / "_changes") == [0]


@pytest.mark.parametrize(
    "note", ["_marks/000001-000000000000-q.json", "_checkpoints/tables/commits/7", "_stopped.json"]
)
def test_each_kind_of_note_vouches(lake: Any, tmp_path: Path, note: str) -> None:
    commit(tmp_path / "shop/items", 0, NOTED + 5, "")
    write(tmp_path / note, "{}", NOTED + 5)
    assert take_back(lake) == []


def test_a_commit_that_is_whole_stays_without_the_checksums_beside_it(lake: Any, tmp_path: Path) -> None:
    commit(tmp_path / "_changes", 0, NOTED + 1)
    assert take_back(lake) == []
    assert versions(tmp_path / "_changes") == [0]
    assert not [*tmp_path.rglob(".*.crc")], "of which nobody knows whether they are whole"


def test_a_deletion_vector_has_its_bytes_too(lake: Any, tmp_path: Path) -> None:
    table = tmp_path / "shop/items"
    commit(table, 0, NOTED + 1, deletionVector=VECTOR)
    vector = write(table / "ab" / "deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin", "x" * 39, NOTED + 1)
    assert take_back(lake) == []
    vector.write_text("x" * 38)
    os.utime(table / "_delta_log", ns=(NOTED + 1, NOTED + 1))
    assert len(take_back(lake)) == 1


def test_the_file_of_a_deletion_vector_as_the_protocol_gives_it() -> None:
    """The example of Delta's protocol."""
    assert vector_file("ab^-aqEH.-t@S}K{vb[*k^") == "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
    assert vector_file("^-aqEH.-t@S}K{vb[*k^") == "deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"


def test_of_a_staging_nothing_goes_that_was_counted(tmp_path: Path) -> None:
    for version in range(3):
        commit(tmp_path, version, NOTED, "")
    assert len([*take_back_commits(tmp_path, 0, kept=1)]) == 1
    assert versions(tmp_path) == [0, 1]


@pytest.mark.parametrize(
    ("files", "left"),
    [
        ({"commits/1": "", "offsets/1": "v1"}, {"offsets/1"}),  # done again, by the same offsets
        ({"commits/0": "v1", "offsets/0": "v1", "offsets/1": ""}, {"commits/0", "offsets/0"}),
        ({"metadata": "", "sources/0/0": "", "offsets/0": ""}, set()),
        ({"commits/3": "v1", "offsets/3": ""}, {"commits/3", "offsets/3"}),  # no power cut left that
        ({"commits/3": "v1", "offsets/3": "v1", "metadata": ""}, {"commits/3", "offsets/3", "metadata"}),
        ({"metadata": "", "sources/0/0": "{}", "offsets/0": "v1"}, set()),  # nothing came of it yet
        ({"commits/.4.crc": "gone", "offsets/.4.crc": "gone", "offsets/4": "v1"}, {"offsets/4"}),
    ],
)
@pytest.mark.parametrize("query", ["changes", "tables"])
def test_the_last_notes_of_spark(lake: Any, tmp_path: Path, query: str, files: dict[str, str], left: set[str]) -> None:
    folder = tmp_path / "_checkpoints" / query
    for name, text in files.items():
        write(folder / name, text, NOTED + 1)
    assert take_back(lake) == []
    assert {str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()} == left


@pytest.mark.parametrize("first", ["empty", "gone"])
@pytest.mark.parametrize("begin", [0, 1])
def test_what_stands_on_one_that_is_not_whole_goes_with_it(lake: Any, tmp_path: Path, first: str, begin: int) -> None:
    """A commit that cannot be read counts as one that did nothing: what it took out would be there again."""
    table = tmp_path / "shop" / "items"
    for version in range(begin):
        commit(table, version, NOTED - 1)
    torn = commit(table, begin, NOTED + 1, "")
    if first == "gone":
        torn.unlink()
    commit(table, begin + 1, NOTED + 2, lines())
    assert len(take_back(lake)) == (1 if first == "gone" else 2)
    assert versions(table) == [*range(begin)]


@pytest.mark.parametrize("between", [[], [2]])
def test_two_of_which_the_second_took_out_what_the_first_made(lake: Any, tmp_path: Path, between: list[int]) -> None:
    """Both are some seconds old, so that neither may have its data."""
    table = tmp_path / "shop" / "items"
    commit(table, 0, NOTED - 1)
    commit(table, 1, NOTED + 1)
    for version in between:
        commit(table, version, NOTED + 2, lines()).unlink()
    last = 2 + len(between)
    both = {"remove": {"path": "day=a%20b/1.parquet"}}, {"add": {"path": "x", "size": 1}}
    commit(table, last, NOTED + 3, lines(*both))
    (table / "day=a b" / "1.parquet").write_text("")
    assert len(take_back(lake)) == 2
    assert versions(table) == [0]


def test_a_file_that_a_later_commit_took_out_may_have_gone(lake: Any, tmp_path: Path) -> None:
    table = tmp_path / "shop" / "items"
    commit(table, 0, NOTED + 1)
    (table / "day=a b" / "0.parquet").unlink()
    commit(table, 1, NOTED + 2, lines({"remove": {"path": "day=a%20b/0.parquet"}}))
    assert take_back(lake) == []
    assert versions(table) == [0, 1]


def test_what_somebody_else_committed_is_left_to_be_told(lake: Any, tmp_path: Path) -> None:
    clone = tmp_path / "shop" / "items_clone"
    commit(clone, 0, NOTED + 1, lines({"add": {"path": "file:/elsewhere/1.parquet", "size": 8}}))
    commit(tmp_path / "_changes", 0, NOTED + 1, "")
    commit(tmp_path / "_changes", 1, NOTED + 2, json.dumps({"commitInfo": {}}))
    assert take_back(lake) == []


def test_versions_that_the_status_has_are_never_taken(lake: Any, tmp_path: Path) -> None:
    """Whatever the times of the files say."""
    tables = {"shop.items": TableStatus(db="shop", table="items", rows=0, changes=0, version=1)}
    status(tmp_path, changes_version=0, tables=tables)
    for version in range(3):
        commit(tmp_path / "shop" / "items", version, NOTED + 1, "")
        commit(tmp_path / "_changes", version, NOTED + 1, "")
    assert len(take_back(lake)) == 3
    assert (versions(tmp_path / "shop" / "items"), versions(tmp_path / "_changes")) == ([0, 1], [0])


def test_a_table_that_another_one_took_the_place_of_has_other_versions(lake: Any, tmp_path: Path) -> None:
    status(tmp_path, tables={"shop.items": TableStatus(db="shop", table="items", rows=0, changes=0, version=57)})
    commit(tmp_path / "shop" / "items", 0, NOTED - 1)
    commit(tmp_path / "shop" / "items", 1, NOTED + 1, "")
    assert len(take_back(lake)) == 1


def test_it_is_done_once_since_the_machine_was_started(
    lake: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In between nothing is cut off, whatever is wrong with a commit."""
    monkeypatch.setattr(cut_off, "BOOT", write(tmp_path / "boot", "one\n", NOTED))
    assert take_back(lake) == []
    commit(tmp_path / "_changes", 0, NOTED + 1, "")
    assert take_back(lake) == []
    write(tmp_path / "boot", "another\n", NOTED)
    assert len(take_back(lake)) == 1


def test_a_lake_without_a_note_is_a_copy_or_has_nothing(lake: Any, tmp_path: Path) -> None:
    (tmp_path / "_status.json").unlink()
    commit(tmp_path / "_changes", 0, NOTED + 1, "")
    assert take_back(lake) == []


@pytest.mark.parametrize("told", [NOTED - 90_000_000_000, NOTED + 90_000_000_000])
def test_in_a_copy_whose_files_have_other_times_nothing_is_taken(lake: Any, tmp_path: Path, told: int) -> None:
    status(tmp_path, told)
    commit(tmp_path / "_repairs", 0, NOTED + 1, "")
    assert take_back(lake) == []
    write(tmp_path / "_running.json", json.dumps({"began": NOTED / 1e9}), NOTED)
    assert len(take_back(lake)) == 1, "but behind a run that has begun since, times are its own"


def test_a_file_that_cannot_be_looked_at_may_be_whole(
    lake: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of another user, or on a disk that fails: the error that says so is better than a commit less."""
    commit(tmp_path / "_changes", 0, NOTED + 1)
    commit(tmp_path / "shop" / "items", 0, NOTED + 1, "")
    stat = Path.stat

    def refused(file: Path, **given: Any) -> os.stat_result:
        if file.suffix == ".parquet" and "_changes" in file.parts:
            raise PermissionError(file)
        return stat(file, **given)

    monkeypatch.setattr(Path, "stat", refused)
    taken, unknown = sorted(take_back(lake), key=lambda line: "cannot be looked at" in line)
    assert "items: commit 0 was cut off" in taken
    assert "_changes: what a power cut may have left of it cannot be looked at" in unknown
    assert (versions(tmp_path / "_changes"), versions(tmp_path / "shop" / "items")) == ([0], [])


def test_folders_of_others_beside_the_tables_are_passed_by(lake: Any, tmp_path: Path) -> None:
    (tmp_path / "lost+found").mkdir(mode=0)
    write(tmp_path / "notes" / "readme.txt", "hello", NOTED + 1)
    write(tmp_path / "shop" / "items" / "_delta_log" / "..0.json.1.tmp.crc", "", NOTED + 1)
    assert take_back(lake) == []


def test_elsewhere_than_in_a_folder_nothing_is_looked_at(lake: Any) -> None:
    lake.root = "s3a://bucket/shop"
    assert take_back(lake) == []
