"""Short files whose matches all refer to the same long lists are rejected in one sentence; files written by searches are not."""

from __future__ import annotations

import pytest

from proteoscope.engine.chemistry.noted_peptides import NotedModification, NotedPeptide
from proteoscope.engine.errors import InputError
from proteoscope.engine.matches.match_lists.identifications import MatchCollector
from proteoscope.engine.unfolding import Unfolding


def collect(n: int, peptide: NotedPeptide, accessions: list[str], scores: dict[str, float]) -> MatchCollector:
    """Collect matches of one peptide with the same proteins and scores."""
    collector = MatchCollector("mzIdentML", Unfolding("x.mzid", n * 500))
    proteins = [collector.accession(sequence) for sequence in accessions]
    for _ in range(n):
        collector.add(collector.peptide(peptide), proteins, scores)
    return collector


@pytest.mark.parametrize(
    ("peptide", "accessions", "scores"),
    [
        (NotedPeptide("PEPTIDEK"), ["P" * 300_000], {}),
        (NotedPeptide("PEPTIDEK"), [f"P{i}" for i in range(5000)], {}),
        (NotedPeptide("PEPTIDEK", tuple(NotedModification(i % 8, "Acetyl") for i in range(5000))), ["P1"], {}),
        (NotedPeptide("PEPTIDEK"), ["P1"], {f"score_{i}": 1.0 for i in range(501)}),
    ],
)
def test_import_rejects_many_matches_with_long_lists(peptide, accessions, scores):
    with pytest.raises(InputError, match=r"x\.mzid, match \d+: expands to more than [\d,]+ .*, the limit for a file of 2,500,000 bytes"):
        collect(5000, peptide, accessions, scores)


def test_import_accepts_list_lengths_of_real_searches():
    peptide = NotedPeptide("A" * 50, tuple(NotedModification(i, "Acetyl") for i in range(50)))
    matches = collect(20_000, peptide, [f"sp|P{i:05}|NAME_HUMAN" for i in range(100)], {f"score_{i}": 1.0 for i in range(20)})
    assert len(matches.finish()) == 20_000
