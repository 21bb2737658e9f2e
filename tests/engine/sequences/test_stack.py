"""Stacks of hits against their pairs, and as read back by Bio.Align."""

from __future__ import annotations

import io
import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from Bio import Align
from hypothesis import given, settings
from hypothesis import strategies as st

from proteoscope.engine.arrays import Texts
from proteoscope.engine.errors import ParameterError
from proteoscope.engine.sequences import stack as stack_module
from proteoscope.engine.sequences.conservation import conservation, sequence_weights
from proteoscope.engine.sequences.stack import AlignedSubjects, Stack
from proteoscope.engine.sequences.stack_formats import PAIR_FORMATS, STACK_FORMATS, file_header, grades, stack_text, unique_names
from proteoscope.engine.sequences.statistics import BACKGROUND

AMINO_ACIDS = "ARNDCQEGHILKMFPSTWYV"
QUERY = "MKWVTFISLLLLFSSAYSRG"


@st.composite
def pairs(draw: st.DrawFn) -> tuple[int, str, str, int, int]:
    """A local alignment with the query: start in the query, both lines, start in the subject, and the rest of the subject."""
    start = draw(st.integers(0, len(QUERY) - 1))
    end = draw(st.integers(start + 1, len(QUERY)))
    above, below = "", ""
    for place in range(start, end):
        inner = start < place < end - 1
        has_gap = inner and draw(st.integers(0, 4)) == 0
        above += QUERY[place]
        below += "-" if has_gap else draw(st.sampled_from(AMINO_ACIDS))
        inserted = draw(st.integers(0, 3)) if place < end - 1 and not has_gap and draw(st.integers(0, 3)) == 0 else 0
        above += "-" * inserted
        below += "".join(draw(st.sampled_from(AMINO_ACIDS)) for _ in range(inserted))
    return start, above, below, draw(st.integers(0, 30)), draw(st.integers(0, 30))


PAIRS = st.lists(pairs(), max_size=6)
A_FEW = settings(max_examples=35)
"""Pairs take longer to compute than to stack."""


def stacked(rows: list[tuple[int, str, str, int, int]]) -> Stack:
    starts = np.array([row[3] for row in rows], np.int64)
    lengths = starts + np.array([len(row[2].replace("-", "")) + row[4] for row in rows], np.int64)
    subjects = AlignedSubjects(
        [f"subject{k}" for k in range(len(rows))],
        [f"number {k}" for k in range(len(rows))],
        lengths,
        np.array([row[0] for row in rows], np.int64),
        starts,
        Texts.from_strings([row[1] for row in rows]),
        Texts.from_strings([row[2] for row in rows]),
        np.arange(len(rows), dtype=np.int64) + 7,
    )
    return Stack.from_subjects("query", "of the test", QUERY, subjects)


def rows(stack: Stack) -> list[str]:
    return [np.where(row == 0, ord(" "), row).astype(np.uint8).tobytes().decode() for row in stack.symbols]


def parsed(stack: Stack, format: str) -> list[Align.Alignment]:
    return list(Align.parse(io.StringIO(file_header(format) + stack_text(stack, format)), format))


@A_FEW
@given(PAIRS)
def test_stack_rows_restore_the_pairwise_alignments(result: list[tuple[int, str, str, int, int]]) -> None:
    stack = stacked(result)
    shown = rows(stack)
    assert shown[0].replace("-", "") == QUERY
    for (start, above, below, _, _), row in zip(result, shown[1:], strict=True):
        # Columns with gaps in both rows are insertions of other sequences.
        columns = [(a, b) for a, b in zip(shown[0], row, strict=True) if b != " " and (a, b) != ("-", "-")]
        assert ("".join(a for a, _ in columns), "".join(b for _, b in columns)) == (above, below)
        first = len(row) - len(row.lstrip())
        assert len(shown[0][:first].replace("-", "")) == start


@A_FEW
@given(PAIRS)
def test_stack_has_columns_for_the_longest_insertion_only(result: list[tuple[int, str, str, int, int]]) -> None:
    longest = Counter[int]()
    for start, above, _, _, _ in result:
        place, run = start - 1, 0
        for residue in above:
            place, run = (place, run + 1) if residue == "-" else (place + 1, 0)
            longest[place] = max(longest[place], run)
    stack = stacked(result)
    assert stack.n_columns == len(QUERY) + sum(longest.values())
    assert stack.query_place[~stack.is_opened].tolist() == list(range(len(QUERY)))


