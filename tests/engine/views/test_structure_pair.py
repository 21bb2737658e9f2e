"""Alignments of two structures: columns, kinds, numbers and texts, compared with their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proteoscope.engine.structure_search.hit_chains import parse_cigar_pairs
from proteoscope.engine.views.structure_pair import ALIGNED, APART, BEYOND, WITHIN, ChainFacts, StructurePair, expand_cigar
from tests.engine.structures.examples import helix

RUNS = st.lists(st.tuples(st.integers(1, 12), st.sampled_from("MID")), min_size=1, max_size=12)


def pair_of(cigar: str, *, has_positions: bool = True, seed: int = 3) -> StructurePair:
    """Return an aligned pair of chains with random residues."""
    random = np.random.default_rng(seed)
    rows = expand_cigar(cigar)
    sequences, facts = [], []
    for k, row in enumerate(rows):
        n = int((row >= 0).sum())
        sequences.append("".join(random.choice(list("ACDEFGHIKLMNPQRSTVWY"), n)))
        states = "".join("CHE"[i // 7 % 3] for i in range(n))
        labels = tuple(f"{i - 2 + 100 * k}{'A' if i == 3 else ''}" for i in range(n)) if has_positions else None
        facts.append(ChainFacts(states, labels, np.full(n, 3.8), np.full(n, 90.0), np.full(n, np.nan)))
    distances = random.uniform(0, 8, len(parse_cigar_pairs(cigar))) if has_positions else None
    return StructurePair.from_cigar(("Q", "T", "a target"), (sequences[0], sequences[1]), cigar, distances, (facts[0], facts[1]))


@settings(max_examples=80, deadline=None)
@given(RUNS)
def test_structure_pair_has_each_residue_once(runs: list[tuple[int, str]]) -> None:
    cigar = "".join(f"{n}{kind}" for n, kind in runs)
    pair = pair_of(cigar)
    assert len(pair) == sum(n for n, _ in runs)
    for line, rows, facts in ((pair.query, pair.of_query, pair.query_facts), (pair.subject, pair.of_target, pair.target_facts)):
        assert rows[rows >= 0].tolist() == list(range(len(facts.states)))
        assert [symbol == "-" for symbol in line] == (rows < 0).tolist()
    both = np.stack([pair.of_query, pair.of_target], axis=1)[(pair.of_query >= 0) & (pair.of_target >= 0)]
    assert both.tolist() == parse_cigar_pairs(cigar).tolist()


@settings(max_examples=80, deadline=None)
@given(RUNS)
def test_structure_pair_classifies_columns_by_distance(runs: list[tuple[int, str]]) -> None:
    pair = pair_of("".join(f"{n}{kind}" for n, kind in runs))
    for column, distance in enumerate(pair.distance.tolist()):
        a, b = pair.query[column], pair.subject[column]
        if "-" in (a, b):
            assert (pair.kinds[column], pair.middle[column]) == (APART, " ")
            continue
        limits = [kind for kind, limit in zip(WITHIN, (1.0, 2.0, 3.5, 5.0), strict=True) if distance <= limit]
        assert pair.kinds[column] == (limits[0] if limits else BEYOND)
        assert pair.middle[column] == (a if a == b else ":" if distance < 5.0 else ".")


def test_structure_pair_counts_residues_without_positions() -> None:
    pair = pair_of("2I5M3D", has_positions=False)
    assert set(pair.kinds.tolist()) == {APART, ALIGNED} and pair.labels(0, len(pair)) == (("1", "7"), ("1", "8"))
    assert pair.column_text(3).splitlines()[-1] == "Aligned"


def test_structure_pair_labels_have_numbers_and_insertion_codes() -> None:
    pair = pair_of("2I5M3D")
    assert pair.labels(0, len(pair)) == (("-2", "4"), ("98", "105"))
    assert pair.labels(3, 4)[0] == ("1A", "1A")
    # A chain has no number before its first residue.
    assert pair.labels(0, 2)[1] == ("", "")


def test_pair_column_text_describes_residues_and_distance() -> None:
    pair = pair_of("2I5M3D")
    query, target, distance = pair.column_text(3).splitlines()
    assert query.startswith("Query: ") and query.endswith(" 1A, coil, 3.80 Å to the next Cα, 90° between successive Cα vectors")
    assert target.startswith("Target: ") and " 99, coil" in target
    assert distance == f"Aligned, {pair.distance[3]:.2f} Å apart"
    assert pair.column_text(0).splitlines()[1:] == ["Target: gap", "Not aligned"]


def test_structure_pair_text_has_secondary_structure_rows() -> None:
    pair = pair_of("8I32M20D")
    lines = pair.text(20).split("\n")
    shown = ["", ""]
    for block, at in enumerate(i for i, line in enumerate(lines) if line.startswith("Query")):
        residues = pair.query[20 * block : 20 * block + 20]
        start, n = lines[at].index(residues), len(residues)
        for k, line in enumerate((lines[at - 1], lines[at + 3])):
            shown[k] += f"{line[start : start + n]:<{n}}"
    assert shown == [line.replace("C", " ").replace("-", " ") for line in pair.states]
    assert any("HHH" in line for line in shown) and any("EEE" in line for line in shown)


def test_chain_trace_geometry_matches_ideal_helix() -> None:
    from proteoscope.engine.structure_search.hit_chains import trace_geometry

    length, angle = trace_geometry(helix(10))
    assert np.allclose(length[:9], length[0]) and length[0] == pytest.approx(3.8, abs=0.05) and np.isnan(length[9])
    assert np.allclose(angle[:8], angle[0]) and 80 < angle[0] < 100 and np.isnan(angle[8:]).all()
