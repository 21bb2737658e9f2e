"""Hits from alignment to file: the number of executed Python lines does not depend on the number of hits."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pytest

from proteoscope.engine.arrays import Texts, segment_offsets
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.sequences import hits as hits_module
from proteoscope.engine.sequences.alignment import Pairs, align_pair, align_pairs
from proteoscope.engine.sequences.hits import FORMATS, Hits, QueryHits, SequenceEntries, hits_table
from proteoscope.engine.sequences.matrices import read_matrix
from proteoscope.engine.sequences.scheme import ScoringScheme
from proteoscope.kernels.cpu.alignment import lane_count
from proteoscope.kernels.device import Partition
from tests.effort import lines_run

RESIDUES = np.array([ord(residue) - ord("A") for residue in "ARNDCQEGHILKMFPSTWYV"], np.int8)


def relatives(n, generator):
    """Return similar proteins, and their ranges."""
    core = generator.choice(RESIDUES, 150)
    results = []
    for _ in range(n):
        relative = np.where(generator.random(150) < 0.3, generator.choice(RESIDUES, 150), core)
        cut = int(generator.integers(20, 130))
        results.append(np.concatenate((relative[: cut - int(generator.integers(0, 12))], relative[cut:])))
    offsets = segment_offsets(np.array([len(result) for result in results]))
    return np.concatenate(results), np.stack((offsets[:-1], offsets[1:]), axis=1)


def pairs_of(n):
    """Return `n` pairs, with their best scores."""
    generator = np.random.default_rng(5)
    queries, query_places = relatives(n, generator)
    subjects, subject_places = relatives(n, generator)
    return Pairs(queries, query_places, subjects, subject_places, np.full(n, 1 << 20))


@pytest.fixture
def scheme():
    return ScoringScheme(read_matrix("BLOSUM62"), 11, 1)


def found_of(pairs, scheme):
    """Return the pairs as hits of one query."""
    n = len(pairs)
    names, others = Texts.from_strings(f"p{k}" for k in range(n)), Texts.from_strings(["q"] * n)
    queries, subjects = (
        SequenceEntries(text, names, np.arange(n), lengths) for text, lengths in zip((others, names), pairs.lengths, strict=True)
    )
    aligned = align_pairs(pairs, scheme, 1, Progress())
    hits = Hits.from_alignments(aligned, queries, subjects, pairs.scores, np.arange(n) + 1, np.linspace(0, 9, n), np.linspace(0, 1, n))
    return QueryHits(np.zeros(1, np.int64), names[:1], names[:1], Texts.from_strings(["ARND"]), np.array([0, n]), hits)


@pytest.mark.parametrize("gap_open", [11, 40_000])  # the second needs 32 bits
@pytest.mark.parametrize("stored_cells", [1 << 24, 1000])
def test_batch_of_alignments_equals_single_alignments(gap_open, stored_cells):
    scheme, pairs = ScoringScheme(read_matrix("BLOSUM62"), gap_open, 1), pairs_of(9)
    alone = [
        align_pair(pairs.queries[slice(*query_place)], pairs.subjects[slice(*subject_place)], scheme, Progress())
        for query_place, subject_place in zip(pairs.query_places, pairs.subject_places, strict=True)
    ]
    scored = Pairs(
        pairs.queries, pairs.query_places, pairs.subjects, pairs.subject_places, np.array([sequence.score for sequence in alone], np.int64)
    )
    together = align_pairs(scored, scheme, 2, Progress(), stored_cells=stored_cells)
    assert together.cigars.strings() == [alignment.cigar for alignment in alone]
    lines = zip(together.query.strings(), together.middle.strings(), together.subject.strings(), strict=True)
    assert list(lines) == [single.lines() for single in alone]
    for name in (
        "query_start",
        "subject_start",
        "query_end",
        "subject_end",
        "identities",
        "mismatches",
        "positives",
        "gap_openings",
    ):
        assert getattr(together, name).tolist() == [getattr(single, name) for single in alone], name


@pytest.mark.parametrize("gaps", [(11, 1), (0, 0), (3, 0), (40, 10)])
@pytest.mark.parametrize("scale", [1, 20])  # the second needs 16 bits
@pytest.mark.parametrize("n", [3, 150])
def test_parallel_alignments_equal_single_alignments(gaps, scale, n):
    matrix = read_matrix("BLOSUM62")
    scheme, pairs = ScoringScheme(replace(matrix, scores=matrix.scores * scale), *gaps), pairs_of(n)
    # Repeated segments give several ends and starts with the same score.
    query = np.concatenate([pairs.queries[20:60], pairs.queries[20:60], pairs.queries[:150], pairs.queries[20:60]])
    alone = [align_pair(query, pairs.subjects[slice(*subject_place)], scheme, Progress()) for subject_place in pairs.subject_places]
    scores, places = np.array([single.score for single in alone], np.int64), np.tile([0, len(query)], (n, 1))
    together = align_pairs(Pairs(query, places, pairs.subjects, pairs.subject_places, scores), scheme, 2, Progress())
    assert together.cigars.strings() == [alignment.cigar for alignment in alone]
    starts = zip(together.query_start.tolist(), together.subject_start.tolist(), strict=True)
    assert list(starts) == [(single.query_start, single.subject_start) for single in alone]


@pytest.mark.parametrize("gaps", [(11, 1), (3, 1)])
def test_segments_of_long_proteins_equal_single_alignments(gaps):
    """The search for begins leaves out cells that no alignment with the known end reaches."""
    scheme, generator = ScoringScheme(read_matrix("BLOSUM62"), *gaps), np.random.default_rng(3)
    core = generator.choice(RESIDUES, 60)
    query = np.concatenate([generator.choice(RESIDUES, 90), core, core[:30], generator.choice(RESIDUES, 70), core])
    subjects = []
    for _ in range(100):
        relative = np.where(generator.random(60) < 0.4, generator.choice(RESIDUES, 60), core)
        first, last = sorted(generator.integers(0, 60, 2).tolist())
        flanks = [generator.choice(RESIDUES, int(length)) for length in generator.integers(0, 900, 2)]
        subjects.append(np.concatenate([flanks[0], relative[first : last + 1], relative[first // 2 :], flanks[1]]))
    offsets = segment_offsets(np.array([len(subject) for subject in subjects]))
    alone = [align_pair(query, subject, scheme, Progress()) for subject in subjects]
    scores, places = np.array([single.score for single in alone], np.int64), np.tile([0, len(query)], (100, 1))
    ranges = np.stack((offsets[:-1], offsets[1:]), axis=1)
    together = align_pairs(Pairs(query, places, np.concatenate(subjects), ranges, scores), scheme, 1, Progress())
    assert together.cigars.strings() == [single.cigar for single in alone]
    starts = zip(together.query_start.tolist(), together.subject_start.tolist(), strict=True)
    assert list(starts) == [(single.query_start, single.subject_start) for single in alone]


def test_alignment_runs_no_python_code_per_pair(scheme, monkeypatch):
    monkeypatch.setattr("proteoscope.engine.sequences.alignment.equal_partitions", lambda cost, *_, **__: [Partition(0, len(cost), 1.0)])
    few, many = pairs_of(20), pairs_of(200)
    few, many = (batch.with_places(np.tile(batch.query_places[:1], (len(batch), 1)), batch.subject_places) for batch in (few, many))
    align_pairs(few, scheme, 1, Progress())
    lines = [lines_run(lambda pairs=pairs: align_pairs(pairs, scheme, 1, Progress())) for pairs in (few, many)]
    # A few lines are executed per vector of subjects, plus those of the partition into vectors.
    assert lines[1] - lines[0] < 100 * (200 // lane_count(16) + 1)


STACKED = ("stockholm", "a3m", "phylip", "clustal-stack", "maf", "psl")
"""Formats that Bio.Align writes, row by row in Python; a stack has a few hundred hits."""


@pytest.mark.parametrize("format", [file_format for file_format in FORMATS if file_format not in STACKED])
def test_hit_writers_run_no_python_code_per_hit(scheme, format):
    few, many = found_of(pairs_of(20), scheme), found_of(pairs_of(200), scheme)

    def write(result):
        with io.BytesIO() as file:
            writer = hits_module._WRITERS[format](file, Progress())
            writer.write(result)
            writer.finish()
            writer.close()
            return file.getvalue()

    write(few)
    assert write(many).count(b"p199") and lines_run(lambda: write(many)) == lines_run(lambda: write(few))


def test_hit_table_runs_no_python_code_per_row(scheme):
    few, many = found_of(pairs_of(20), scheme).hits, found_of(pairs_of(200), scheme).hits
    assert hits_table(many).num_rows == 200
    assert lines_run(lambda: hits_table(many)) == lines_run(lambda: hits_table(few))
