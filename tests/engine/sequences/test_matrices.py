from __future__ import annotations

import csv

import numpy as np
import pytest

from proteoscope import resources
from proteoscope.engine.errors import InputError, ParameterError
from proteoscope.engine.sequences.matrices import SYMBOLS, encode, matrix_name, matrix_names, read_matrix
from proteoscope.engine.sequences.statistics import ungapped_lambda

BIOPYTHONS = ("BLOSUM45", "BLOSUM50", "BLOSUM62", "BLOSUM90", "PAM30", "PAM70", "PAM250")


@pytest.mark.parametrize("name", BIOPYTHONS)
def test_substitution_matrices_equal_biopython(name):
    from Bio.Align import substitution_matrices

    theirs, ours = substitution_matrices.load(name), read_matrix(name)
    for a in "ARNDCQEGHILKMFPSTWYVBZX*":
        for b in "ARNDCQEGHILKMFPSTWYVBZX*":
            assert ours.scores[SYMBOLS.index(a), SYMBOLS.index(b)] == theirs[a, b]


def test_dayhoff_and_gonnet_equal_published_matrices():
    from Bio.Align import substitution_matrices

    for name, theirs, factor in (("DAYHOFF", "DAYHOFF", 10), ("GONNET", "GONNET1992", 1)):
        published, ours = substitution_matrices.load(theirs), read_matrix(name)
        for a in "ARNDCQEGHILKMFPSTWYV":
            for b in "ARNDCQEGHILKMFPSTWYV":
                assert ours.scores[SYMBOLS.index(a), SYMBOLS.index(b)] == round(round(factor * published[a, b], 1))


def test_blosumn_equals_parasail():
    parasail = pytest.importorskip("parasail", reason="parasail is not installed: pip install parasail")
    ours, order = read_matrix("BLOSUMN").scores, [SYMBOLS.index(residue) for residue in "ARNDCQEGHILKMFPSTWYVBZX*"]
    assert np.array_equal(ours[np.ix_(order, order)], parasail.Matrix("blosumn").matrix[:24, :24])


def test_identity_matrix_equals_blast():
    """Check scores of blastp 2.12.0 with -matrix IDENTITY for 66 residues, and for a copy with B, X and Z in place of three."""
    sequence = encode(np.frombuffer(b"MKVLAARNDCQEGHILKMFPSTWYVMKVLAARNDCQEGHILKMFPSTWYVWWHHCCDDEEFFGGKK", np.uint8))
    changed = sequence.copy()
    changed[23:26] = [SYMBOLS.index(residue) for residue in "BXZ"]
    scores = read_matrix("IDENTITY").scores
    assert [int(scores[first, second].sum()) for first, second in ((sequence, sequence), (sequence, changed), (changed, changed))] == [
        594,
        552,
        580,
    ]


@pytest.mark.parametrize("name", [*BIOPYTHONS, "BLOSUM80", "IDENTITY"])
def test_substitution_matrices_have_the_scale_of_ncbi_tables(name):
    lines = resources.path("statistics", "karlin_altschul.tsv").read_text().splitlines()
    rows = csv.DictReader((line for line in lines if not line.startswith("#")), delimiter="\t")
    published = next(float(row["lambda"]) for row in rows if row["matrix"] == name and row["gap_open"] == "-")
    assert ungapped_lambda(read_matrix(name)) == pytest.approx(published, abs=2e-4)


def test_every_shipped_substitution_matrix_is_symmetric():
    assert len(matrix_names()) == 69
    for name in matrix_names():
        assert np.array_equal(read_matrix(name).scores, read_matrix(name).scores.T)


def test_matrix_name_ignores_case_and_suggests_known_names():
    assert matrix_name("blosum62") == "BLOSUM62"
    with pytest.raises(ParameterError, match="did you mean BLOSUM62"):
        matrix_name("BLOSSUM62")
    with pytest.raises(ParameterError, match="BLOSUM30 to BLOSUM100, BLOSUMN, DAYHOFF, GONNET, IDENTITY, PAM10 to PAM500, or give a file"):
        matrix_name("MINE")


