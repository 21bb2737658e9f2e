"""One search on cards and the processor: the same scores whoever computes, planned and corrected shares, lost cards, cancels, memory.

The cards run the CUDA sources on the processor (tests/shim); where time matters, a stand-in takes the time that a test wants.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.command_line.main import main
from engine.errors import ParameterError
from engine.execution.devices import Device
from engine.jobs.progress import Cancelled, Progress, RecordingProgress
from engine.project import Project
from engine.search_run import Asked
from engine.sequence_search import computing, division
from engine.sequence_search.computing import Computing
from engine.sequence_search.division import PROCESSOR, DividedScorer
from engine.sequence_search.parameters import SequenceSearchParameters
from engine.sequence_search.scoring import score_all
from engine.sequence_search.search import align
from engine.sequences.hits import FORMATS
from engine.sequences.matrices import read_matrix
from engine.sequences.scheme import ScoringScheme
from kernels.device import DeviceError
from tests.shim.shim_card import ShimCard, missing_compiler

needs_compiler = pytest.mark.skipif(bool(missing_compiler()), reason=missing_compiler() or "g++ is there")
SCHEME = ScoringScheme(read_matrix("BLOSUM62"), 11, 1)


def shims(n, failing_launch=-1):
    """Cards of which the first may fail."""
    found = [ShimCard(failing_launch=failing_launch if number == 0 else -1) for number in range(n)]
    for number, card in enumerate(found):
        card.name = f"shim:{number}"
    return found


def sequences(seed, n=300, longest=160):
    """A database by length, with empty sequences, as residues and offsets."""
    generator = np.random.default_rng(seed)
    offsets = np.concatenate(([0], np.cumsum(np.sort(generator.integers(0, longest, n))))).astype(np.int64)
    return generator.integers(0, 20, offsets[-1]).astype(np.int8), offsets


def queries(seed, lengths=(50, 0, 33, 1)):
    generator = np.random.default_rng(seed)
    return [generator.integers(0, 20, length).astype(np.int8) for length in lengths]


def scorer(database, cards, *, with_processor=False, speeds=None):
    return DividedScorer(*database, SCHEME, 2, cards, with_processor=with_processor, speeds=speeds or {})


class SlowSearch:
    """Stands in for `AlignmentSearch`: right scores, so many cells a second, and an end after so many pieces."""

    cells_a_second: ClassVar[dict[str, float]] = {}
    pieces_until_lost: ClassVar[dict[str, int]] = {}
    cancelled_at_piece: tuple[int, Progress] | None = None
    pieces = closed = 0

    def __init__(self, card, residues, offsets):
        self._name, self._residues, self._offsets, self._done = card.name, residues, offsets, 0

    def score(self, queries, matrix, gap_open, gap_extend, out, first, last):
        try:
            step = max(1, (last - first) // 20)
            for begin in range(first, last, step):
                if self._done >= self.pieces_until_lost.get(self._name, 10**9):
                    raise DeviceError(f"{self._name} is lost")
                end = min(last, begin + step)
                a, b = int(self._offsets[begin]), int(self._offsets[end])
                out[:, begin:end] = score_all(queries, self._residues[a:b], self._offsets[begin : end + 1] - a, SCHEME, 1, Progress())
                time.sleep(sum(map(len, queries)) * (b - a) / self.cells_a_second.get(self._name, 1e12))
                self._done += 1
                SlowSearch.pieces += 1
                if self.cancelled_at_piece is not None and SlowSearch.pieces == self.cancelled_at_piece[0]:
                    self.cancelled_at_piece[1].cancel()
                yield end
        finally:
            SlowSearch.closed += 1


@pytest.fixture
def slow(monkeypatch):
    monkeypatch.setattr("kernels.cuda.alignment.AlignmentSearch", SlowSearch)
    monkeypatch.setattr(SlowSearch, "cells_a_second", {})
    monkeypatch.setattr(SlowSearch, "pieces_until_lost", {})
    monkeypatch.setattr(SlowSearch, "cancelled_at_piece", None)
    monkeypatch.setattr(SlowSearch, "pieces", 0)
    monkeypatch.setattr(SlowSearch, "closed", 0)
    # Pieces as short as the databases of these tests are small.
    monkeypatch.setattr(division, "_SECONDS_OF_PIECE", 0.02)
    monkeypatch.setattr(division, "_CARDS_SPEED", 50e6)
    monkeypatch.setattr(division, "_CELLS_OF_PIECE", 200_000)
    return SlowSearch


@needs_compiler
@pytest.mark.parametrize(("n_cards", "with_processor"), [(0, False), (1, False), (1, True), (2, False), (2, True)])
def test_scores_are_the_same_whoever_computes(n_cards, with_processor):
    database, several = sequences(1), queries(2)
    found = scorer(database, shims(n_cards), with_processor=with_processor)
    progress, events = Progress(interval=0), []
    progress._handlers.append(events.append)
    progress.stage("Scoring", sum(map(len, several)) * int(database[1][-1]) // 1_000_000)
    expected = score_all(several, *database, SCHEME, 2, Progress())
    for _ in range(2):
        assert np.array_equal(found.score(several, progress), expected)
    shares = {share.device: share.share for share in found.shares()}
    assert set(shares) <= set(found.devices) and sum(shares.values()) == pytest.approx(1)
    assert not n_cards or events[-1].done >= events[-1].total


@needs_compiler
@pytest.mark.parametrize(("n_cards", "with_processor"), [(1, False), (1, True), (2, False)])
@pytest.mark.parametrize("failing_launch", [0, 1])
def test_what_a_lost_card_leaves_is_done_elsewhere_and_told(n_cards, with_processor, failing_launch):
    database, several, recording = sequences(3), queries(4), RecordingProgress(Progress())
    cards = shims(n_cards, failing_launch)
    found = scorer(database, cards, with_processor=with_processor)
    expected = score_all(several, *database, SCHEME, 2, Progress())
    assert np.array_equal(found.score(several, recording), expected)
    assert sum("is lost; what it had not finished is repeated elsewhere" in text for text in recording.messages) == 1
    assert any("The processor scores what is left" in text for text in recording.messages) == (n_cards == 1 and not with_processor)
    launched = cards[0].n_launches
    assert np.array_equal(found.score(several, Progress()), expected)
    assert cards[0].n_launches == launched  # a lost card is not asked again


@needs_compiler
@pytest.mark.parametrize("lengths", [[], [0, 0], [0, 1], [5], [3, 3, 3], [1, 40_000]])
def test_databases_of_any_few_sequences_can_be_divided(lengths):
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    residues = (np.arange(offsets[-1]) % 20).astype(np.int8)
    several = queries(5, (7, 0))
    found = scorer((residues, offsets), shims(1), with_processor=True).score(several, Progress())
    assert np.array_equal(found, score_all(several, residues, offsets, SCHEME, 1, Progress()))


@settings(max_examples=60, deadline=None)
@given(lengths=st.lists(st.integers(0, 400), min_size=1, max_size=200), most=st.sampled_from([1, 7, 1 << 16]))
def test_every_sequence_belongs_to_one_portion_of_about_equal_cost(lengths, most):
    lengths = np.sort(lengths)
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(division, "_MOST_PORTIONS", most)
        begins = scorer((np.zeros(int(offsets[-1]), np.int8), offsets), []).begins
    assert offsets[-1] == 0 or (begins[0], begins[-1]) == (0, len(lengths))
    assert (np.diff(begins) >= 0).all() and len(begins) <= most + 1
    residues = np.diff(offsets[begins])
    assert offsets[-1] == 0 or residues.max() < offsets[-1] / (len(begins) - 1) + 1 + lengths.max()


def test_the_planned_shares_follow_the_speeds_and_are_told(slow):
    database = sequences(6)
    speeds = {"a": 6e9, "b": 3e9, PROCESSOR: 1e9}
    cards = [named("a"), named("b")]
    scorer(database, cards, with_processor=True, speeds=speeds).score(queries(7), recording := RecordingProgress(Progress()))
    assert recording.messages == ("Planned shares of the scoring: a 60.0 %, b 30.0 %, cpu 10.0 % (speeds measured in earlier searches)",)
    scorer(database, cards, with_processor=True).score(queries(7), recording := RecordingProgress(Progress()))
    assert recording.messages == ("Planned shares of the scoring: a 33.3 %, b 33.3 %, cpu 33.3 % (equal speeds, until they are known)",)


def named(name):
    card = ShimCard()
    card.name = name
    return card


def test_speeds_that_nobody_knows_are_measured_on_slices(slow, monkeypatch):
    monkeypatch.setattr(division, "_CELLS_WORTH_MEASURING", 0)
    slow.cells_a_second = {"a": 200e6, "b": 20e6}
    database, several, recording = sequences(8, 2000), queries(9, (60,)), RecordingProgress(Progress())
    found = scorer(database, [named("a"), named("b")])
    assert np.array_equal(found.score(several, recording), score_all(several, *database, SCHEME, 1, Progress()))
    shares = {share.device: share.share for share in found.shares()}
    assert "(speeds measured in this search)" in recording.messages[0]
    assert set(shares) == {"a", "b"} and sum(shares.values()) == pytest.approx(1.0)


def test_a_wrong_plan_is_corrected_while_the_work_runs(slow):
    slow.cells_a_second = {"a": 10e6}
    database, several, recording = sequences(10, 2000), queries(11, (60,)), RecordingProgress(Progress())
    found = scorer(database, [named("a")], with_processor=True, speeds={"a": 9e9, PROCESSOR: 1e9})
    assert np.array_equal(found.score(several, recording), score_all(several, *database, SCHEME, 1, Progress()))
    shares = {share.device: share.share for share in found.shares()}
    assert "a 90.0 %" in recording.messages[0]
    assert shares["a"] < 0.6


def test_a_card_that_fails_while_it_is_measured_is_left_out(slow, monkeypatch):
    monkeypatch.setattr(division, "_CELLS_WORTH_MEASURING", 0)
    slow.pieces_until_lost = {"a": 1}
    database, several, recording = sequences(12, 1000), queries(13), RecordingProgress(Progress())
    found = scorer(database, [named("a")], with_processor=True)
    assert np.array_equal(found.score(several, recording), score_all(several, *database, SCHEME, 1, Progress()))
    assert sum("a is lost" in text for text in recording.messages) == 1


@pytest.mark.parametrize("with_processor", [False, True])
def test_a_cancel_is_obeyed_at_the_next_piece_and_closes_the_work(slow, with_processor):
    slow.cells_a_second = {"a": 1e6, "b": 1e6}
    database, progress = sequences(14, 3000), Progress()
    found = scorer(database, [named("a"), named("b")], with_processor=with_processor, speeds={"a": 1e6, "b": 1e6, PROCESSOR: 1e5})
    slow.cancelled_at_piece = 8, progress
    with pytest.raises(Cancelled):
        found.score(queries(15, (100,) * 20), progress)
    assert 8 <= slow.pieces <= 10, "each card ends the piece that it is at"
    assert slow.closed >= 2


class TestFromFilesToFiles:
    """`align` with cards that run on the processor."""

    @pytest.fixture
    def files(self, fasta, random_protein):
        one, two = random_protein(1, 70), random_protein(2, 90)
        records = [(f"s{k} stranger", random_protein(100 + k, 20 + k)) for k in range(60)]
        records[7:7] = [("copy of one", one), ("near two", two[:40] + two[44:]), ("none", "")]
        return fasta("q.fasta", [("one", one), ("two", two)]), fasta("d.fasta", records)

    @pytest.fixture
    def machine(self, monkeypatch):
        """A machine with two cards, the first of which may fail."""
        opened = []

        def chosen(wish):
            numbers = {"cpu": (), "cuda": (0,)}.get(wish, (0, 1))
            name = "+".join([*(f"shim:{number}" for number in numbers), *(["cpu"] if wish in ("cpu", "all") else [])])
            return Device(name, "cards on a processor", 1 << 30, True, numbers=numbers, with_processor=wish == "all")

        def cards(device, progress, **_):
            opened[:] = shims(len(device.numbers), machine.failing_launch)
            return opened

        def machine():
            return opened

        machine.failing_launch = -1
        monkeypatch.setattr("engine.execution.looking.chosen_device", chosen)
        monkeypatch.setattr("engine.search_run.cards", cards)
        return machine

    @needs_compiler
    @pytest.mark.parametrize(("wish", "failing_launch"), [("cuda", -1), ("all", 2)])
    def test_all_files_and_tables_are_those_of_the_processor(self, files, machine, tmp_path, wish, failing_launch):
        import pyarrow.parquet as pq

        machine.failing_launch = failing_launch
        for device in ("cpu", wish):
            for format in FORMATS:
                folder = tmp_path / device
                project = folder / "project" if format == "tsv" else None
                summary = align(
                    [files[0]], [files[1]], folder / f"hits.{format}", SequenceSearchParameters(), format=format,
                    all_scores=folder / f"{format}.npy", project_folder=project, device=device,
                )  # fmt: skip
        assert machine()[0].n_launches > 1 and summary.shares
        assert any("is lost" in text for text in summary.messages) == (failing_launch >= 0)
        for format in FORMATS:
            for name in (f"hits.{format}", f"{format}.npy"):
                assert (tmp_path / "cpu" / name).read_bytes() == (tmp_path / wish / name).read_bytes(), name
        scores = np.load(tmp_path / wish / "tsv.npy")
        assert (scores.dtype, scores.shape) == (np.int32, (2, 63)) and scores[0].argmax() == 7 and scores[1].argmax() == 8
        projects = [Project.open(tmp_path / device / "project") for device in ("cpu", wish)]
        for table in ("hits", "queries", "score_counts"):
            ours, theirs = (pq.read_table(project.table(table)) for project in projects)
            assert ours.equals(theirs), table

    @needs_compiler
    def test_the_command_line_tells_what_computed_and_how_much(self, files, machine, tmp_path, capsys):
        arguments = ["align", str(files[0]), str(files[1]), "--out", str(tmp_path / "o.tsv"), "--device", "all"]
        assert main(arguments) == 0
        captured = capsys.readouterr()
        assert "Scoring on shim:0+shim:1+cpu: cards on a processor" in captured.err
        assert "Planned shares of the scoring: shim:0 33.3 %" in captured.err
        assert "% of the cells at" in captured.err and " s on shim:0+shim:1+cpu (" in captured.out
        assert main([*arguments, "--json"]) == 0
        summary = json.loads(capsys.readouterr().out)
        assert summary["device"] == "shim:0+shim:1+cpu"
        assert sum(share["share"] for share in summary["shares"]) == pytest.approx(1)

    def test_cards_that_cannot_be_opened_leave_the_processor(self, files, machine, monkeypatch):
        monkeypatch.setattr("engine.search_run.cards", lambda *_, **__: [])
        summary = align([files[0]], [files[1]], None, SequenceSearchParameters(), device="cuda")
        assert summary.device == "cpu" and [share.device for share in summary.shares] == ["cpu"]
        assert any(text.startswith("Scoring on cpu:") for text in summary.messages)

    def test_auto_does_not_look_for_a_gpu_when_the_search_is_short(self, files, monkeypatch, tmp_path):
        wishes = []

        def chosen(wish):
            wishes.append(wish)
            return Device("cpu", "a processor", 1, True)

        monkeypatch.setattr("engine.execution.looking.chosen_device", chosen)
        align([files[0]], [files[1]], None, SequenceSearchParameters())
        monkeypatch.setattr(computing, "_SHORT_SECONDS", 0)
        align([files[0]], [files[1]], None, SequenceSearchParameters())
        assert wishes == ["cpu", "auto"]

    def test_a_gpu_that_auto_cannot_use_is_told(self, files, monkeypatch):
        monkeypatch.setattr(computing, "_SHORT_SECONDS", 0)
        monkeypatch.setattr("engine.execution.looking.chosen_device", lambda wish: Device("cpu", "a processor", 1, True))
        unusable = Device("cuda:0", "a card", 1 << 30, False, "the driver is too old", numbers=(0,))
        monkeypatch.setattr("engine.search_run.gpus", lambda: (unusable,))
        summary = align([files[0]], [files[1]], None, SequenceSearchParameters(), device="auto")
        assert summary.device == "cpu" and "cuda:0 is not used: the driver is too old" in summary.messages

    def test_cupy_is_not_imported_where_the_processor_computes(self, files, tmp_path):
        (tmp_path / "cupy.py").write_text(f"open({str(tmp_path / 'imported')!r}, 'w')")
        repository = Path(__file__).resolve().parents[3]
        command = [sys.executable, "-m", "engine.command_line", "align", *map(str, files), "--out", str(tmp_path / "o.tsv"), "--quiet"]
        paths = os.pathsep.join((str(tmp_path), str(repository)))
        subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": paths, "XDG_CACHE_HOME": str(tmp_path / "cache")})
        assert (tmp_path / "o.tsv").exists() and not (tmp_path / "imported").exists()

    @pytest.mark.parametrize("project", [None, "project"])
    def test_a_wish_that_cannot_be_met_leaves_nothing(self, files, tmp_path, project):
        folder = tmp_path / "out"
        with pytest.raises(ParameterError, match="device = 'cuda:977'"):
            align(
                [files[0]], [files[1]], folder / "hits.tsv", SequenceSearchParameters(), device="cuda:977",
                project_folder=project and folder / project,
            )  # fmt: skip
        assert not folder.exists()


def asked(threads):
    return Asked("align", {"queries": [], "database": []}, {}, SequenceSearchParameters(), device="cpu", threads=threads)


class TestWhatIsRemembered:
    """Speeds of earlier searches, in the user's cache."""

    def test_speeds_are_kept_for_the_next_search(self, own_cache, monkeypatch):
        path = own_cache / "speeds.json"
        database = sequences(20)
        monkeypatch.setattr(division, "_LEAST_CELLS_TO_TELL", 0)
        found = scorer(database, [])
        found.score(queries(21), Progress())
        Computing(asked(3)).finish(found, lambda *_: None)
        (key, speed), *_ = json.loads(path.read_text()).items()
        assert key.endswith("3 used") and speed == pytest.approx(found.speeds()[PROCESSOR])
        path.write_text(json.dumps({"another card": 5.0, key: 1.0}))
        Computing(asked(3)).finish(found, lambda *_: None)
        assert json.loads(path.read_text()) == {"another card": 5.0, key: pytest.approx(speed)}

    @pytest.mark.parametrize("text", ["", "[1]", "{}", '{"a": "fast"}', "\x00", '{"a": -1}'])
    def test_a_damaged_file_is_as_good_as_none(self, own_cache, text):
        (own_cache / "speeds.json").write_text(text)
        assert Computing(asked(1))._speeds == {}

    def test_a_folder_that_cannot_be_written_is_no_obstacle(self, own_cache, monkeypatch):
        monkeypatch.setattr(division, "_LEAST_CELLS_TO_TELL", 0)
        (own_cache / "speeds.json").mkdir()
        found = scorer(sequences(22), [])
        found.score(queries(23), Progress())
        Computing(asked(1)).finish(found, lambda *_: None)
