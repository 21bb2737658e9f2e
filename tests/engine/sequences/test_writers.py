"""All formats of hits, recomputed from CIGARs and sequences."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from html.parser import HTMLParser
from io import StringIO
from itertools import pairwise
from math import log

import numpy as np
import pytest

from proteoscope.engine.jobs.progress import Progress, RecordingProgress
from proteoscope.engine.project import Project
from proteoscope.engine.sequence_search.parameters import SequenceSearchParameters
from proteoscope.engine.sequences.hits import COLUMNS
from tests.searching import align

AMINO_ACIDS = "ARNDCQEGHILKMFPSTWYV"
LAMBDA, K = 0.267, 0.041  # Values of NCBI for BLOSUM62 with gap penalties 11/1.


def relative(protein, generator, n_changes):
    """Return the protein with substitutions, deletions and insertions."""
    residues = list(protein)
    for _ in range(n_changes):
        place, kind = int(generator.integers(len(residues))), generator.random()
        some = list(generator.choice(list(AMINO_ACIDS), int(generator.integers(1, 6))))
        residues[place : place + (len(some) if kind < 0.2 else kind < 0.8)] = [] if kind < 0.2 else some[:1] if kind < 0.8 else some
    return "".join(residues)


@pytest.fixture
def sequences(random_protein):
    """Return queries and subjects: parts of families with unrelated ends, identical copies, and unrelated proteins."""
    generator = np.random.default_rng(41)
    queries, subjects = {}, {}
    for family in range(3):
        core = random_protein(family, 130 + 40 * family)
        queries[f"q{family}"] = random_protein(10 + family, 9 + 4 * family) + core + random_protein(20 + family, 21 - 5 * family)
        for k in range(8):
            ends = (random_protein(100 * family + 30 + 2 * k + end, int(generator.integers(0, 40))) if k else "" for end in (0, 1))
            subjects[f"f{family}r{k}"] = next(ends) + relative(core, generator, 8 * k) + next(ends)
        subjects[f"f{family}same"] = subjects[f"f{family}r3"]
    queries["star"] = queries["q0"][:60] + "*" + queries["q0"][60:]
    queries["nothing"] = "WWWW"
    order = generator.permutation(list(subjects)).tolist()
    return queries, {name: subjects[name] for name in order}


@dataclass(frozen=True)
class Expected:
    """Expected values of a row, except for positions, CIGAR and E-value."""

    lines: tuple[str, str, str]
    is_positive: list[bool]
    values: dict[str, float]


def expected(row, query, subject):
    """Return the columns from the CIGAR, the sequences and Biopython's matrix."""
    from Bio.Align import substitution_matrices

    matrix = substitution_matrices.load("BLOSUM62")
    steps = [(int(length), operation) for length, operation in re.findall(r"(\d+)([MID])", row["cigar"])]
    assert "".join(f"{length}{operation}" for length, operation in steps) == row["cigar"]
    at_query, at_subject = int(row["query_start"]) - 1, int(row["subject_start"]) - 1
    above, below = "", ""
    for length, operation in steps:
        above += "-" * length if operation == "D" else query[at_query : at_query + length]
        below += "-" * length if operation == "I" else subject[at_subject : at_subject + length]
        at_query, at_subject = at_query + length * (operation != "D"), at_subject + length * (operation != "I")
    is_pair = [a != "-" and b != "-" for a, b in zip(above, below, strict=True)]
    is_same = [a == b for a, b in zip(above, below, strict=True)]
    is_positive = [pair and matrix[a][b] > 0 for a, b, pair in zip(above, below, is_pair, strict=True)]
    middle = "".join(a if same else "+" if good else " " for a, same, good in zip(above, is_same, is_positive, strict=True))
    score = sum(matrix[a][b] for a, b, pair in zip(above, below, is_pair, strict=True) if pair)
    score -= sum(11 + length for length, operation in steps if operation != "M")
    values = {
        "identity": sum(is_same) / len(above),
        "alignment_length": len(above),
        "mismatches": sum(pair and not same for pair, same in zip(is_pair, is_same, strict=True)),
        "gap_openings": sum(operation != "M" for _, operation in steps),
        "query_end": at_query,
        "subject_end": at_subject,
        "bit_score": (LAMBDA * score - log(K)) / log(2),
        "score": score,
        "positives": sum(is_positive),
        "query_coverage": (at_query - int(row["query_start"]) + 1) / len(query),
        "subject_coverage": (at_subject - int(row["subject_start"]) + 1) / len(subject),
        "subject_length": len(subject),
    }
    return Expected((above, middle, below), is_positive, values)


