"""Searches stopped by the user or by each other: finished results stay complete, and nothing half-written is left.

`tests/fuzz/kills.py` tests kills at any moment.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from proteoscope.engine.command_line.main import main
from proteoscope.engine.identification.parameters import IdentificationParameters
from proteoscope.engine.jobs.progress import Cancelled, Progress
from proteoscope.engine.parameters import read_preset
from proteoscope.engine.project import Project
from tests.conftest import leave_advice_out
from tests.searching import few_proteins, identify

REPOSITORY = Path(__file__).resolve().parents[3]
SAMPLES = REPOSITORY / "resources" / "samples"
SPECTRA, DATABASE = SAMPLES / "Ecoli_MS2_small.mzML.gz", SAMPLES / "18Protein_SoCe_Tr_detergents_trace.fasta.gz"
ARGUMENTS = ["identify", str(SPECTRA), "--database", str(DATABASE), "--preset", "low-resolution", "--set", "second_pass=true"]

needs_signals = pytest.mark.skipif(os.name != "posix", reason="signals are sent in another way")


def started(*arguments, **options):
    command = [sys.executable, "-m", "proteoscope.engine.command_line", *arguments]
    return subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


def files(folder):
    """Return the files for users: tables, run.json and results."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.suffix in (".tsv", ".json", ".parquet")}


def assert_whole(folder):
    """Check that the project opens and holds only registered results."""
    project = Project.open(folder)
    assert project.verify() == []
    done = {run.id for run in project.runs() if run.status == "done"}
    assert {path.name for path in (folder / "results").glob("*")} == done
    assert not [path for path in (folder / "results").rglob("*") if path.is_file() and path.suffix not in (".parquet", ".json")]
    return project


@pytest.fixture(scope="module")
def stages(tmp_path_factory):
    """Project with one run, and the stages of that run in order, including that of the index."""
    folder = tmp_path_factory.mktemp("stages") / "project"
    titles = []
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PROTEOSCOPE_CACHE", str(tmp_path_factory.mktemp("cache")))
        search(folder, Progress(lambda event: titles.append(event.stage)), index=None)
    return folder, list(
        dict.fromkeys(stage for stage in titles if stage and not stage.startswith(("Compiling", "Looking")))
    )  # once in a process


class ImpatientProgress(Progress):
    """Progress that cancels as soon as a stage starts."""

    def __init__(self, title):
        super().__init__(self._look)
        self._title = title
        self.n_late = 0  # checks after the cancel

    def _look(self, event):
        if event.stage == self._title:
            self.cancel()

    def check(self):
        self.n_late += self.is_cancelled
        super().check()


def search(folder, progress, *, index):
    """Run the search of this file; `index` changes a parameter, so that a new index is built."""
    parameters = IdentificationParameters.checked(read_preset("identify", "low-resolution")).changed(second_pass=True)
    if index is not None:
        parameters = parameters.changed(maximum_mass=5000.0 + index)
    folder.parent.mkdir(parents=True, exist_ok=True)
    # A cancel during the advice, after the results, ends the advice only (`test_advice.py`).
    return identify([SPECTRA], [few_proteins(folder.parent)], folder, parameters, threads=2, progress=progress, advice="none")


def test_search_cancelled_in_any_stage_changes_no_file(stages, own_cache):
    folder, titles = stages
    assert len(titles) >= 10
    before = files(folder)
    for number, title in enumerate(titles):
        progress = ImpatientProgress(title)
        with pytest.raises(Cancelled):
            search(folder, progress, index=number)
        # Each thread notices it once; some report it and check again for their background tasks. `moments.py` measures the seconds.
        assert progress.n_late <= 12, f"{title}: {progress.n_late} checks after the cancel"
        project = assert_whole(folder)
        assert project.runs()[-1].status == "cancelled", title
        after = files(folder)
        assert set(after) == set(before), title
        assert {path: after[path] for path in before} == before, title
        assert not list(own_cache.rglob(".*")), title


def test_cancel_after_the_search_does_not_stop_the_export(tmp_path):
    """Cancel after the last table was registered: the tables, run.json and the database of the project describe the same run."""
    summary = search(tmp_path / "project", Progress(), index=None)
    assert (tmp_path / "project" / "run.json").exists()
    assert assert_whole(tmp_path / "project").latest() == summary.run_id
    assert not (tmp_path / "project" / "results" / summary.run_id / "exports").exists()


@needs_signals
@pytest.mark.parametrize(
    "stage",
    [
        "Reading spectra",
        pytest.param("Building the peptide index", marks=pytest.mark.long),
        pytest.param("Preprocessing spectra", marks=pytest.mark.long),
        "Scoring spectra",
    ],
)
def test_control_c_exits_with_130(stage, shared_data, tmp_path, own_cache):
    spectra, database = shared_data / "spectra" / "bench_x10.mgf", shared_data / "proteomes" / "ecoli_13spiked_2021_04.fasta"
    process = started("identify", str(spectra), "--database", str(database), "--out", str(tmp_path / "out"))
    for line in process.stderr:
        if line.startswith(stage):
            break
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert output == ""
    # On a slow machine the run has a checkpoint, and the line ends with the command that resumes it.
    assert errors.splitlines()[-1].startswith("proteoscope: interrupted; finished results are untouched")
    assert "Traceback" not in errors
    if (tmp_path / "out").exists():
        project = assert_whole(tmp_path / "out")
        assert project.runs()[-1].status == "cancelled" and project.resumable(), "a new project remains only if its run can be resumed"
    assert not list(own_cache.rglob(".*"))