@A_FEW
@given(PAIRS)
def test_stack_marks_an_insertion_only_in_the_row_that_has_it(result: list[tuple[int, str, str, int, int]]) -> None:
    expected = np.zeros((len(result) + 1, len(QUERY)), np.bool_)
    for row, (start, above, _, _, _) in enumerate(result, start=1):
        place = start
        for before, residue in zip("x" + above, above, strict=False):
            if residue != "-":
                expected[row, place] = before == "-"
                place += 1
    assert np.array_equal(stacked(result).follows_insertion, expected)


@A_FEW
@given(PAIRS)
@pytest.mark.parametrize("format", ["stockholm", "phylip", "clustal"])
def test_stack_formats_round_trip(format: str, result: list[tuple[int, str, str, int, int]]) -> None:
    stack = stacked(result)
    (read,) = parsed(stack, format)
    assert [read[row] for row in range(len(stack))] == [row.replace(" ", "-") for row in rows(stack)]
    width = {"phylip": 10, "clustal": 30}.get(format)
    assert [record.id for record in read.sequences] == unique_names(stack.names, width)
    if format == "stockholm":
        assert read.column_annotations["reference coordinate annotation"] == "".join("." if is_open else "x" for is_open in stack.is_opened)
        assert read.column_annotations["conservation"] == grades(stack)
        assert [record.description for record in read.sequences][1:] == list(stack.subjects.descriptions)


@A_FEW
@given(PAIRS)
def test_a3m_has_query_columns_and_lower_case_insertions(result: list[tuple[int, str, str, int, int]]) -> None:
    stack = stacked(result)
    lines = stack_text(stack, "a3m").splitlines()
    headers, sequences = [], list[str]()
    for line in lines:
        if line.startswith(">"):
            headers.append(line[1:].split()[0])
            sequences.append("")
        else:
            sequences[-1] += line
    assert headers == unique_names(stack.names)
    for (start, above, below, _, _), read in zip(result, sequences[1:], strict=True):
        assert len([residue for residue in read if not residue.islower()]) == len(QUERY)
        pair = "".join(b.lower() if a == "-" else b for a, b in zip(above, below, strict=True))
        end = start + len(above.replace("-", ""))
        assert read == "-" * start + pair + "-" * (len(QUERY) - end)
    assert sequences[0] == QUERY


@A_FEW
@given(PAIRS.filter(bool))  # Bio.Align does not read MAF files without alignments
@pytest.mark.parametrize("format", PAIR_FORMATS)
def test_stack_pairs_are_read_at_the_aligned_positions(format: str, result: list[tuple[int, str, str, int, int]]) -> None:
    stack = stacked(result)
    read = parsed(stack, format)
    assert len(read) == len(result)
    for k, ((start, above, below, subject_start, rest), record) in enumerate(zip(result, read, strict=True)):
        query, subject = (0, 1) if format == "maf" else (1, 0)
        residues = len(below.replace("-", ""))
        assert [record.sequences[at].id for at in (query, subject)] == ["query", f"subject{k}"]
        assert [len(record.sequences[at]) for at in (query, subject)] == [len(QUERY), subject_start + residues + rest]
        ends = [(record.coordinates[at, 0], record.coordinates[at, -1]) for at in (query, subject)]
        assert ends == [(start, start + len(above.replace("-", ""))), (subject_start, subject_start + residues)]
        _, expected = Align.Alignment.parse_printed_alignment([above.encode(), below.encode()])
        assert np.array_equal(record.coordinates[[query, subject]], expected + np.array([[start], [subject_start]]))
        if format == "maf":
            assert [record[query], record[subject]] == [above, below] and record.score == k + 7