@pytest.fixture
def aligned(sequences, fasta, tmp_path):
    """Return the rows of the run's table with their expected values, and a function that searches again in another format."""
    import pyarrow.parquet as pq

    queries, subjects = sequences
    files = (
        fasta("q.fasta", queries.items()),
        fasta("d.fasta", [(f"{name} About <{name}>", sequence) for name, sequence in subjects.items()]),
    )

    def search(format, project=None):
        parameters = SequenceSearchParameters(maximum_e_value=1e-3, composition=False)
        align([files[0]], [files[1]], tmp_path / format, parameters, format=format, project_folder=project, device="cpu")
        return (tmp_path / format).read_text()

    search("tsv", tmp_path / "project")
    rows = pq.read_table(Project.open(tmp_path / "project").table("hits")).to_pylist()
    assert len(rows) > 30
    return rows, [expected(row, queries[row["query"]], subjects[row["subject"]]) for row in rows], search


def test_hit_tables_agree_with_cigar_and_sequences(aligned, sequences, tmp_path):
    rows, wanted, _ = aligned
    queries, subjects = sequences
    with (tmp_path / "tsv").open(newline="") as file:
        written = list(csv.DictReader(file, delimiter="\t"))
    assert len(written) == len(rows) and tuple(written[0]) == COLUMNS
    for row, text, expected_row in zip(rows, written, wanted, strict=True):
        assert {name: row[name] for name in expected_row.values} == pytest.approx(expected_row.values, rel=1e-12)
        assert {name: float(text[name]) for name in expected_row.values} == pytest.approx(expected_row.values, abs=0.051)
        assert all(
            float(text[name]) == pytest.approx(expected_row.values[name], abs=1e-4) for name in expected_row.values if name != "bit_score"
        )
        assert float(text["e_value"]) == pytest.approx(row["e_value"], rel=6e-3)
        for name in ("query", "subject", "query_start", "subject_start", "cigar", "description"):
            assert text[name] == str(row[name])
        assert (row["aligned_query"], row["aligned_middle"], row["aligned_subject"]) == expected_row.lines
        assert (list(queries)[row["query_index"]], list(subjects)[row["subject_index"]]) == (row["query"], row["subject"])
        assert row["query_length"] == len(queries[row["query"]]) and row["description"] == f"About <{row['subject']}>"
    assert any(row["query_start"] > 1 for row in rows) and any(row["query_end"] < row["query_length"] for row in rows)
    assert any(
        expected_row.values["positives"] > expected_row.values["identity"] * expected_row.values["alignment_length"]
        for expected_row in wanted
    )


def test_sequence_hits_are_sorted_by_score_then_file_order(aligned, sequences):
    rows, _, _ = aligned
    for name in sequences[0]:
        of_query = [row for row in rows if row["query"] == name]
        keys = [(row["e_value"], -row["score"], row["subject_index"]) for row in of_query]
        assert keys == sorted(keys) and [row["rank"] for row in of_query] == list(range(1, len(of_query) + 1))
    pairs = [(first, second) for first, second in pairwise(rows) if first["query"] == second["query"]]
    assert any((first["e_value"], first["score"]) == (second["e_value"], second["score"]) for first, second in pairs)


def test_blast6_has_the_twelve_columns_of_blast(aligned):
    rows, wanted, search = aligned
    lines = [line.split("\t") for line in search("blast6").splitlines()]
    for line, row, expected_row in zip(lines, rows, wanted, strict=True):
        names = ("alignment_length", "mismatches", "gap_openings", "query_start", "query_end", "subject_start", "subject_end")
        assert line[:2] == [row["query"], row["subject"]] and line[3:10] == [str(row[name]) for name in names]
        assert float(line[2]) == pytest.approx(expected_row.values["identity"] * 100, abs=6e-4)
        assert float(line[10]) == pytest.approx(row["e_value"], rel=6e-3)
        assert float(line[11]) == pytest.approx(expected_row.values["bit_score"], abs=0.051)


