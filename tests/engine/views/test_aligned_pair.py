"""Aligned pairs of sequences: numbers, kinds of columns and texts, compared with their definitions."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from proteoscope.engine.views.aligned_pair import GAP, IDENTICAL, MISMATCH, POSITIVE, AlignedPair


def pair_of(columns: list[tuple[str, str, bool]], query_start: int = 1, subject_start: int = 1) -> AlignedPair:
    query, subject = ("".join(column[k] for column in columns) for k in (0, 1))  # type: ignore[misc]
    middle = "".join(a if a == b else "+" if positive and "-" not in (a, b) else " " for a, b, positive in columns)
    return AlignedPair("QUERY", "SUBJECT", "a relative", query_start, subject_start, query, middle, subject, ("45.2 bits", "gaps 3"))


RESIDUE = st.sampled_from("ACDEFGHIKLMNPQRSTVWY")


COLUMNS = st.lists(
    st.one_of(
        st.tuples(RESIDUE, RESIDUE, st.booleans()),
        st.tuples(RESIDUE, st.just("-"), st.just(False)),
        st.tuples(st.just("-"), RESIDUE, st.just(False)),
    ),
    min_size=1,
    max_size=150,
).map(lambda columns: [("A", "A", False), *columns])


@settings(max_examples=60, deadline=None)
@given(COLUMNS, st.integers(1, 500), st.integers(1, 500), st.integers(5, 80))
def test_aligned_pair_numbers_the_ends_of_each_line(columns, query_start, subject_start, width) -> None:  # type: ignore[no-untyped-def]
    pair = pair_of(columns, query_start, subject_start)
    at = [query_start, subject_start]
    for first in range(0, len(pair), width):
        last = min(first + width, len(pair))
        numbers = pair.numbers(first, last)
        for k, line in enumerate((pair.query, pair.subject)):
            n = sum(symbol != "-" for symbol in line[first:last])
            assert numbers[k] == ((at[k], at[k] + n - 1) if n else (at[k] - 1, at[k] - 1))
            at[k] += n


@settings(max_examples=60, deadline=None)
@given(COLUMNS)
def test_aligned_pair_column_kinds_equal_the_definition(columns) -> None:  # type: ignore[no-untyped-def]
    kinds = [GAP if "-" in (a, b) else IDENTICAL if a == b else POSITIVE if positive else MISMATCH for a, b, positive in columns]
    assert pair_of(columns).kinds.tolist() == kinds


@settings(max_examples=60, deadline=None)
@given(COLUMNS, st.integers(10, 80))
def test_aligned_pair_text_and_fasta_have_both_sequences(columns, width) -> None:  # type: ignore[no-untyped-def]
    pair = pair_of(columns)
    lines = pair.text(width).splitlines()
    for name, line_of_pair in (("Query", pair.query), ("Subject", pair.subject)):
        assert "".join(line.split()[2] for line in lines if line.startswith(name + " ")) == line_of_pair
    records = pair.fasta().split(">")[1:]
    assert ["".join(record.splitlines()[1:]) for record in records] == [pair.query, pair.subject]
    assert records[1].splitlines()[0].startswith(f"SUBJECT/1-{sum(symbol != '-' for symbol in pair.subject)} a relative")
