"""Sequence types are inferred from the symbols, and ambiguous bases score the mean over the bases they represent."""

from __future__ import annotations

import numpy as np
import pytest

from proteoscope.engine.errors import InputError
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.read_alignment.parameters import ReadAlignmentParameters
from proteoscope.engine.read_alignment.sequences import (
    check_sequence_types,
    gap_rules,
    nucleotide_matrix,
    read_sequences,
    with_other_strands,
)
from proteoscope.engine.sequences.matrices import SYMBOLS, read_matrix
from proteoscope.kernels.gapsmis_layouts import Sequences

BASES = {"A": "A", "C": "C", "G": "G", "T": "T", "R": "AG", "Y": "CT", "B": "CGT", "N": "ACGT"}


def read(tmp_path, text, name="some.fasta"):
    path = tmp_path / name
    path.write_text(text)
    return read_sequences(path, Progress())


def sequence_text(sequences):
    return "".join(SYMBOLS[code] for code in sequences.codes)


def test_read_sequences_reads_u_as_t_in_upper_and_lower_case(tmp_path):
    read_back = read(tmp_path, ">a\nacgU\n>b\nnTT\n")
    assert read_back.are_nucleotides
    assert sequence_text(read_back.sequences) == "ACGTNTT"
    assert read_back.names.strings() == ["a", "b"]
    assert read_back.lengths.tolist() == [4, 3]


def test_sequences_of_ambiguous_bases_are_nucleotides(tmp_path):
    assert read(tmp_path, ">a\nACGTACGTNNRYACGT\n").are_nucleotides
    assert not read(tmp_path, ">a\nACGTACGTNNRYACGE\n").are_nucleotides
    assert not read(tmp_path, ">silk\nGAGSGAGSGASSYGRSDV\n").are_nucleotides


def test_error_locates_residue_that_is_not_a_nucleotide(tmp_path):
    with pytest.raises(InputError, match=r"'E' at position 3 of second is not a nucleotide"):
        read(tmp_path, f">first\n{'ACGT' * 10}\n>second\nACEGT\n")


def test_read_alignment_rejects_proteins_against_nucleotides(tmp_path):
    proteins, bases = read(tmp_path, ">p\nMKVLAWWYRND\n"), read(tmp_path, ">b\nACGTTGCA\n", "bases.fasta")
    assert not proteins.are_nucleotides
    for pair in ((proteins, bases), (bases, proteins)):
        with pytest.raises(InputError, match=r"contains proteins, but bases\.fasta nucleotides"):
            check_sequence_types(*pair)
    check_sequence_types(bases, bases)


@pytest.mark.parametrize(("match", "mismatch"), [(2, -3), (5, -4), (1, -1)])
def test_ambiguous_base_scores_the_mean_rounded_down(match, mismatch):
    scores = nucleotide_matrix(match, mismatch).scores
    for symbol, bases in BASES.items():
        for other_symbol, others in BASES.items():
            mean = np.mean([match if a == b else mismatch for a in bases for b in others])
            assert scores[SYMBOLS.index(symbol), SYMBOLS.index(other_symbol)] == np.floor(mean), symbol + other_symbol


def test_reverse_complement_applied_twice_returns_the_sequence(tmp_path):
    sequences = read(tmp_path, ">a\nACGTTNRYKM\n>b\n\n>c\nGATTACA\n").sequences
    n = len(sequences.codes)
    both = with_other_strands(sequences)
    np.testing.assert_array_equal(both.codes[:n], sequences.codes)
    other = Sequences(both.codes[n:], both.offsets[3:] - n)
    assert sequence_text(other) == "KMRYNAACGT" + "TGTAATC"
    np.testing.assert_array_equal(with_other_strands(other).codes[n:], sequences.codes)
    part = with_other_strands(Sequences(sequences.codes, sequences.offsets[1:]))
    assert sequence_text(part) == "GATTACA" + "TGTAATC"


def test_substitution_matrix_replaces_match_and_mismatch_scores():
    rules = gap_rules(ReadAlignmentParameters().changed(matrix="blosum62"), of_nucleotides=False)
    np.testing.assert_array_equal(rules.matrix, read_matrix("BLOSUM62").scores)
    assert (rules.gap_open, rules.gap_extend) == (11, 1)