def test_sam_positions_clips_and_tags_match_the_alignment(aligned, sequences):
    rows, wanted, search = aligned
    queries, subjects = sequences
    lines = [line.split("\t") for line in search("sam").splitlines()]
    lengths = {line[1][3:]: int(line[2][3:]) for line in lines if line[0] == "@SQ"}
    assert lengths == {row["subject"]: len(subjects[row["subject"]]) for row in rows}
    records = [line for line in lines if line[0][0] != "@"]
    assert [line[:11] for line in records if line[2] == "*"] == [["nothing", "4", "*", "0", "0", "*", "*", "0", "0", "WWWW", "*"]]
    for line, row, expected_row in zip((line for line in records if line[2] != "*"), rows, wanted, strict=True):
        clips = row["query_start"] - 1, len(queries[row["query"]]) - row["query_end"]
        cigar = "".join((f"{clips[0]}S" * (clips[0] > 0), row["cigar"], f"{clips[1]}S" * (clips[1] > 0)))
        sequence = "*" if row["rank"] > 1 else queries[row["query"]].replace("*", "X")
        assert line[:10] == [
            row["query"],
            "256" if row["rank"] > 1 else "0",
            row["subject"],
            str(row["subject_start"]),
            "255",
            cigar,
            "*",
            "0",
            "0",
            sequence,
        ]
        tags = {tag[:5]: tag[5:] for tag in line[11:]}
        assert int(tags["AS:i:"]) == expected_row.values["score"]
        assert int(tags["NM:i:"]) == sum(a != b for a, b in zip(expected_row.lines[0], expected_row.lines[2], strict=True))
        assert float(tags["ZB:f:"]) == pytest.approx(expected_row.values["bit_score"], abs=0.051)
        assert float(tags["ZE:f:"]) == pytest.approx(row["e_value"], rel=6e-3)


def test_sam_query_names_are_short_and_unique(fasta, random_protein, tmp_path):
    proteins = [random_protein(k, 80) for k in range(4)]
    long, names = "n" * 300, ("same", "same_2", "same", "*=" + "n" * 260)
    query = fasta("q.fasta", [(f"{long}one", proteins[0]), (f"{long}two", proteins[1][:40] + "*" + proteins[1][40:]), ("*", "WWWW")])
    database = fasta("d.fasta", list(zip(names, (proteins[0], proteins[0], proteins[0], proteins[1]), strict=True)))
    align([query], [database], tmp_path / "o.sam", SequenceSearchParameters(maximum_e_value=1e-6), format="sam", device="cpu")
    lines = [line.split("\t") for line in (tmp_path / "o.sam").read_text().splitlines()]
    assert [line[1][3:] for line in lines if line[0] == "@SQ"] == ["same", "same_2", "same_3", "%2A=" + "n" * 260]
    records = [line for line in lines if line[0][0] != "@"]
    assert [line[0] for line in records] == ["n" * 254] * 3 + ["n" * 252 + "_2", "%2A"]
    assert all(re.fullmatch(r"[!-?A-~]{1,254}", line[0]) and re.fullmatch(r"\*|[A-Za-z=.]+", line[9]) for line in records)


def test_fasta_output_has_both_sequences_of_each_alignment(aligned):
    from Bio import SeqIO

    rows, wanted, search = aligned
    records = list(SeqIO.parse(StringIO(search("fasta")), "fasta"))
    for k, (row, expected_row) in enumerate(zip(rows, wanted, strict=True)):
        ours, theirs = records[2 * k : 2 * k + 2]
        assert (str(ours.seq), str(theirs.seq)) == (expected_row.lines[0], expected_row.lines[2])
        assert ours.id == f"{row['query']}/{row['query_start']}-{row['query_end']}"
        assert theirs.description == f"{row['subject']}/{row['subject_start']}-{row['subject_end']} {row['description']}"
        notes = dict(part.split("=") for part in ours.description.split()[1:])
        assert int(notes["score"]) == row["score"] and float(notes["e_value"]) == pytest.approx(row["e_value"], rel=6e-3)
        assert float(notes["identity"]) == pytest.approx(row["identity"], abs=6e-5)
        assert float(notes["bit_score"]) == pytest.approx(row["bit_score"], abs=0.051)
    assert len(records) == 2 * len(rows)


def test_clustal_output_marks_identical_and_similar_residues(aligned):
    from Bio import AlignIO

    rows, wanted, search = aligned
    alignments = list(AlignIO.parse(StringIO(search("clustal")), "clustal"))
    for alignment, row, expected_row in zip(alignments, rows, wanted, strict=True):
        assert [(record.id, str(record.seq)) for record in alignment] == [
            (row["query"], expected_row.lines[0]),
            (row["subject"], expected_row.lines[2]),
        ]
        marks = "".join(" " if mark == " " else ":" if mark == "+" else "*" for mark in expected_row.lines[1])
        assert alignment.column_annotations["clustal_consensus"] == marks


