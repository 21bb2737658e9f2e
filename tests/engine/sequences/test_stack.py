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
"""Computing pairs takes longer than stacking them."""


def stacked(found: list[tuple[int, str, str, int, int]]) -> Stack:
    starts = np.array([one[3] for one in found], np.int64)
    lengths = starts + np.array([len(one[2].replace("-", "")) + one[4] for one in found], np.int64)
    subjects = AlignedSubjects(
        [f"subject{k}" for k in range(len(found))],
        [f"number {k}" for k in range(len(found))],
        lengths,
        np.array([one[0] for one in found], np.int64),
        starts,
        Texts.from_strings([one[1] for one in found]),
        Texts.from_strings([one[2] for one in found]),
        np.arange(len(found), dtype=np.int64) + 7,
    )
    return Stack.of("query", "of the test", QUERY, subjects)


def rows(stack: Stack) -> list[str]:
    return [np.where(row == 0, ord(" "), row).astype(np.uint8).tobytes().decode() for row in stack.symbols]


def parsed(stack: Stack, format: str) -> list[Align.Alignment]:
    return list(Align.parse(io.StringIO(file_header(format) + stack_text(stack, format)), format))


@A_FEW
@given(PAIRS)
def test_row_pairs_are_restored(result: list[tuple[int, str, str, int, int]]) -> None:
    stack = stacked(result)
    shown = rows(stack)
    assert shown[0].replace("-", "") == QUERY
    for (start, above, below, _, _), row in zip(result, shown[1:], strict=True):
        # Columns with gaps in both rows are insertions of other sequences.
        own = [(a, b) for a, b in zip(shown[0], row, strict=True) if b != " " and (a, b) != ("-", "-")]
        assert ("".join(a for a, _ in own), "".join(b for _, b in own)) == (above, below)
        first = len(row) - len(row.lstrip())
        assert len(shown[0][:first].replace("-", "")) == start


@A_FEW
@given(PAIRS)
def test_columns_are_opened_for_the_longest_insertion_alone(result: list[tuple[int, str, str, int, int]]) -> None:
    longest = Counter[int]()
    for start, above, _, _, _ in result:
        place, run = start - 1, 0
        for letter in above:
            place, run = (place, run + 1) if letter == "-" else (place + 1, 0)
            longest[place] = max(longest[place], run)
    stack = stacked(result)
    assert stack.n_columns == len(QUERY) + sum(longest.values())
    assert stack.query_place[~stack.is_opened].tolist() == list(range(len(QUERY)))


@A_FEW
@given(PAIRS)
def test_what_follows_an_insertion_is_marked_in_its_row_alone(result: list[tuple[int, str, str, int, int]]) -> None:
    expected = np.zeros((len(result) + 1, len(QUERY)), np.bool_)
    for row, (start, above, _, _, _) in enumerate(result, start=1):
        place = start
        for before, letter in zip("x" + above, above, strict=False):
            if letter != "-":
                expected[row, place] = before == "-"
                place += 1
    assert np.array_equal(stacked(result).follows_insertion, expected)


@A_FEW
@given(PAIRS)
@pytest.mark.parametrize("format", ["stockholm", "phylip", "clustal"])
def test_a_stack_is_read_back_as_it_was(format: str, result: list[tuple[int, str, str, int, int]]) -> None:
    stack = stacked(result)
    (read,) = parsed(stack, format)
    assert [read[row] for row in range(len(stack))] == [row.replace(" ", "-") for row in rows(stack)]
    width = {"phylip": 10, "clustal": 30}.get(format)
    assert [record.id for record in read.sequences] == unique_names(stack.names, width)
    if format == "stockholm":
        assert read.column_annotations["reference coordinate annotation"] == "".join("." if one else "x" for one in stack.is_opened)
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
        assert len([letter for letter in read if not letter.islower()]) == len(QUERY)
        pair = "".join(b.lower() if a == "-" else b for a, b in zip(above, below, strict=True))
        end = start + len(above.replace("-", ""))
        assert read == "-" * start + pair + "-" * (len(QUERY) - end)
    assert sequences[0] == QUERY


