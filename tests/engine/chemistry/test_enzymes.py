"""Enzymes against the regular expressions of the PSI-MS vocabulary, pyteomics' digestion and a definition by brute force."""

from __future__ import annotations

import itertools
import re
import string

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyteomics import parser

from proteoscope.engine.chemistry.enzymes import ENZYMES, Enzyme, cleavage_sites, digest, enzyme
from proteoscope.engine.errors import ParameterError

# The vocabulary's rules, PSI-MS 4.1.258 (has_regexp), of the enzymes whose rules involve only the two residues of a bond.
PSI_RULES = {
    "MS:1001251": r"(?<=[KR])(?!P)",
    "MS:1001303": r"(?<=R)(?!P)",
    "MS:1001304": r"(?=[BD])",
    "MS:1001305": r"(?=[DE])",
    "MS:1001306": r"(?<=[FYWL])(?!P)",
    "MS:1001307": r"(?<=M)",
    "MS:1001308": r"((?<=D))|((?=D))",
    "MS:1001309": r"(?<=K)(?!P)",
    "MS:1001310": r"(?<=K)",
    "MS:1001311": r"(?<=[FL])",
    "MS:1001312": r"(?<=[FYWLKR])(?!P)",
    "MS:1001313": r"(?<=[KR])",
    "MS:1001314": r"(?<=[BDEZ])(?!P)",
    "MS:1001315": r"(?<=[EZ])(?!P)",
    "MS:1001915": r"(?<=[ALIV])(?!P)",
    "MS:1001918": r"(?<=W)",
    "MS:1002708": r"(?=[KR])",
    "MS:1003093": r"(?=K)",
    "MS:1003434": r"(?<=[TASV])",
    "MS:1003981": r"(?=[AEFILTVWY])",
    "MS:1003983": r"(?<=N)(?=G)",
}
WIDER_RULES = {"MS:1001916": r"(?<=[HKR]P)(?!P)", "MS:1001917": r"(?<=[^E]E)"}

sequences = st.text("ACDEFGHIKLMNPQRSTVWYBZX", min_size=1, max_size=40)
by_rule = [agent for agent in ENZYMES.values() if agent.accession in PSI_RULES]


def test_every_enzyme_has_a_tested_cleavage_rule() -> None:
    checked = {*PSI_RULES, *WIDER_RULES, "MS:1001955", "MS:1001956"}
    assert {agent.accession for agent in ENZYMES.values()} == checked
    assert len(ENZYMES) == len(checked) >= 15


@pytest.mark.parametrize("agent", by_rule, ids=str)
def test_cleavage_tables_equal_psi_ms_rules(agent: Enzyme) -> None:
    expected = np.zeros((26, 26), dtype=bool)
    rule = re.compile(PSI_RULES[agent.accession])
    for before, after in itertools.product(range(26), repeat=2):
        expected[before, after] = rule.match(string.ascii_uppercase[before] + string.ascii_uppercase[after], 1) is not None
    np.testing.assert_array_equal(agent.cleavage_table(), expected)


@given(sequences)
def test_enzymes_with_wider_rules_include_all_psi_ms_cuts(sequence: str) -> None:
    for agent in ENZYMES.values():
        if agent.accession in WIDER_RULES:
            wanted = {match.start() for match in re.finditer(WIDER_RULES[agent.accession], sequence)} - {0, len(sequence)}
            assert wanted <= set(cleavage_sites(sequence, agent).tolist())


@settings(max_examples=40)
@given(sequences, st.integers(0, 3), st.sampled_from(by_rule), st.booleans())
def test_digestion_agrees_with_pyteomics(sequence: str, missed: int, agent: Enzyme, semi: bool) -> None:
    peptides = {sequence[a:b] for a, b, _ in digest(sequence, agent, missed, "semi-specific" if semi else "specific")}
    assert peptides == parser.cleave(sequence, PSI_RULES[agent.accession], missed, semi=semi, regex=True)


@settings(max_examples=60)
@given(sequences, st.integers(0, 3), st.sampled_from(list(ENZYMES.values())), st.integers(1, 4), st.integers(4, 12), st.booleans())
def test_digestion_equals_brute_force(sequence: str, missed: int, agent: Enzyme, shortest: int, longest: int, clip: bool) -> None:
    cut = [bool(agent.cleavage_table()[ord(a) - 65, ord(b) - 65]) for a, b in itertools.pairwise(sequence)]
    n = len(sequence)
    for specificity, needed in (("specific", 2), ("semi-specific", 1), ("non-specific", 0)):
        expected = []
        for start in range(n):
            for stop in range(start + shortest, min(n, start + longest) + 1):
                inside = sum(cut[start : stop - 1])
                begins = start == 0 or cut[start - 1] or (clip and start == 1 and sequence[0] == "M")
                ends = stop == n or cut[stop - 1]
                allowed = inside <= missed or specificity == "non-specific" or agent.name == "unspecific cleavage"
                if begins + ends >= needed and allowed:
                    expected.append((start, stop, inside))
        assert digest(sequence, agent, missed, specificity, shortest, longest, clip) == expected


def test_digestion_accepts_no_and_unspecific_cleavage() -> None:
    assert digest("PEKTIDE", ENZYMES["no cleavage"]) == [(0, 7, 0)]
    assert len(digest("PEKTIDE", ENZYMES["unspecific cleavage"])) == 7 * 8 // 2


def test_enzyme_table_is_read_only() -> None:
    with pytest.raises(ValueError, match="read-only"):
        enzyme("Trypsin").cleavage_table()[0, 0] = True


@pytest.mark.parametrize(("name", "result"), [("trypsin", "Trypsin"), ("MS:1001313", "Trypsin/P"), ("glu-c", "glutamyl endopeptidase")])
def test_enzyme_is_found_by_name_and_accession(name: str, result: str) -> None:
    assert enzyme(name).name == result


def test_unknown_enzyme_error_lists_near_matches() -> None:
    with pytest.raises(ParameterError, match="did you mean Trypsin"):
        enzyme("tripsin")
    with pytest.raises(ParameterError, match="expected one of Trypsin"):
        enzyme("???")


def test_digestion_rejects_invalid_parameters() -> None:
    for wrong in ({"specificity": "fully"}, {"missed_cleavages": -1}, {"minimum_length": 0}):
        with pytest.raises(ParameterError):
            digest("PEK", ENZYMES["Trypsin"], **wrong)


def test_enzyme_rule_describes_cleavage_sites_in_words() -> None:
    assert enzyme("Trypsin").rule == "after K, R; not before P"
    assert enzyme("hydroxylamine").rule == "after N; only before G"
    assert enzyme("unspecific cleavage").rule == "at every bond"
    assert enzyme("no cleavage").rule == "nowhere"
