"""``proteoscope experiment``: tables of runs, and searches whose result tables equal those of separate searches."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from proteoscope import resources
from proteoscope.engine.command_line.main import main
from proteoscope.engine.errors import InputError, ParameterError
from proteoscope.engine.experiments import estimating
from proteoscope.engine.experiments.estimating import estimate_experiment, keep_memory
from proteoscope.engine.experiments.running import run_experiment
from proteoscope.engine.experiments.table import describe_files, read_experiment
from proteoscope.engine.jobs.progress import Cancelled, Progress, ProgressEvent
from proteoscope.engine.project import Project
from proteoscope.engine.project.digests import digests_remembered, file_digest
from proteoscope.engine.project.locks import FileLock
from proteoscope.engine.searches import search_of_kind, search_request
from tests.stopped_runs import tables

SAMPLES = ("BSA1.mzML.gz", "BSA2.mzML.gz")
DATABASE = str(resources.path("samples", "albumin_proteins.fasta.gz"))
SEARCH = ("--database", DATABASE, "--preset", "low-resolution", "--device", "cpu", "--advice", "none")
IDENTIFIED = ("psms", "peptides", "proteins", "spectra")


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    return [str(shutil.copy(resources.path("samples", name), tmp_path / name)) for name in SAMPLES]


@pytest.fixture
def plain_files(tmp_path: Path) -> list[str]:
    """Files that no test searches."""
    for name in ("control_1.mgf", "control_2.mgf", "treated_1.mgf"):
        (tmp_path / name).write_text(name)
    return [str(tmp_path / name) for name in ("control_1.mgf", "control_2.mgf", "treated_1.mgf")]


def listed(project: Path, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    capsys.readouterr()
    assert main(["experiment", "list", str(project), "--json"]) == 0
    rows: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return rows


def refusal(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    capsys.readouterr()
    assert main(["experiment", *map(str, arguments), "--quiet"]) == 2
    output, errors = capsys.readouterr()
    assert output == "" and errors.count("\n") == 1
    return errors


def test_file_name_pattern_assigns_conditions_and_replicates(
    plain_files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pattern = r"(?P<condition>[a-z]+)_(?P<replicate>\d)"
    assert main(["experiment", "create", str(tmp_path / "x"), *plain_files, "--pattern", pattern]) == 0
    rows = listed(tmp_path / "x", capsys)
    assert [(row["run"], row["sample"], row["condition"], row["replicate"]) for row in rows] == [
        ("control_1", "control_1", "control", 1),
        ("control_2", "control_2", "control", 2),
        ("treated_1", "treated_1", "treated", 1),
    ]
    assert [row["sha256"] for row in rows] == [hashlib.sha256(Path(name).read_bytes()).hexdigest() for name in plain_files]


def test_file_name_pattern_takes_linear_time(tmp_path: Path) -> None:
    files = [tmp_path / f"{'a' * 200}b.mgf"]
    with pytest.raises(InputError, match="without the pattern"):
        describe_files(files, r"(?P<condition>(?:a+)+c)")  # Python's regular expressions try 2^200 ways
    assert [(row.condition, row.replicate) for row in describe_files(files, r"(?P<condition>a{3})|_(?P<replicate>\d)")] == [("aaa", 1)]


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(", r"missing \)"),
        ("(?P<condition>(a))", r"unnamed groups; groups without a name are written \(\?:...\)"),
        ("(?P<condition>a)(?=b)", r"invalid perl operator: \(\?="),
        ("(?P<condition>a)\ud800", "surrogates not allowed"),
        ("a", "has no named group"),
        ("(?P<other>a)", "has a group 'other'"),
    ],
)
def test_file_name_pattern_that_cannot_be_used_is_rejected(tmp_path: Path, pattern: str, reason: str) -> None:
    with pytest.raises(ParameterError, match=reason):
        describe_files([tmp_path / "a\udcff.mgf"], pattern)


def test_run_table_assigns_fractions_and_labels(plain_files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "runs.tsv"
    table.write_text(
        "File\tsample\tfraction\tlabel\ncontrol_1.mgf\ta\t1\t126\ncontrol_1.mgf\tb\t1\t127N\n\ncontrol_2.mgf\ta\t2\t126\n", "utf-16"
    )
    assert main(["experiment", "create", str(tmp_path / "x"), "--runs", str(table)]) == 0
    rows = listed(tmp_path / "x", capsys)
    assert [(row["run"], row["sample"], row["fraction"], row["label"], row["file"]) for row in rows] == [
        ("control_1", "a", 1, "126", plain_files[0]),
        ("control_1", "b", 1, "127N", plain_files[0]),
        ("control_2", "a", 2, "126", plain_files[1]),
    ]


def test_create_and_add_report_and_omit_copies_of_files(plain_files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "copy.mgf").write_bytes(Path(plain_files[0]).read_bytes())
    assert main(["experiment", "create", str(tmp_path / "x"), *plain_files, str(tmp_path / "copy.mgf")]) == 0
    assert "copy.mgf is byte for byte the same as control_1.mgf: it is left out" in capsys.readouterr().err
    assert main(["experiment", "add", str(tmp_path / "x"), str(tmp_path / "copy.mgf"), plain_files[1]]) == 0
    assert "control_2.mgf is already in the experiment" in capsys.readouterr().err
    assert [row["file"] for row in listed(tmp_path / "x", capsys)] == plain_files


def test_add_replaces_the_design_of_files_in_a_table(plain_files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["experiment", "create", str(tmp_path / "x"), *plain_files]) == 0
    before, table = listed(tmp_path / "x", capsys), tmp_path / "runs.tsv"
    table.write_text(f"file\tsample\tcondition\n{plain_files[1]}\tb\ttreated\n{plain_files[0]}\ta\t\n")
    assert main(["experiment", "add", str(tmp_path / "x"), "--runs", str(table)]) == 0
    messages = capsys.readouterr().err
    assert "labels are changed: control_2.mgf" in messages
    assert "control_1.mgf is already in the experiment" in messages
    assert listed(tmp_path / "x", capsys) == [before[0], {**before[1], "sample": "b", "condition": "treated"}, *before[2:]]


def test_files_of_equal_name_get_distinct_run_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = [tmp_path / "a" / "RUN.mgf", tmp_path / "b" / "run.mgf", tmp_path / "b" / "con.mgf", tmp_path / "b" / "試料.mgf"]
    for path in names:
        path.parent.mkdir(exist_ok=True)
        path.write_text(str(path))
    assert main(["experiment", "create", str(tmp_path / "x"), *map(str, names)]) == 0
    assert [row["run"] for row in listed(tmp_path / "x", capsys)] == ["RUN", "run_2", "run_con", "run_3"]


def test_run_removed_from_an_experiment_can_be_added_again(
    plain_files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["experiment", "create", str(tmp_path / "x"), *plain_files]) == 0
    before = (tmp_path / "x" / "experiment.tsv").read_bytes()
    assert main(["experiment", "remove", str(tmp_path / "x"), "treated_1.mgf"]) == 0
    assert [row["run"] for row in listed(tmp_path / "x", capsys)] == ["control_1", "control_2"]
    assert main(["experiment", "add", str(tmp_path / "x"), plain_files[2]]) == 0
    assert (tmp_path / "x" / "experiment.tsv").read_bytes() == before
    assert "nosuch: is not in the experiment" in refusal(capsys, "remove", tmp_path / "x", "nosuch")


WRONG_TABLES = {
    "no file": ("sample\tcondition\na\tb\n", "has no column 'file'"),
    "unknown column": ("file\tcolour\ncontrol_1.mgf\tred\n", "has an unknown column 'colour'"),
    "digest": ("file\tsha256\ncontrol_1.mgf\t00\n", "has an unknown column 'sha256'"),
    "column twice": ("file\tfile\ncontrol_1.mgf\tx\n", "has the column 'file' twice"),
    "file twice": ("file\ncontrol_1.mgf\n\ncontrol_1.mgf\n", "line 4: names file 'control_1.mgf' twice, as in line 2"),
    "replicate": ("file\treplicate\ncontrol_1.mgf\t-1\n", "line 2: '-1' is not a replicate number"),
    "two conditions": ("file\tsample\tcondition\ncontrol_1.mgf\ta\tb\ncontrol_2.mgf\ta\tc\n", "gives sample 'a' two conditions"),
    "cells": ("file\ncontrol_1.mgf\ta\n", "line 2: has 2 cells, but 1 columns"),
    "unprintable": ("file\tsample\ncontrol_1.mgf\ta\x1bb\n", "unprintable"),
    "missing file": ("file\nnone.mgf\n", "does not exist"),
    "many rows": ("file\n" + "control_1.mgf\n" * 100_000, "expected a table of at most 20,000 rows"),
    "empty": ("file\n", "names no file"),
}


@pytest.mark.parametrize("case", WRONG_TABLES)
def test_experiment_create_rejects_an_invalid_table(
    case: str, plain_files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content, message = WRONG_TABLES[case]
    (tmp_path / "runs.tsv").write_text(content)
    assert message in refusal(capsys, "create", tmp_path / "x", "--runs", tmp_path / "runs.tsv")
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("change", ["link", "relative path", "run name", "digest", "two files of one run"])
def test_untrusted_experiment_file_is_rejected(
    change: str, plain_files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["experiment", "create", str(tmp_path / "x"), *plain_files]) == 0
    table = tmp_path / "x" / "experiment.tsv"
    content = table.read_text()
    if change == "link":
        table.rename(tmp_path / "elsewhere.tsv")
        table.symlink_to(tmp_path / "elsewhere.tsv")
    else:
        old, new = {
            "relative path": (plain_files[0], "../control_1.mgf"),
            "run name": ("\ncontrol_1\t", "\n../../control_1\t"),
            "digest": (hashlib.sha256(b"control_1.mgf").hexdigest(), "0"),
            "two files of one run": ("\ncontrol_2\t", "\nCONTROL_1\t"),
        }[change]
        assert old in content
        table.write_text(content.replace(old, new))
    assert ("link" if change == "link" else "experiment.tsv") in refusal(capsys, "list", tmp_path / "x")


def test_experiment_tables_equal_those_of_separate_searches(files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bad.mzML").write_text("junk")
    (tmp_path / "changed.mgf").write_text("before")
    project = tmp_path / "x"
    bad, changed = str(tmp_path / "bad.mzML"), str(tmp_path / "changed.mgf")
    assert main(["experiment", "create", str(project), files[0], bad, changed, files[1]]) == 0
    (tmp_path / "changed.mgf").write_text("after")
    capsys.readouterr()
    assert main(["experiment", "run", str(project), *SEARCH]) == 2
    output = capsys.readouterr().out
    assert "bad failed: " in output and "changed.mgf: has changed since it was added" in output
    assert output.endswith("2 searched, 0 were finished before, 2 failed\n")
    assert main(["experiment", "run", str(project), *SEARCH, "--quiet"]) == 2
    quiet = capsys.readouterr()
    assert not quiet.out and "proteoscope: bad failed: " in quiet.err and "changed.mgf: has changed since" in quiet.err
    assert main(["quantify", str(project), "--experiment", "--quiet"]) == 2
    assert "has 2 finished runs without a condition in the experiment, such as BSA1" in capsys.readouterr().err

    for file, run in zip(files, ("BSA1", "BSA2"), strict=True):
        alone = tmp_path / f"{run}_alone"
        assert main(["identify", file, "--out", str(alone), *SEARCH, "--quiet"]) == 0
        assert tables(project, run) == tables(alone, "identify-0001")
        assert tables(project, run).keys() >= set(IDENTIFIED)

    finished = {run.id: run.finished for run in Project.open(project).runs() if run.status == "done"}
    assert main(["experiment", "remove", str(project), "bad", "changed"]) == 0
    capsys.readouterr()
    assert main(["experiment", "run", str(project), *SEARCH]) == 0
    assert capsys.readouterr().out == "0 searched, 2 were finished before, 0 failed\n"
    assert {run.id: run.finished for run in Project.open(project).runs() if run.status == "done"} == finished

    other = refusal(capsys, "run", project, *SEARCH, "--set", "missed_cleavages=0")
    assert "BSA1 (missed_cleavages); BSA2 (missed_cleavages)" in other
    other = refusal(capsys, "run", project, *SEARCH, "--database", resources.path("samples", "lambda_phage.fasta.gz"))
    assert "BSA1 (database); BSA2 (database)" in other


def test_finished_run_can_be_added_to_the_experiment(files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    project = tmp_path / "x"
    assert main(["experiment", "create", str(project), files[0]]) == 0
    assert main(["identify", files[1], "--out", str(project), *SEARCH, "--run-name", "by_hand", "--quiet"]) == 0
    assert "does not exist" in refusal(capsys, "add", project, "nosuch")
    assert main(["experiment", "add", str(project), "by_hand"]) == 0
    assert [(row["run"], row["status"]) for row in listed(project, capsys)] == [("BSA1", "not searched"), ("by_hand", "done")]
    assert main(["experiment", "run", str(project), *SEARCH]) == 0
    assert capsys.readouterr().out == "1 searched, 1 were finished before, 0 failed\n"


def test_memory_limit_must_suffice_and_changes_no_table(files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("limited", "free"):
        assert main(["experiment", "create", str(tmp_path / name), files[0]]) == 0
    message = refusal(capsys, "run", tmp_path / "limited", *SEARCH, "--memory-limit", "260")
    assert f"{tmp_path / 'limited'}: a memory limit of 260 MB is too low; about " in message and "Raise --memory-limit" in message
    assert Project.open(tmp_path / "limited").runs() == []
    assert "'-1' is not a number of megabytes" in refusal(capsys, "run", tmp_path / "limited", *SEARCH, "--memory-limit=-1")
    assert main(["experiment", "run", str(tmp_path / "limited"), *SEARCH, "--memory-limit", "800"]) == 0
    assert main(["experiment", "run", str(tmp_path / "free"), *SEARCH]) == 0
    memory = [Project.open(tmp_path / name).runs()[0].parameters["index_memory"] for name in ("limited", "free")]
    assert memory == [200, 512]
    assert tables(tmp_path / "limited", "BSA1") == tables(tmp_path / "free", "BSA1")
    # A finished run with another memory is not searched again, and needs no memory.
    assert main(["experiment", "run", str(tmp_path / "free"), *SEARCH, "--memory-limit", "1"]) == 0
    assert capsys.readouterr().out.endswith("0 searched, 1 were finished before, 0 failed\n")
    assert "a memory limit of 100 MB is too low; the report of 1 run" in refusal(
        capsys, "report", tmp_path / "free", "--memory-limit", "100"
    )


LIBRARY = str(resources.path("samples", "bsa_library.msp.gz"))
OTHER_SEARCHES = {
    "modified": ("--database", DATABASE, "--mass-shift", "-20..100"),
    "library": ("--library", LIBRARY, "--database", DATABASE),
}


@pytest.mark.parametrize("kind", OTHER_SEARCHES)
def test_experiment_tables_of_other_searches_equal_single_runs(
    kind: str, files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project, search = tmp_path / "x", (*OTHER_SEARCHES[kind], "--preset", "low-resolution", "--device", "cpu")
    assert main(["experiment", "create", str(project), files[0]]) == 0
    assert main([kind, files[1], "--out", str(project), *search, "--run-name", "by_hand", "--quiet"]) == 0
    assert main(["experiment", "add", str(project), "by_hand"]) == 0
    capsys.readouterr()
    assert main(["experiment", "run", str(project), "--search", kind, *search]) == 0
    assert capsys.readouterr().out == "1 searched, 1 were finished before, 0 failed\n"
    assert main([kind, files[0], "--out", str(tmp_path / "alone"), *search, "--quiet"]) == 0
    assert tables(project, "BSA1") == tables(tmp_path / "alone", f"{kind}-0001")
    assert "BSA1 (the search " + kind in refusal(capsys, "run", project, *SEARCH)
    assert main(["identify", files[0], "--out", str(project), *SEARCH, "--run-name", "identified", "--quiet"]) == 0
    assert f"holds no finished run 'identified' of {kind}" in refusal(capsys, "add", project, "identified")


def test_experiment_run_rejects_unsuitable_search_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "unrecognized arguments: --from-project" in refusal(
        capsys, "run", tmp_path, "--search", "modified", "--database", DATABASE, "--from-project", "x"
    )
    assert "are required: --library" in refusal(capsys, "run", tmp_path, "--search", "library")
    assert "invalid choice: 'cluster'" in refusal(capsys, "run", tmp_path, "--search", "cluster", "--database", DATABASE)


def test_project_open_returns_the_same_object_while_held_open(plain_files: list[str], tmp_path: Path) -> None:
    project = Project.create_or_open(tmp_path / "x")
    with project.held_open():
        assert Project.open(tmp_path / "x") is project and Project.create_or_open(tmp_path / "x") is project
        with project.run("identify", {}) as run:
            run.message = "held"
        shutil.rmtree(tmp_path / "x")
        with pytest.raises(InputError):
            Project.open(tmp_path / "x")
    again = Project.create_or_open(tmp_path / "x")
    assert again is not project and again.runs() == []


def test_file_digests_are_stored_until_the_file_changes(plain_files: list[str]) -> None:
    file = Path(plain_files[0])
    with digests_remembered([file]):
        first = file_digest(file)
        state = file.stat()
        file.write_text("CONTROL_1.mgf")
        os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))
        assert file_digest(file) == first
        file.write_text("other")
        assert file_digest(file) == hashlib.sha256(b"other").hexdigest()
    os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))
    file.write_text("more")
    assert file_digest(file) == hashlib.sha256(b"more").hexdigest()


@pytest.mark.parametrize("line", ["Run 2 of 2", "Scoring spectra"])
def test_experiment_resumed_after_a_kill_has_the_same_tables(line: str, files: list[str], tmp_path: Path) -> None:
    project, whole = tmp_path / "x", tmp_path / "whole"
    for folder in (project, whole):
        assert main(["experiment", "create", str(folder), *files, "--quiet"]) == 0
    command = [sys.executable, "-m", "proteoscope", "experiment", "run", str(project), *SEARCH]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, env=dict(os.environ)) as process:
        assert process.stderr is not None
        reached = any(text.startswith(line) for text in process.stderr)
        process.kill()
    assert reached
    assert len([run for run in Project.open(project).runs() if run.status == "done"]) == (line == "Run 2 of 2")
    for folder in (project, whole):
        assert main(["experiment", "run", str(folder), *SEARCH, "--quiet"]) == 0
    for run in ("BSA1", "BSA2"):
        assert tables(project, run) == tables(whole, run)


def test_experiment_tables_are_the_same_with_workers(files: list[str], tmp_path: Path) -> None:
    for folder, more in ((tmp_path / "x", ("--workers", "local:2")), (tmp_path / "whole", ())):
        assert main(["experiment", "create", str(folder), *files, "--quiet"]) == 0
        assert main(["experiment", "run", str(folder), *SEARCH, *more, "--quiet"]) == 0
    for run in ("BSA1", "BSA2"):
        assert tables(tmp_path / "x", run) == tables(tmp_path / "whole", run)


def test_runs_searched_in_processes_have_the_same_tables(files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copies = []
    for number in range(3):
        copies.append(str(tmp_path / f"copy_{number}.mzML"))
        Path(copies[-1]).write_bytes(gzip.decompress(Path(files[0]).read_bytes()) + b"\n" * number)
    (tmp_path / "bad.mzML").write_text("junk")
    for folder, more in (("x", ("--processes", "2")), ("whole", ("--processes", "1"))):
        project = str(tmp_path / folder)
        assert main(["experiment", "create", project, copies[0], str(tmp_path / "bad.mzML"), *copies[1:], "--quiet"]) == 0
        capsys.readouterr()
        assert main(["experiment", "run", project, *SEARCH, *more]) == 2
        output = capsys.readouterr()
        assert output.out.endswith("3 searched, 0 were finished before, 1 failed\n") and "bad failed: " in output.out
        assert "Run bad failed and is left out" in output.err
    for run in ("copy_0", "copy_1", "copy_2"):
        assert tables(tmp_path / "x", run) == tables(tmp_path / "whole", run)
    in_processes, alone = (Project.open(tmp_path / folder).record("copy_1")["messages"] for folder in ("x", "whole"))
    assert in_processes == alone
    assert "give one of the two" in refusal(capsys, "run", tmp_path / "x", *SEARCH, "--processes", "2", "--workers", "local:2")


def test_process_count_depends_on_threads_device_and_memory(files: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bad.mzML").write_text("junk")
    folder, search = tmp_path / "x", search_of_kind("identify")

    def processes(limit: int = 0, given: int | None = None, **request: Any) -> int:
        opened = Project.open(folder)
        requested = search_request("identify", {"spectra": files, "database": [DATABASE]}, project=folder, **{"threads": 8, **request})
        return keep_memory(search, requested, limit, read_experiment(opened), opened, given)[1]

    assert main(["experiment", "create", str(folder), *files, "--quiet"]) == 0
    assert processes() == 4 and processes(threads=1) == 1 and processes(given=3) == 3
    assert processes(device="cuda") == 1 and processes(workers="local:2") == 1
    opened = Project.open(folder)
    request = search_request("identify", {"spectra": files, "database": [DATABASE]}, project=folder, threads=8)
    single, double = (estimate_experiment(search, request, read_experiment(opened), opened, n).memory_bytes / 1e6 for n in (1, 2))
    assert double == 2 * single
    limit = round(1.5 * 1.3 * single)  # 1.3 times the estimate is needed
    assert processes(limit) == 1
    with pytest.raises(ParameterError, match=f"memory limit of {limit} MB is too low"):
        processes(limit, given=2)
    monkeypatch.setattr(estimating, "_DEFAULT_SHARE", 1e-9)
    assert processes() == 1
    assert main(["experiment", "add", str(folder), str(tmp_path / "bad.mzML"), "--quiet"]) == 0
    assert processes() == 4  # only the run of this file fails
    with pytest.raises(InputError, match=r"bad\.mzML"):
        processes(limit)


@pytest.mark.skipif(os.name != "posix", reason="kills processes")
def test_project_stays_locked_until_child_processes_have_ended(files: list[str], tmp_path: Path) -> None:
    project = tmp_path / "x"
    assert main(["experiment", "create", str(project), *files, "--quiet"]) == 0
    command = [sys.executable, "-m", "proteoscope", "experiment", "run", str(project), *SEARCH, "--processes", "2"]
    opened = Project.open(project)  # opening it again and again could keep the search from locking it
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        while not any(run.status == "running" for run in opened.runs()):
            assert process.poll() is None
            time.sleep(0.01)
        first = next(pid for thread in children.parent.parent.iterdir() for pid in (thread / "children").read_text().split())
        os.kill(int(first), signal.SIGSTOP)  # it cannot notice that its parent is killed
        process.kill()
        process.wait()
        lock = FileLock(project / "project.lock")
        assert not lock.acquire("test")
        os.kill(int(first), signal.SIGCONT)
        assert lock.acquire("test", wait=60.0)
        lock.release()
    assert {run.status for run in Project.open(project).runs()} <= {"failed", "done"}
    assert main(["experiment", "run", str(project), *SEARCH, "--quiet"]) == 0


def test_cancelled_search_ends_its_processes_and_is_resumable(files: list[str], tmp_path: Path) -> None:
    project = tmp_path / "x"
    assert main(["experiment", "create", str(project), *files, "--quiet"]) == 0
    opened, search = Project.open(project), search_of_kind("identify")
    request = search_request("identify", {"spectra": files, "database": [SEARCH[1]]}, project=project)
    events = list[str]()

    def cancel(event: ProgressEvent) -> None:
        events.append(event.message)
        if "Run" not in event.message and event.message.startswith("BSA1: "):
            progress.cancel()

    progress = Progress(cancel)
    with pytest.raises(Cancelled):
        run_experiment(search, request, read_experiment(opened), opened, progress, processes=2)
    assert any(text.startswith("BSA1: ") for text in events)
    assert [(run.id, run.status) for run in opened.runs()] == [("BSA1", "cancelled")]
    outcomes = run_experiment(search, request, read_experiment(opened), opened, Progress(), processes=2)
    assert [(outcome.run, outcome.status) for outcome in outcomes] == [("BSA1", "done"), ("BSA2", "done")]


def test_experiment_killed_at_random_times_has_the_same_tables(files: list[str], tmp_path: Path) -> None:
    n_kills, chance = 3, random.Random(3)
    whole = tmp_path / "whole"
    assert main(["experiment", "create", str(whole), *files, "--quiet"]) == 0
    command = [sys.executable, "-m", "proteoscope", "experiment", "run"]
    done = subprocess.run([*command, str(whole), *SEARCH, "--progress", "json"], capture_output=True, text=True, check=True)
    n_events = done.stderr.count("\n")
    n_done, project = 0, tmp_path / "x0"
    for kill in range(n_kills):
        if not project.exists():
            assert main(["experiment", "create", str(project), *files, "--quiet"]) == 0
        # Events come at all stages, however loaded the machine is.
        after, wait = chance.randrange(1, n_events), chance.uniform(0, 0.1)
        with subprocess.Popen(
            [*command, str(project), *SEARCH, "--progress", "json"], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
        ) as process:
            assert process.stderr is not None
            for _ in range(after):
                process.stderr.readline()
            time.sleep(wait)
            process.kill()
        assert Project.open(project).problems == () and Project.open(project).verify() == []
        status = {run.id: run.status for run in Project.open(project).runs()}
        if kill == n_kills - 1 or (set(status.values()) == {"done"} and len(status) == len(files)):
            assert main(["experiment", "run", str(project), *SEARCH, "--quiet"]) == 0
            for run in ("BSA1", "BSA2"):
                assert tables(project, run) == tables(whole, run)
            assert sorted(path.name for path in (project / "results").iterdir()) == ["BSA1", "BSA2"]
            n_done, project = n_done + 1, tmp_path / f"x{kill + 1}"
    assert n_done