@A_FEW
@given(PAIRS.filter(bool))  # Bio.Align does not read MAF files without alignments
@pytest.mark.parametrize("format", PAIR_FORMATS)
def test_pairs_are_read_back_at_their_positions(format: str, result: list[tuple[int, str, str, int, int]]) -> None:
    stack = stacked(result)
    read = parsed(stack, format)
    assert len(read) == len(result)
    for k, ((start, above, below, subject_start, rest), one) in enumerate(zip(result, read, strict=True)):
        query, subject = (0, 1) if format == "maf" else (1, 0)
        residues = len(below.replace("-", ""))
        assert [one.sequences[at].id for at in (query, subject)] == ["query", f"subject{k}"]
        assert [len(one.sequences[at]) for at in (query, subject)] == [len(QUERY), subject_start + residues + rest]
        ends = [(one.coordinates[at, 0], one.coordinates[at, -1]) for at in (query, subject)]
        assert ends == [(start, start + len(above.replace("-", ""))), (subject_start, subject_start + residues)]
        _, expected = Align.Alignment.parse_printed_alignment([above.encode(), below.encode()])
        assert np.array_equal(one.coordinates[[query, subject]], expected + np.array([[start], [subject_start]]))
        if format == "maf":
            assert [one[query], one[subject]] == [above, below] and one.score == k + 7


def test_names_are_distinct_in_every_format() -> None:
    long = [f"sp|P{k:05d}|A_LONG_NAME_WITH, odd (letters)" for k in range(3)] + ["same", "same", "x\x01y"]
    for width in (None, 10, 30):
        names = unique_names(long, width)
        assert len(set(names)) == len(long) and all(width is None or len(name) <= width for name in names)
        assert not any(letter in name for name in names for letter in " \x01(),:;[]")


