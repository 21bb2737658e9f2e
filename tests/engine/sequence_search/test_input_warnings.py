"""Unusual protein files on the command line: the tables and the messages."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from proteoscope.engine.command_line.main import main


@pytest.fixture
def searched(tmp_path, capsys):
    """Search by the command line and return the exit code, the rows of the table, the scores, and the text on stderr."""

    def run(query, database, *options):
        out, scores = tmp_path / "hits.tsv", tmp_path / "scores.npy"
        code = main(["align", str(query), str(database), "--out", str(out), "--all-scores", str(scores), *options])
        said = capsys.readouterr().err
        if code:
            assert not out.exists() and not scores.exists()
            return code, [], None, said
        with out.open(newline="") as file:
            return code, list(csv.DictReader(file, delimiter="\t")), np.load(scores), said

    return run


@pytest.mark.parametrize("text", ["", "\n \n", ">only a header\n", ">one\n>two\n\n", "no fasta", "\x00\x01\x02"])
@pytest.mark.parametrize("which", ["query", "database"])
def test_align_error_names_file_without_proteins(searched, fasta, tmp_path, text, which):
    whole, other = fasta("whole.fasta", [("a", "MKVLAT")]), tmp_path / "other.fasta"
    other.write_text(text)
    code, _, _, said = searched(*((other, whole) if which == "query" else (whole, other)))
    complaint = said.splitlines()[-1]
    assert code == 2 and complaint.startswith(f"proteoscope: {other}") and complaint.endswith(".")


def test_align_scores_empty_records_zero_and_counts_them(searched, fasta, random_protein):
    protein = random_protein(1, 90)
    query, database = fasta("q.fasta", [("none", ""), ("some", protein)]), fasta("d.fasta", [("a", protein), ("b", ""), ("c", "")])
    code, rows, scores, said = searched(query, database)
    assert code == 0 and [(row["query"], row["subject"]) for row in rows] == [("some", "a")]
    assert scores[0].tolist() == [0, 0, 0] and scores[1, 1:].tolist() == [0, 0] and scores[1, 0] > 300
    assert "The queries: 1 without residues, which scores 0" in said
    assert "The sequences of the database: 2 without residues, which score 0" in said


def test_align_accepts_sequences_of_one_residue(searched, fasta):
    path = fasta("w.fasta", [("w", "W"), ("a", "A"), ("x", "X"), ("u", "u")])
    code, rows, scores, _ = searched(path, path, "--maximum-e-value", "1e9")
    assert code == 0 and scores.tolist() == [[11, 0, 0, 0], [0, 4, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]
    assert [(row["query"], row["subject"], row["cigar"], row["identity"]) for row in rows] == [
        ("w", "w", "1M", "1.0000"),
        ("a", "a", "1M", "1.0000"),
    ]


def test_align_accepts_database_of_one_very_long_protein(searched, fasta, random_protein, scheme, independent_score):
    long = random_protein(5, 40_000)
    queries = [("part", long[20_000:20_100] + long[20_103:20_200]), ("unrelated", random_protein(6, 120))]
    code, rows, scores, _ = searched(fasta("q.fasta", queries), fasta("d.fasta", [("long", long)]))
    assert code == 0 and scores.tolist() == [[independent_score(query, long, scheme())] for _, query in queries]
    first = rows[0]
    assert (first["query"], first["subject_start"], first["subject_end"], first["subject_length"]) == ("part", "20001", "20200", "40000")
    assert "3D" in first["cigar"] and float(first["e_value"]) < 1e-80


@pytest.mark.parametrize(
    ("query_alphabet", "subject_alphabet", "message"),
    [
        ("ACGT", "ARNDCQEGHILKMFPSTWYV", "The queries look like DNA or RNA"),
        ("ARNDCQEGHILKMFPSTWYV", "ACGU", "The sequences of the database look like DNA or RNA"),
        ("ARNDCQEGHILKMFPSTWYV", "ARNDCQEGHILKMFPSTWYV", ""),
    ],
)
def test_align_warns_of_dna_instead_of_protein(searched, fasta, random_protein, query_alphabet, subject_alphabet, message):
    query = fasta("q.fasta", [("q", random_protein(1, 300, query_alphabet))])
    database = fasta("d.fasta", [(f"d{k}", random_protein(2 + k, 200, subject_alphabet)) for k in range(3)])
    code, _, scores, said = searched(query, database)
    assert code == 0 and scores.shape == (1, 3)
    assert ("DNA" in said) == bool(message) and message in said
    assert not message or "are compared as protein; translate them first" in said


@pytest.mark.parametrize(
    ("n_dna", "message"),
    [
        (1, "1 of 5 queries looks like DNA or RNA, and is compared as protein; translate it first"),
        (2, "2 of 5 queries look like DNA or RNA, and are compared as protein; translate them first"),
    ],
)
def test_align_warns_of_dna_query_among_proteins(searched, fasta, random_protein, n_dna, message):
    alphabets = ["ACGT"] * n_dna + ["ARNDCQEGHILKMFPSTWYV"] * (5 - n_dna)
    query = fasta("q.fasta", [(f"q{k}", random_protein(k, 85 + 400 * (k < n_dna), alphabet)) for k, alphabet in enumerate(alphabets)])
    code, _, _, said = searched(query, fasta("d.fasta", [("d", random_protein(9, 200))]))
    assert code == 0 and message in said


@pytest.mark.parametrize(("n_dna", "message"), [(1, False), (2, True)])
def test_align_warns_of_frequent_dna_in_database(searched, fasta, random_protein, n_dna, message):
    alphabets = ["ACGT"] * n_dna + ["ARNDCQEGHILKMFPSTWYV"] * (200 - n_dna)
    database = fasta("d.fasta", [(f"d{k}", random_protein(k, 60, alphabet)) for k, alphabet in enumerate(alphabets)])
    code, _, _, said = searched(fasta("q.fasta", [("q", random_protein(999, 60))]), database)
    assert code == 0 and ("2 of 200 sequences of the database look like DNA or RNA" in said) == message == ("DNA" in said)


def test_align_searches_each_sequence_of_equal_name(searched, fasta, random_protein):
    protein = random_protein(1, 150)
    query = fasta("q.fasta", [("same", protein), ("same", protein[50:])])
    database = fasta("d.fasta", [("same first", protein), ("same second", protein[:100]), ("other", random_protein(2, 90))])
    code, rows, scores, said = searched(query, database, "--maximum-e-value", "1e-9")
    assert code == 0 and scores.shape == (2, 3)
    assert [(row["query"], row["description"], row["alignment_length"]) for row in rows] == [
        ("same", "first", "150"),
        ("same", "second", "100"),
        ("same", "first", "100"),
        ("same", "second", "50"),
    ]
    assert "The queries: 1 with the name of an earlier sequence; it is searched as a separate sequence" in said
    assert "The sequences of the database: 1 with the name of an earlier sequence" in said


def test_align_sam_distinguishes_sequences_of_equal_name(fasta, random_protein, tmp_path):
    protein = random_protein(1, 150)
    query = fasta("q.fasta", [("q", protein)])
    database = fasta("d.fasta", [("same", protein[:60]), ("same", protein), ("same", protein[:100])])
    assert main(["align", str(query), str(database), "--out", str(tmp_path / "o.sam"), "--format", "sam", "--quiet"]) == 0
    lines = [line.split("\t") for line in (tmp_path / "o.sam").read_text().splitlines()]
    lengths = {line[1][3:]: int(line[2][3:]) for line in lines if line[0] == "@SQ"}
    assert lengths == {"same": 150, "same_3": 100, "same_1": 60}
    assert [line[2] for line in lines if line[0] == "q"] == ["same", "same_3", "same_1"]


def test_align_warns_of_e_values_of_matrix_without_penalties(searched, fasta, random_protein, tmp_path, monkeypatch):
    monkeypatch.setattr("proteoscope.engine.sequence_search.reported_hits._RANDOM_SUBJECTS", 200)
    residues = "ARNDCQEGHILKMFPSTWYV"
    rows = [residue + " " + " ".join("5" if residue == other else "1" for other in residues) for residue in residues]
    (tmp_path / "m.txt").write_text("\n".join(["  " + " ".join(residues), *rows]))
    protein = random_protein(1, 80)
    path = fasta("p.fasta", [("a", protein), ("b", random_protein(2, 60))])
    code, rows, scores, said = searched(path, path, "--matrix", str(tmp_path / "m.txt"))
    assert code == 0 and scores[0, 0] == 400 and "do not trust the E-values" in said
    assert ("a", "a") in {(row["query"], row["subject"]) for row in rows}


def test_align_counts_queries_of_low_complexity(searched, fasta, random_protein):
    query = fasta("query.fasta", [("a", "PQ" * 60), ("b", random_protein(1, 200))])
    database = fasta("database.fasta", [("c", "PQ" * 50), ("d", random_protein(2, 150))])
    code, rows, scores, stderr = searched(query, database)
    assert code == 0 and "1 of 2 queries has low complexity over more than half of the residues" in stderr
    assert not [row for row in rows if row["query"] == "a"] and scores.max() > 400
    code, rows, _, stderr = searched(query, database, "--set", "composition=false")
    assert code == 0 and "low complexity" not in stderr
    assert next(row["subject"] for row in rows if row["query"] == "a") == "c"