@needs_signals
def test_simultaneous_searches_leave_a_complete_project(tmp_path):
    folder = tmp_path / "project"
    arguments = ["identify", str(SPECTRA), "--database", str(few_proteins(tmp_path)), "--preset", "low-resolution"]
    processes = [started(*arguments, "--out", str(folder), "--quiet") for _ in range(2)]
    ended = [(process.communicate()[1], process.returncode) for process in processes]
    # The second search waits briefly for the first, and then names it in an error.
    assert 0 in {code for _, code in ended}
    for errors, code in ended:
        assert code in (0, 2)
        assert errors == "" if code == 0 else "is writing this project" in errors
    project = assert_whole(folder)
    assert sum(run.status == "done" for run in project.runs()) == sum(code == 0 for _, code in ended)


def test_project_in_use_is_reported_in_one_line(tmp_path, capsys):
    project = Project.create_or_open(tmp_path / "project")
    is_held, may_end = threading.Event(), threading.Event()

    def hold():
        with project.run("identify", {}):
            is_held.set()
            may_end.wait(30)

    holder = threading.Thread(target=hold)
    holder.start()
    assert is_held.wait(30)
    try:
        assert main([*ARGUMENTS, "--out", str(tmp_path / "project"), "--quiet"]) == 2
    finally:
        may_end.set()
        holder.join()
    message = capsys.readouterr().err
    assert "is writing this project" in message
    assert message.count("\n") == 1


def test_peptide_index_is_reused_and_rebuilt_when_damaged(tmp_path, own_cache, monkeypatch):
    leave_advice_out(monkeypatch)  # the advice builds indexes that are not cached
    folder = tmp_path / "project"

    def stages_of_a_search():
        titles = []
        search(folder, Progress(lambda event: titles.append(event.stage)), index=None)
        return "Counting peptides" in titles[: titles.index("Preprocessing spectra")]

    assert stages_of_a_search()
    tables = {path.name: path.read_bytes() for path in (folder / "exports").iterdir()}
    assert not stages_of_a_search()
    assert not (folder / "index").exists()
    (index,) = (own_cache / "indexes").iterdir()
    damages = {
        "peptide_mass.npy": lambda content: content[:5000] + bytes([content[5000] ^ 1]) + content[5001:],
        "protein_residues.npy": lambda content: content[:-1],
        "manifest.json": lambda content: content[: len(content) // 2],
    }
    for name, damage in damages.items():
        (index / name).write_bytes(damage((index / name).read_bytes()))
        assert stages_of_a_search(), name
        assert {path.name: path.read_bytes() for path in (folder / "exports").iterdir()} == tables, name
    (index / "peptide_length.npy").unlink()
    assert stages_of_a_search()
    assert not stages_of_a_search()


@needs_signals
@pytest.mark.parametrize("module", ["proteoscope.engine.command_line", "proteoscope"])
@pytest.mark.parametrize("n_imports", [1, pytest.param(3, marks=pytest.mark.long), 30, pytest.param(90, marks=pytest.mark.long), 250])
def test_control_c_during_imports_prints_one_line(module, n_imports, tmp_path, number=signal.SIGINT):
    command = [sys.executable, "-v", "-m", module, *ARGUMENTS, "--out", str(tmp_path / "project")]
    process = subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    imported = (line for line in process.stderr if line.startswith("import "))
    assert any("'proteoscope.engine.command_line.interruption'" in line for line in imported)
    for _, _ in zip(range(n_imports), imported, strict=False):
        pass
    process.send_signal(number)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert output == ""
    assert errors.count("proteoscope: interrupted; finished results are untouched\n") == 1
    assert "Traceback" not in errors and "KeyboardInterrupt" not in errors


@needs_signals
def test_control_c_stops_compilation_of_kernels(tmp_path):
    (tmp_path / "cache").mkdir()
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    process = started(*ARGUMENTS, "--out", str(tmp_path / "project"), env=environment)
    # On a busy machine, a line about the detection of GPUs comes first.
    assert any("Compiling" in line for line in process.stderr)
    time.sleep(1.0)
    n_compiled = len(list((tmp_path / "cache").rglob("*.nbc")))
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 130
    # Callees of a function are compiled with it.
    assert len(list((tmp_path / "cache").rglob("*.nbc"))) <= n_compiled + 10, "of dozens"


def skip_where_ignored(number):
    """Skip a test of a signal that this process ignores, as under nohup: commands that it starts ignore it too."""
    if signal.getsignal(number) is signal.SIG_IGN:
        pytest.skip(f"{signal.Signals(number).name} is ignored here")


@needs_signals
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_sigterm_and_sighup_during_imports_print_one_line(number, tmp_path):
    skip_where_ignored(number)
    test_control_c_during_imports_prints_one_line("proteoscope", 30, tmp_path, number)


@needs_signals
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_signal_during_library_prediction_leaves_no_files(number, tmp_path, own_cache):
    skip_where_ignored(number)
    process = started("predict", str(DATABASE), "--out", str(tmp_path / "library.msp"))
    for line in process.stderr:
        if line.startswith("Writing"):
            break
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert errors.splitlines()[-1] == "proteoscope: interrupted; finished results are untouched"
    assert list(tmp_path.iterdir()) == []


@needs_signals
def test_hangup_is_ignored_under_nohup(tmp_path):
    command = ["nohup", sys.executable, "-m", "proteoscope.engine.command_line", "convert", str(SPECTRA), "--out", str(tmp_path / "x.mgf")]
    process = subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not (line := process.stderr.readline()).startswith("Reading"):
        assert line, "the program ended before it read"
    process.send_signal(signal.SIGHUP)
    process.communicate(timeout=120)
    assert process.returncode == 0
    assert (tmp_path / "x.mgf").exists()
