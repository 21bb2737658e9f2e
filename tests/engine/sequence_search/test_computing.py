"""One search on GPUs and the CPU: equal scores on all devices, planned and corrected shares, lost GPUs, cancels, memory.

The GPUs are simulated: the CUDA sources run on the CPU (tests/shim). Where time matters, a replacement takes the requested time.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from proteoscope.engine.command_line.main import main
from proteoscope.engine.errors import ParameterError
from proteoscope.engine.execution.devices import Device
from proteoscope.engine.execution.executor import Executor
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.jobs.progress import Cancelled, Progress, RecordingProgress
from proteoscope.engine.project import Project
from proteoscope.engine.sequence_search import scoring
from proteoscope.engine.sequence_search.parameters import SequenceSearchParameters
from proteoscope.engine.sequence_search.scoring import build_workload, score_all, score_queries
from proteoscope.engine.sequences.hits import FORMATS, OF_ONE_QUERY
from proteoscope.engine.sequences.matrices import read_matrix
from proteoscope.engine.sequences.scheme import ScoringScheme
from tests.searching import align
from tests.shim.shim_gpu import ShimGpu, missing_compiler

needs_compiler = pytest.mark.skipif(bool(missing_compiler()), reason=missing_compiler() or "g++ is there")
SCHEME = ScoringScheme(read_matrix("BLOSUM62"), 11, 1)


def shims(n, failing_launch=-1):
    """Return simulated GPUs; the first may fail."""
    devices = [ShimGpu(failing_launch=failing_launch if number == 0 else -1) for number in range(n)]
    for number, gpu in enumerate(devices):
        gpu.name = f"shim:{number}"
    return devices


def sequences(seed, n=300, longest=160):
    """Return a database with sequences of these lengths, some empty, as residues and offsets."""
    generator = np.random.default_rng(seed)
    offsets = np.concatenate(([0], np.cumsum(np.sort(generator.integers(0, longest, n))))).astype(np.int64)
    return generator.integers(0, 20, offsets[-1]).astype(np.int8), offsets


def queries(seed, lengths=(50, 0, 33, 1)):
    generator = np.random.default_rng(seed)
    return [generator.integers(0, 20, length).astype(np.int8) for length in lengths]


@contextmanager
def opened(database, gpus, *, with_processor=False, progress=None):
    """Return a session for the database, on GPUs simulated by tests/shim."""
    resources = Resources(2, gpus, with_processor, progress or Progress())
    with Executor(resources).session(build_workload(*database, SCHEME)) as session:
        yield session


@needs_compiler
@pytest.mark.parametrize(("n_gpus", "with_processor"), [(0, False), (1, False), (1, True), (2, False), (2, True)])
@pytest.mark.parametrize("first_cells", [1e11, 2e5])
def test_sequence_scores_are_equal_for_any_devices_and_chunks(n_gpus, with_processor, first_cells, monkeypatch):
    monkeypatch.setattr(scoring, "_FIRST_CELLS", dict.fromkeys((True, False), first_cells))
    database, several, events = sequences(1), queries(2), []
    progress = Progress(events.append, interval=0)
    progress.stage("Scoring", sum(map(len, several)) * int(database[1][-1]) // 1_000_000)
    expected = score_all(several, *database, SCHEME, 2, Progress())
    with opened(database, shims(n_gpus), with_processor=with_processor, progress=progress) as session:
        for _ in range(2):
            assert np.array_equal(score_queries(session, several), expected)
        shares = {share.device: share.fraction for share in session.shares()}
        assert set(shares) <= set(session.devices) and sum(shares.values()) == pytest.approx(1)
    assert events[-1].done >= events[-1].total


@needs_compiler
@pytest.mark.parametrize(("n_gpus", "with_processor"), [(1, False), (1, True), (2, False)])
@pytest.mark.parametrize("failing_launch", [0, 1])
def test_sequence_search_repeats_and_reports_work_of_a_lost_gpu(n_gpus, with_processor, failing_launch):
    database, several, recording = sequences(3), queries(4), RecordingProgress(Progress())
    gpus = shims(n_gpus, failing_launch)
    lost = gpus[0]
    expected = score_all(several, *database, SCHEME, 2, Progress())
    with opened(database, gpus, with_processor=with_processor, progress=recording) as session:
        assert np.array_equal(score_queries(session, several), expected)
        assert sum("is lost; its unfinished items are repeated elsewhere" in text for text in recording.messages) == 1
        assert ("The CPU computes the remaining items" in recording.messages) == (n_gpus == 1 and not with_processor)
        launched = lost.n_launches
        assert np.array_equal(score_queries(session, several), expected)
        assert lost.n_launches == launched  # A lost GPU is not used again.


@needs_compiler
@pytest.mark.parametrize("lengths", [[], [0, 0], [0, 1], [5], [3, 3, 3], [1, 10_000]])
@pytest.mark.parametrize("n_gpus", [0, 1])
def test_very_small_sequence_databases_can_be_partitioned(lengths, n_gpus):
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    residues = (np.arange(offsets[-1]) % 20).astype(np.int8)
    several = queries(5, (7, 0))
    with opened((residues, offsets), shims(n_gpus), with_processor=True) as session:
        scores = score_queries(session, several)
    assert np.array_equal(scores, score_all(several, residues, offsets, SCHEME, 1, Progress()))


class EndlessSearch:
    """Replaces `AlignmentSearch`: runs without end, and records that it was closed."""

    begun = closed = cells_done = 0

    def __init__(self, device, residues, offsets):
        pass

    def score(self, *_):
        EndlessSearch.begun += 1
        try:
            while True:
                yield 0
        finally:
            EndlessSearch.closed += 1


@pytest.mark.parametrize("with_processor", [False, True])
def test_cancel_closes_the_sequence_search_on_each_device(with_processor, monkeypatch):
    for backend in ("cpu", "cuda"):
        monkeypatch.setattr(f"proteoscope.kernels.{backend}.alignment.AlignmentSearch", EndlessSearch)
    monkeypatch.setattr(EndlessSearch, "begun", 0)
    monkeypatch.setattr(EndlessSearch, "closed", 0)
    progress = Progress()
    timer = threading.Timer(0.1, progress.cancel)
    timer.start()
    with pytest.raises(Cancelled), opened(sequences(14), shims(2), with_processor=with_processor, progress=progress) as session:
        score_queries(session, queries(15))
    timer.join()
    assert EndlessSearch.begun == EndlessSearch.closed > 0


class TestAlignOnDevices:
    """Run `align` with GPUs simulated on the CPU."""

    @pytest.fixture
    def files(self, fasta, random_protein):
        first, second = random_protein(1, 70), random_protein(2, 90)
        records = [(f"s{k} unrelated", random_protein(100 + k, 20 + k)) for k in range(60)]
        records[7:7] = [("copy of one", first), ("near two", second[:40] + second[44:]), ("none", "")]
        return fasta("q.fasta", [("one", first), ("two", second)]), fasta("d.fasta", records)

    @pytest.fixture
    def machine(self, monkeypatch):
        """Return a machine with two GPUs; the first may fail."""
        opened = []

        def chosen(requested):
            numbers = {"cpu": (), "cuda": (0,)}.get(requested, (0, 1))
            name = "+".join([*(f"shim:{number}" for number in numbers), *(["cpu"] if requested in ("cpu", "all") else [])])
            return Device(name, "GPUs on a processor", 1 << 30, True, numbers=numbers, with_processor=requested == "all")

        def gpus(device, progress, **_):
            opened[:] = shims(len(device.numbers), machine.failing_launch)
            return list(opened)  # The search removes lost ones from its own list.

        def machine():
            return opened

        machine.failing_launch = -1
        monkeypatch.setattr("proteoscope.engine.execution.device_lookup.resolve_device", chosen)
        monkeypatch.setattr("proteoscope.engine.search_run.open_gpus", gpus)
        return machine

    @needs_compiler
    @pytest.mark.parametrize(("requested", "failing_launch"), [("cuda", -1), ("all", 2)])
    def test_align_files_are_equal_on_gpus_and_cpu(self, files, machine, tmp_path, requested, failing_launch):
        import pyarrow.parquet as pq

        machine.failing_launch = failing_launch
        # Files depend only on the scores, not on the devices.
        formats = [name for name in FORMATS if name not in OF_ONE_QUERY] if requested == "cuda" else ["tsv", "sam"]
        for device in ("cpu", requested):
            for format in formats:
                folder = tmp_path / device
                project = folder / "project" if format == "tsv" else None
                summary = align(
                    [files[0]],
                    [files[1]],
                    folder / f"hits.{format}",
                    SequenceSearchParameters(),
                    format=format,
                    all_scores=folder / f"{format}.npy",
                    project_folder=project,
                    device=device,
                )
        # With the CPU, the GPU may do too little to reach the launch that fails.
        assert (requested == "all" or machine()[0].n_launches > 1) and summary.shares
        assert any("is lost" in text for text in summary.messages) == (0 <= failing_launch < machine()[0].n_launches)
        for format in formats:
            for name in (f"hits.{format}", f"{format}.npy"):
                assert (tmp_path / "cpu" / name).read_bytes() == (tmp_path / requested / name).read_bytes(), name
        scores = np.load(tmp_path / requested / "tsv.npy")
        assert (scores.dtype, scores.shape) == (np.int32, (2, 63)) and scores[0].argmax() == 7 and scores[1].argmax() == 8
        projects = [Project.open(tmp_path / device / "project") for device in ("cpu", requested)]
        for table in ("hits", "queries", "score_counts"):
            ours, theirs = (pq.read_table(project.table(table)) for project in projects)
            assert ours.equals(theirs), table

    @needs_compiler
    def test_align_command_reports_devices_and_shares(self, files, machine, tmp_path, capsys):
        arguments = ["align", str(files[0]), str(files[1]), "--out", str(tmp_path / "o.tsv"), "--device", "all"]
        assert main(arguments) == 0
        captured = capsys.readouterr()
        assert "Scoring on shim:0+shim:1+cpu: GPUs on a processor" in captured.err
        assert "Planned shares: shim:0" in captured.err
        assert "% of the cells at" in captured.err and " s on shim:0+shim:1+cpu (" in captured.out
        assert main([*arguments, "--json"]) == 0
        summary = json.loads(capsys.readouterr().out)
        assert summary["device"] == "shim:0+shim:1+cpu"
        assert sum(share["share"] for share in summary["shares"]) == pytest.approx(1)

    def test_align_uses_the_cpu_when_gpus_cannot_be_opened(self, files, machine, monkeypatch):
        monkeypatch.setattr("proteoscope.engine.search_run.open_gpus", lambda *_, **__: [])
        summary = align([files[0]], [files[1]], None, SequenceSearchParameters(), device="cuda")
        assert summary.device == "cpu" and [share.device for share in summary.shares] == ["cpu"]
        assert any(text.startswith("Scoring on cpu:") for text in summary.messages)

    def test_align_on_auto_detects_no_gpu_for_short_searches(self, files, monkeypatch, tmp_path):
        requested = []

        def chosen(device):
            requested.append(device)
            return Device("cpu", "a processor", 1, True)

        monkeypatch.setattr("proteoscope.engine.execution.device_lookup.resolve_device", chosen)
        align([files[0]], [files[1]], None, SequenceSearchParameters())
        assert requested == []
        monkeypatch.setattr("proteoscope.engine.estimates.USUAL_START_SECONDS", 0.0)
        align([files[0]], [files[1]], None, SequenceSearchParameters())
        assert requested == ["auto"]

    def test_align_on_auto_reports_unusable_gpu(self, files, monkeypatch):
        monkeypatch.setattr("proteoscope.engine.estimates.USUAL_START_SECONDS", 0.0)
        monkeypatch.setattr(
            "proteoscope.engine.execution.device_lookup.resolve_device", lambda requested: Device("cpu", "a processor", 1, True)
        )
        unusable = Device("cuda:0", "a GPU", 1 << 30, False, "the driver is too old", numbers=(0,))
        monkeypatch.setattr("proteoscope.engine.search_run.gpus", lambda: (unusable,))
        summary = align([files[0]], [files[1]], None, SequenceSearchParameters(), device="auto")
        assert summary.device == "cpu" and "cuda:0 is not used: the driver is too old" in summary.messages

    def test_align_on_cpu_does_not_import_cupy(self, files, tmp_path):
        (tmp_path / "cupy.py").write_text(f"open({str(tmp_path / 'imported')!r}, 'w')")
        repository = Path(__file__).resolve().parents[3]
        command = [
            sys.executable,
            "-m",
            "proteoscope.engine.command_line",
            "align",
            *map(str, files),
            "--out",
            str(tmp_path / "o.tsv"),
            "--quiet",
        ]
        paths = os.pathsep.join((str(tmp_path), str(repository)))
        subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": paths, "XDG_CACHE_HOME": str(tmp_path / "cache")})
        assert (tmp_path / "o.tsv").exists() and not (tmp_path / "imported").exists()

    @pytest.mark.parametrize("project", [None, "project"])
    def test_align_on_unavailable_device_leaves_no_run(self, files, tmp_path, project):
        folder = tmp_path / "out"
        with pytest.raises(ParameterError, match="device = 'cuda:977'"):
            align(
                [files[0]],
                [files[1]],
                folder / "hits.tsv",
                SequenceSearchParameters(),
                device="cuda:977",
                project_folder=project and folder / project,
            )
        assert not folder.exists()