def test_matrix_file_with_byte_order_mark_is_read(tmp_path):
    path = tmp_path / "windows.txt"
    path.write_bytes(b"\xef\xbb\xbf   A  C\r\nA  5 -2\r\nC -2  7\r\n")
    assert read_matrix(str(path)).scores[SYMBOLS.index("C"), SYMBOLS.index("A")] == -2


def test_residues_u_o_and_j_score_as_x():
    matrix = read_matrix("BLOSUM62").scores
    x = SYMBOLS.index("X")
    for residue in "UOJ":
        code = SYMBOLS.index(residue)
        for other in "ARNDCQEGHILKMFPSTWYVBZX*":
            assert matrix[code, SYMBOLS.index(other)] == matrix[x, SYMBOLS.index(other)]
        assert matrix[code, code] == matrix[x, x]


def test_matrix_file_with_few_residues_is_completed(tmp_path):
    path = tmp_path / "own.txt"
    path.write_text("# mine\n   A  C\nA  5 -2 # alike\nc -2  7\n")
    matrix = read_matrix(str(path)).scores
    a, c, w, star = (SYMBOLS.index(residue) for residue in "ACW*")
    assert (matrix[a, a], matrix[a, c], matrix[c, c], matrix[a, w], matrix[w, w], matrix[star, a]) == (5, -2, 7, -1, -1, -2)


def test_residues_missing_from_a_matrix_file_score_as_x(tmp_path):
    path = tmp_path / "own.txt"
    path.write_text("   A  C  X\nA  5 -2 -3\nC -2  7 -4\nX -3 -4 -6\n")
    matrix = read_matrix(str(path)).scores
    a, c, x, b, z = (SYMBOLS.index(residue) for residue in "ACXBZ")
    for code in (b, z):
        assert matrix[code, [a, c, x, code]].tolist() == matrix[[a, c, x, code], code].tolist() == [-3, -4, -6, -6]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "has no matrix"),
        ("A C\nA 1 2\n", "different residues"),
        ("A C\nA 1\nC 1 2\n", "line 2"),
        ("A C\nA 1 x\nC 1 2\n", "'x' is not a whole number"),
        ("A C\nA 1 0.5\nC 1 2\n", "whole number"),
        ("A A\nA 1 2\nA 1 2\n", "twice"),
        ("A C\nA 1 2\nA 1 2\n", "occurs twice"),
        ("A 1\nA 1 2\n", "'1' is not a residue"),
        ("A C\nA 1 9999999\nC 1 2\n", "not within"),
    ],
)
def test_read_matrix_error_describes_invalid_file(tmp_path, text, expected):
    path = tmp_path / "broken.txt"
    path.write_text(text)
    with pytest.raises(InputError, match=expected):
        read_matrix(str(path))


def test_residue_codes_are_the_indices_of_symbols():
    assert encode(np.frombuffer(SYMBOLS.encode(), np.uint8)).tolist() == list(range(27))


@pytest.mark.parametrize("name", ["B" * 5000, "BLOSUM62" * 100_000, "a\0b"])
def test_invalid_matrix_file_name_is_reported_briefly(name):
    with pytest.raises(ParameterError, match="there is no matrix") as caught:
        matrix_name(name)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("A\nA " + "9" * 4000 + "\n", "the score 9+... is not within"),
        ("A\nA " + "9" * 5000 + "\n", "is not a whole number"),
        ("ﬆ\nﬆ 1\n", "'ﬆ' is not a residue"),  # Its upper case has two characters, S and T.
        ("A " * 400_000 + "\n", "the residue A occurs twice"),
        ("A\nA 1\n" * 300_000, "too large"),
    ],
)
def test_hostile_matrix_file_is_reported_briefly(tmp_path, content, expected):
    (tmp_path / "mine.txt").write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=expected) as caught:
        read_matrix(str(tmp_path / "mine.txt"))
    assert len(str(caught.value)) < 500 + len(str(tmp_path))


def test_endless_matrix_file_is_not_read_completely():
    with pytest.raises(InputError, match="this is a pipe or a device, not a file"):
        read_matrix("/dev/zero")