class Page(HTMLParser):
    """Cells of the tables, paragraphs, and residues of the alignments with their classes, of an HTML page."""

    def __init__(self, text):
        super().__init__()
        self.cells, self.paragraphs, self.blocks = [], [], []
        self._tag, self._kind = "", ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        if tag == "span":
            self._kind = dict(attributes)["class"]
        elif tag == "tr":
            self.cells.append([])
        elif tag == "pre":
            self.blocks.append([])
        self._tag = tag if tag in ("td", "p", "pre") else self._tag

    def handle_endtag(self, tag):
        self._kind = "" if tag == "span" else self._kind
        self._tag = "" if tag in ("td", "p", "pre") else self._tag

    def handle_data(self, data):
        if self._tag == "td":
            self.cells[-1].append(data)
        elif self._tag == "p":
            self.paragraphs.append(data)
        elif self._tag == "pre":
            self.blocks[-1] += [(character, self._kind) for character in data]


def test_html_page_shows_every_hit_and_colours_residues(aligned):
    rows, wanted, search = aligned
    page = Page(search("html"))
    cells = [row for row in page.cells if row]
    assert page.paragraphs.count("No hits.") == 1
    summaries = [text for text in page.paragraphs if text.startswith("Score")]
    for row, expected_row, cell, summary, block in zip(rows, wanted, cells, summaries, page.blocks, strict=True):
        assert [cell[0], *cell[3:]] == [
            row["subject"],
            str(row["score"]),
            f"{row['identity'] * 100:.1f} %",
            f"{row['query_start']}-{row['query_end']}",
            row["description"],
        ]
        assert float(cell[1]) == pytest.approx(row["e_value"], rel=6e-2) and float(cell[2]) == pytest.approx(row["bit_score"], abs=0.051)
        n_same, n_gaps = (
            sum(a == b for a, b in zip(expected_row.lines[0], expected_row.lines[2], strict=True)),
            sum("-" in pair for pair in zip(*expected_row.lines[::2], strict=True)),
        )
        assert f"{n_same} of {row['alignment_length']} identical" in summary and f" {row['positives']} positive" in summary
        openings, residues = (f"{n} {what}{'s' * (n != 1)}" for n, what in ((row["gap_openings"], "gap opening"), (n_gaps, "residue")))
        assert (f"{openings} ({residues})" if n_gaps else "no gaps") in summary
        kinds = ["like" if mark == "+" else "" if mark == " " else "same" for mark in expected_row.lines[1]]
        width, shown = 60, "".join(character for character, _ in block).split("\n")
        ends = np.cumsum([len(line) + 1 for line in shown])
        classes = [[kind for _, kind in block[end - len(line) - 1 : end - 1]] for line, end in zip(shown, ends.tolist(), strict=True)]
        for start in range(0, len(kinds), width):
            some = slice(start, start + width)
            for line in range(3):
                at = start // width * 4 + line
                assert shown[at][15 : 15 + width].split(" " if line != 1 else "\n")[0] == expected_row.lines[line][some]
                assert classes[at][15 : 15 + len(kinds[some])] == kinds[some] and not any(classes[at][:15])
            assert shown[start // width * 4].split()[1] == str(row["query_start"] + start - expected_row.lines[0][:start].count("-"))


def test_names_of_joined_ncbi_headers_are_separated(fasta, random_protein, tmp_path):
    protein = random_protein(1, 80)
    database = fasta("d.fasta", [("a.1 first [Homo]\x01b.1 second \x02", protein)])
    align([fasta("q.fasta", [("q", protein)])], [database], tmp_path / "o", SequenceSearchParameters(), format="html", device="cpu")
    page = (tmp_path / "o").read_text()
    assert "first [Homo] &gt;b.1 second" in page and not re.search(r"[\x00-\x08\x0b-\x1f]", page)


def test_sam_escapes_query_names_that_look_like_header_lines(fasta, random_protein, tmp_path):
    proteins = [random_protein(k, 60) for k in range(2)]
    query = fasta("q.fasta", [("@SQ", proteins[0]), ("@CO", proteins[1])])
    database = fasta("d.fasta", [("a(b", proteins[0]), ("a)b", proteins[1])])
    progress, parameters = RecordingProgress(Progress()), SequenceSearchParameters(maximum_e_value=1e-6)
    align([query], [database], tmp_path / "o.sam", parameters, format="sam", device="cpu", progress=progress)
    lines = [line.split("\t") for line in (tmp_path / "o.sam").read_text().splitlines()]
    assert [line[0] for line in lines if line[0].startswith("@")] == ["@HD", "@SQ", "@SQ", "@PG"]
    assert [(line[0], line[2]) for line in lines if not line[0].startswith("@")] == [("%40SQ", "a%28b"), ("%40CO", "a%29b")]
    assert sum("2 queries have other names in SAM" in text or "2 database sequences have" in text for text in progress.messages) == 2
