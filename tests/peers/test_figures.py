"""Figures of the benchmarks, on cases small enough to count by hand."""

from __future__ import annotations

import math

import pytest

from tests.peers.peer_figures import accepted, agreement, entrapment, with_q_values
from tests.peers.peer_programs import Match


def ranked(pattern: str) -> list[Match]:
    """Return matches of falling score, T for a target and D for a decoy."""
    return [Match(i, f"PEPTIDE{i}", float(-i), kind == "D", float(-i)) for i, kind in enumerate(pattern)]


def test_peer_q_values_are_monotone_decoy_to_target_ratios() -> None:
    q_values = [match.q_value for match in with_q_values(ranked("TTDTTTDT"))]
    assert q_values == pytest.approx([0, 0, 1 / 5, 1 / 5, 1 / 5, 1 / 5, 2 / 6, 2 / 6])


def test_targets_tied_with_a_decoy_are_not_accepted() -> None:
    matches = [Match(0, "A", 2.0, False, 2.0), Match(1, "B", 1.0, False, 1.0), Match(2, "C", 1.0, True, 1.0)]
    assert [match.spectrum for match in accepted(matches)] == [0]


def test_short_match_list_is_accepted_up_to_the_first_decoy() -> None:
    assert [match.spectrum for match in accepted(ranked("TTTDT"))] == [0, 1, 2]


def test_accepted_matches_can_be_ranked_by_raw_score() -> None:
    matches = [Match(0, "A", 3.0, False, 1.0), Match(1, "B", 2.0, True, 3.0), Match(2, "C", 1.0, False, 4.0)]
    assert [match.spectrum for match in accepted(matches)] == [0]
    assert [match.spectrum for match in accepted(matches, raw=True)] == [2]


def test_accepted_matches_use_q_values_of_the_program_if_present() -> None:
    matches = [Match(0, "A", 2.0, False, 2.0, 0.02), Match(1, "B", 1.0, False, 1.0, 0.005)]
    assert [match.spectrum for match in accepted(matches)] == [1]


def test_agreement_treats_leucine_and_isoleucine_as_equal() -> None:
    ours = [Match(0, "LIVK", 1.0, False, 1.0), Match(1, "AAAK", 1.0, False, 1.0), Match(2, "GGGK", 1.0, False, 1.0)]
    theirs = [Match(0, "IIVK", 1.0, False, 1.0), Match(1, "AAGK", 1.0, False, 1.0)]
    assert agreement(ours, theirs) == (1, 2)


def test_entrapment_excludes_shared_and_contaminant_peptides() -> None:
    database = {"own": "AAAKLIVK", "foreign": "CCCKIIVKDDDK" + "G" * 12, "sp|P00761|TRYP_PIG": "EEEK"}
    matches = [Match(i, peptide, 1.0, False, 1.0) for i, peptide in enumerate(("AAAK", "IIVK", "CCCK", "EEEK"))]
    result = entrapment(matches, {"own": database["own"]}, database, {})
    assert (result.accepted, result.foreign) == (4, 1)
    assert result.fraction == 0.25
    assert result.size_ratio == 3
    assert math.isclose(result.corrected, 0.25 * (1 + 1 / 3))
