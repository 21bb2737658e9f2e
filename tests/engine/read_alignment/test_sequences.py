"""Texts and patterns are judged by their letters, which score what they may stand for."""

from __future__ import annotations

import numpy as np
import pytest

from proteoscope.engine.errors import InputError
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.read_alignment.parameters import ReadAlignmentParameters
from proteoscope.engine.read_alignment.sequences import check_sorts, gap_rules, nucleotide_matrix, read_sequences, with_other_strands
from proteoscope.engine.sequences.matrices import SYMBOLS, read_matrix
from proteoscope.kernels.gapsmis_layouts import Sequences

BASES = {"A": "A", "C": "C", "G": "G", "T": "T", "R": "AG", "Y": "CT", "B": "CGT", "N": "ACGT"}


def read(tmp_path, text, name="some.fasta"):
    path = tmp_path / name
    path.write_text(text)
    return read_sequences(path, Progress())


def letters_of(sequences):
    return "".join(SYMBOLS[code] for code in sequences.codes)


def test_a_u_is_a_t_and_case_does_not_count(tmp_path):
    found = read(tmp_path, ">a\nacgU\n>b\nnTT\n")
    assert found.are_nucleotides
    assert letters_of(found.sequences) == "ACGTNTT"
    assert found.names.strings() == ["a", "b"]
    assert found.lengths.tolist() == [4, 3]


def test_letters_of_several_bases_are_of_nucleotides_where_no_other_is_there(tmp_path):
    assert read(tmp_path, ">a\nACGTACGTNNRYACGT\n").are_nucleotides
    assert not read(tmp_path, ">a\nACGTACGTNNRYACGE\n").are_nucleotides
    assert not read(tmp_path, ">silk\nGAGSGAGSGASSYGRSDV\n").are_nucleotides


def test_letters_that_are_no_nucleotides_are_told_by_place(tmp_path):
    with pytest.raises(InputError, match=r"'E' at position 3 of second is not a nucleotide"):
        read(tmp_path, f">first\n{'ACGT' * 10}\n>second\nACEGT\n")


def test_proteins_against_nucleotides_are_refused(tmp_path):
    proteins, bases = read(tmp_path, ">p\nMKVLAWWYRND\n"), read(tmp_path, ">b\nACGTTGCA\n", "bases.fasta")
    assert not proteins.are_nucleotides
    for pair in ((proteins, bases), (bases, proteins)):
        with pytest.raises(InputError, match=r"holds proteins, and bases\.fasta nucleotides"):
            check_sorts(*pair)
    check_sorts(bases, bases)


@pytest.mark.parametrize(("match", "mismatch"), [(2, -3), (5, -4), (1, -1)])
def test_letters_of_several_bases_score_what_these_score_on_average_rounded_down(match, mismatch):
    scores = nucleotide_matrix(match, mismatch).scores
    for one, bases in BASES.items():
        for other, others in BASES.items():
            mean = np.mean([match if a == b else mismatch for a in bases for b in others])
            assert scores[SYMBOLS.index(one), SYMBOLS.index(other)] == np.floor(mean), one + other


def test_the_other_strand_of_the_other_strand_is_the_sequence(tmp_path):
    found = read(tmp_path, ">a\nACGTTNRYKM\n>b\n\n>c\nGATTACA\n").sequences
    n = len(found.codes)
    both = with_other_strands(found)
    np.testing.assert_array_equal(both.codes[:n], found.codes)
    other = Sequences(both.codes[n:], both.offsets[3:] - n)
    assert letters_of(other) == "KMRYNAACGT" + "TGTAATC"
    np.testing.assert_array_equal(with_other_strands(other).codes[n:], found.codes)
    part = with_other_strands(Sequences(found.codes, found.offsets[1:]))
    assert letters_of(part) == "GATTACA" + "TGTAATC"


def test_a_matrix_takes_the_place_of_match_and_mismatch():
    rules = gap_rules(ReadAlignmentParameters().changed(matrix="blosum62"), of_nucleotides=False)
    np.testing.assert_array_equal(rules.matrix, read_matrix("BLOSUM62").scores)
    assert (rules.gap_open, rules.gap_extend) == (11, 1)