def test_rows_are_not_made_anew_from_the_coordinates_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in Bio.Align, whose time grows with the square of their number."""
    stack = stacked([(0, "MKWV", "MK-V", 0, 0), (3, "VT--FI", "VTAAFI", 2, 1)])
    expected = {format: stack_text(stack, format) for format in STACK_FORMATS}
    monkeypatch.setattr(Align.Alignment, "__getitem__", lambda *_: pytest.fail("a row is made from coordinates"))
    assert {format: stack_text(stack, format) for format in STACK_FORMATS} == expected


def test_stars_are_written_as_x() -> None:
    stack = stacked([(0, "MKWV", "MK*V", 0, 0)])
    for format in STACK_FORMATS:
        assert "MKXV" in stack_text(stack, format)
    assert "MKXV" in stack_text(stack, "maf")


def test_what_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stack_module, "MAXIMUM_CELLS", 3 * len(QUERY) - 1)
    stacked([(0, QUERY, QUERY, 0, 0)])
    with pytest.raises(ParameterError, match="the 2 hits of query stacked have 20 columns, which are too many; select fewer hits"):
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
def test_alignments_that_do_not_fit_are_refused(start: int, above: str, below: str, subject_start: int, length: int) -> None:
    """A table of hits may come from untrusted sources."""
    numbers = [np.array([one]) for one in (length, start, subject_start)]
    subjects = AlignedSubjects(["s"], [""], *numbers, Texts.from_strings([above]), Texts.from_strings([below]), np.array([1]))
    with pytest.raises(ParameterError, match="do not fit its sequence and its hits; search again"):
        Stack.of("query", "", QUERY, subjects)


@given(st.integers(1, 6).flatmap(lambda n: st.lists(st.text("ACDW-X", min_size=5, max_size=5), min_size=n, max_size=n)))
def test_conservation_is_the_divergence_written_out(lines: list[str]) -> None:
    """Jensen-Shannon divergence by its definition, with weights by position, in plain Python."""
    letters = np.array([list(line.encode()) for line in lines], np.uint8)
    weights = [0.0] * len(lines)
    for column in zip(*lines, strict=True):
        counts = Counter(letter for letter in column if letter in AMINO_ACIDS)
        for row, letter in enumerate(column):
            if letter in counts:
                weights[row] += 1 / (len(counts) * counts[letter])
    total = sum(weights)
    weights = [one / total for one in weights] if total else [1 / len(lines)] * len(lines)
    assert np.allclose(sequence_weights(letters), weights)
    background = {letter: float(BACKGROUND[ord(letter) - ord("A")]) for letter in AMINO_ACIDS}
    whole = sum(background.values())
    for column, result in zip(zip(*lines, strict=True), conservation(letters).tolist(), strict=True):
        shares = {letter: sum(weight for weight, one in zip(weights, column, strict=True) if one == letter) for letter in AMINO_ACIDS}
        filled = sum(shares.values())
        divergence = 0.0
        for letter in AMINO_ACIDS:
            p, q = (shares[letter] + 1e-7) / (filled + 20e-7), background[letter] / whole
            mean = (p + q) / 2
            divergence += (p * math.log2(p / mean) + q * math.log2(q / mean)) / 2
        assert result == pytest.approx(min(1.0, max(0.0, divergence * filled)), abs=1e-9)


def test_column_of_a_rare_residue_is_most_conserved() -> None:
    rare, frequent, many, gaps = conservation(np.array([list(b"WLA-"), list(b"WLC-"), list(b"WLD-"), list(b"WLE-")], np.uint8)).tolist()
    assert 1 > rare > frequent > many > gaps == 0


def test_the_search_and_the_export_write_what_bio_align_reads(tmp_path: Path, random_protein, fasta) -> None:
    from proteoscope.engine.command_line.main import main

    one, two = random_protein(1, 120), random_protein(2, 200)
    queries = fasta("q.fasta", [("one", one), ("two", two)])
    database = fasta("d.fasta", [("a", one[:60] + one[64:]), ("b", one[10:50] + "WWWW" + one[50:]), ("c", two[20:150])])
    search = ["align", str(queries), str(database), "--device", "cpu", "--quiet", "--set", "maximum_e_value=1e-3"]
    assert main([*search, "--out", str(tmp_path / "all.sto"), "--project", str(tmp_path / "P")]) == 0
    read = list(Align.parse(io.StringIO((tmp_path / "all.sto").read_text()), "stockholm"))
    assert [[record.id.split("/")[0] for record in one.sequences] for one in read] == [["one", "a", "b"], ["two", "c"]]
    assert str(read[0].sequences[0].seq) == one
    for format in ("stockholm", "maf", "psl", "tsv"):
        assert main(["export", str(tmp_path / "P"), "--format", format, "--out", str(tmp_path / format), "--query", "two"]) == 0
    (pair,) = Align.parse(io.StringIO((tmp_path / "maf").read_text()), "maf")
    assert [record.id for record in pair.sequences] == ["two", "c"]
    assert (tmp_path / "tsv").read_text().count("\n") == 2
    assert main(["export", str(tmp_path / "P"), "--format", "a3m", "--out", str(tmp_path / "a3m"), "--query", "one"]) == 0
    assert (tmp_path / "a3m").read_text().count(">") == 3


def test_a_file_of_one_stack_is_not_written_for_two_queries(tmp_path: Path, random_protein, fasta, capsys) -> None:
    from proteoscope.engine.command_line.main import main

    one, two = random_protein(1, 120), random_protein(2, 200)
    files = fasta("q.fasta", [("one", one), ("two", two)]), fasta("d.fasta", [("a", one), ("b", two)])
    results = ["--out", str(tmp_path / "o.tsv"), "--project", str(tmp_path / "P")]
    assert main(["align", *map(str, files), "--device", "cpu", "--quiet", *results]) == 0
    capsys.readouterr()
    for format in ("a3m", "phylip", "clustal-stack"):
        assert main(["export", str(tmp_path / "P"), "--format", format, "--out", str(tmp_path / "o")]) == 2
        assert "holds the hits of one query, and several have some; select one (--query)" in capsys.readouterr().err
    assert main(["export", str(tmp_path / "P"), "--format", "a3m", "--out", str(tmp_path / "o"), "--query", "three"]) == 2
    assert "run align-0001 has no query 'three'" in capsys.readouterr().err
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