def test_stack_names_are_distinct_in_every_format() -> None:
    long = [f"sp|P{k:05d}|A_LONG_NAME_WITH, odd (symbols)" for k in range(3)] + ["same", "same", "x\x01y"]
    for width in (None, 10, 30):
        names = unique_names(long, width)
        assert len(set(names)) == len(long) and all(width is None or len(name) <= width for name in names)
        assert not any(character in name for name in names for character in " \x01(),:;[]")


def test_stack_writing_time_is_linear_in_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that time does not grow with the square of the number of rows, as in Bio.Align."""
    stack = stacked([(0, "MKWV", "MK-V", 0, 0), (3, "VT--FI", "VTAAFI", 2, 1)])
    expected = {format: stack_text(stack, format) for format in STACK_FORMATS}
    monkeypatch.setattr(Align.Alignment, "__getitem__", lambda *_: pytest.fail("a row is made from coordinates"))
    assert {format: stack_text(stack, format) for format in STACK_FORMATS} == expected


def test_stop_codons_in_stacks_are_written_as_x() -> None:
    stack = stacked([(0, "MKWV", "MK*V", 0, 0)])
    for format in STACK_FORMATS:
        assert "MKXV" in stack_text(stack, format)
    assert "MKXV" in stack_text(stack, "maf")


def test_stack_rejects_too_many_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stack_module, "MAXIMUM_CELLS", 3 * len(QUERY) - 1)
    stacked([(0, QUERY, QUERY, 0, 0)])
    with pytest.raises(ParameterError, match="the stack of the 2 hits of query has 20 columns: too many; select fewer hits"):
        stacked([(0, QUERY, QUERY, 0, 0)] * 2)


@pytest.mark.parametrize(
    ("start", "above", "below", "subject_start", "length"),
    [
        (0, "", "", 0, 5),
        (18, "RGA", "RGA", 0, 5),
        (-1, "MKW", "MKW", 0, 5),
        (0, "-KW", "MKW", 0, 5),
        (0, "MK-", "MKW", 0, 5),
        (0, "MKW", "MKW", 3, 5),
        (0, "MKW", "MKW", -1, 5),
    ],
)
def test_stack_rejects_inconsistent_alignments(start: int, above: str, below: str, subject_start: int, length: int) -> None:
    """Check a table of hits from an untrusted source."""
    numbers = [np.array([number]) for number in (length, start, subject_start)]
    subjects = AlignedSubjects(["s"], [""], *numbers, Texts.from_strings([above]), Texts.from_strings([below]), np.array([1]))
    with pytest.raises(ParameterError, match="do not fit its sequence and its hits; search again"):
        Stack.from_subjects("query", "", QUERY, subjects)


@given(st.integers(1, 6).flatmap(lambda n: st.lists(st.text("ACDW-X", min_size=5, max_size=5), min_size=n, max_size=n)))
def test_stack_conservation_equals_the_defined_divergence(lines: list[str]) -> None:
    """Compare with the Jensen-Shannon divergence by its definition, with weights by position, in plain Python."""
    residues = np.array([list(line.encode()) for line in lines], np.uint8)
    weights = [0.0] * len(lines)
    for column in zip(*lines, strict=True):
        counts = Counter(residue for residue in column if residue in AMINO_ACIDS)
        for row, residue in enumerate(column):
            if residue in counts:
                weights[row] += 1 / (len(counts) * counts[residue])
    total = sum(weights)
    weights = [weight / total for weight in weights] if total else [1 / len(lines)] * len(lines)
    assert np.allclose(sequence_weights(residues), weights)
    background = {residue: float(BACKGROUND[ord(residue) - ord("A")]) for residue in AMINO_ACIDS}
    whole = sum(background.values())
    for column, result in zip(zip(*lines, strict=True), conservation(residues).tolist(), strict=True):
        shares = {
            residue: sum(weight for weight, other in zip(weights, column, strict=True) if other == residue) for residue in AMINO_ACIDS
        }
        filled = sum(shares.values())
        divergence = 0.0
        for residue in AMINO_ACIDS:
            p, q = (shares[residue] + 1e-7) / (filled + 20e-7), background[residue] / whole
            mean = (p + q) / 2
            divergence += (p * math.log2(p / mean) + q * math.log2(q / mean)) / 2
        assert result == pytest.approx(min(1.0, max(0.0, divergence * filled)), abs=1e-9)


def test_stack_column_of_a_rare_residue_is_most_conserved() -> None:
    rare, frequent, many, gaps = conservation(np.array([list(b"WLA-"), list(b"WLC-"), list(b"WLD-"), list(b"WLE-")], np.uint8)).tolist()
    assert 1 > rare > frequent > many > gaps == 0


def test_align_and_export_write_stacks_for_bio_align(tmp_path: Path, random_protein, fasta) -> None:
    from proteoscope.engine.command_line.main import main

    first, second = random_protein(1, 120), random_protein(2, 200)
    queries = fasta("q.fasta", [("one", first), ("two", second)])
    database = fasta("d.fasta", [("a", first[:60] + first[64:]), ("b", first[10:50] + "WWWW" + first[50:]), ("c", second[20:150])])
    search = ["align", str(queries), str(database), "--device", "cpu", "--quiet", "--set", "maximum_e_value=1e-3"]
    assert main([*search, "--out", str(tmp_path / "all.sto"), "--project", str(tmp_path / "P")]) == 0
    read = list(Align.parse(io.StringIO((tmp_path / "all.sto").read_text()), "stockholm"))
    assert [[record.id.split("/")[0] for record in alignment.sequences] for alignment in read] == [["one", "a", "b"], ["two", "c"]]
    assert str(read[0].sequences[0].seq) == first
    for format in ("stockholm", "maf", "psl", "tsv"):
        assert main(["export", str(tmp_path / "P"), "--format", format, "--out", str(tmp_path / format), "--query", "two"]) == 0
    (pair,) = Align.parse(io.StringIO((tmp_path / "maf").read_text()), "maf")
    assert [record.id for record in pair.sequences] == ["two", "c"]
    assert (tmp_path / "tsv").read_text().count("\n") == 2
    assert main(["export", str(tmp_path / "P"), "--format", "a3m", "--out", str(tmp_path / "a3m"), "--query", "one"]) == 0
    assert (tmp_path / "a3m").read_text().count(">") == 3


def test_stack_export_rejects_two_queries(tmp_path: Path, random_protein, fasta, capsys) -> None:
    from proteoscope.engine.command_line.main import main

    first, second = random_protein(1, 120), random_protein(2, 200)
    files = fasta("q.fasta", [("one", first), ("two", second)]), fasta("d.fasta", [("a", first), ("b", second)])
    results = ["--out", str(tmp_path / "o.tsv"), "--project", str(tmp_path / "P")]
    assert main(["align", *map(str, files), "--device", "cpu", "--quiet", *results]) == 0
    capsys.readouterr()
    for format in ("a3m", "phylip", "clustal-stack"):
        assert main(["export", str(tmp_path / "P"), "--format", format, "--out", str(tmp_path / "o")]) == 2
        assert "contains the hits of one query, but several queries have hits; select one (--query)" in capsys.readouterr().err
    assert main(["export", str(tmp_path / "P"), "--format", "a3m", "--out", str(tmp_path / "o"), "--query", "three"]) == 2
    assert "run 'align-0001' has no query 'three'" in capsys.readouterr().err
    assert not (tmp_path / "o").exists()


@pytest.mark.parametrize("format", ["stockholm", "a3m", "phylip", "clustal-stack", "maf", "psl"])
def test_stack_without_hits_is_reported_and_not_written(format: str, tmp_path: Path, random_protein, fasta, capsys) -> None:
    from proteoscope.engine.command_line.main import main

    files = fasta("q.fasta", [("one", random_protein(1, 120))]), fasta("d.fasta", [("other", random_protein(5, 90))])
    search = ["align", *map(str, files), "--device", "cpu", "--set", "maximum_e_value=1e-30"]
    direct = tmp_path / "direct"
    assert main([*search, "--out", str(direct), "--format", format, "--project", str(tmp_path / "P")]) == 0
    assert "is not written: no query has a hit" in capsys.readouterr().err
    assert main(["export", str(tmp_path / "P"), "--format", format, "--out", str(tmp_path / "o")]) == 2
    assert f"no query has a hit, so that nothing can be written as {format}" in capsys.readouterr().err
    assert not direct.exists() and not (tmp_path / "o").exists()
