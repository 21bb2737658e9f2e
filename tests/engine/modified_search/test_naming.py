"""What a difference of mass is called."""

import numpy as np
import pytest

from engine.chemistry.enzymes import enzyme
from engine.chemistry.masses import RESIDUE_MASS
from engine.chemistry.modifications import parse_modification, unimod
from engine.modified_search import naming
from engine.modified_search.naming import LIKELY_TIER, TIERS, ShiftPlaces, name_shifts, tiers_of_shifts

CARBAMIDOMETHYL = (parse_modification("Carbamidomethyl (C)"),)
BEFORE, AFTER = "MAAGTKDE", "SGKLLR"


def named(sequence, shift, *, best, allowed=(), tolerance=0.01, before=BEFORE, after=AFTER, fixed=CARBAMIDOMETHYL):
    """Name and site of a shift whose best place is `best`, in a protein with residues before and behind."""
    found = name_shifts(places_of(sequence, shift, best, allowed, tolerance, before, after), fixed, enzyme("Trypsin"))
    number = int(found.modification[0])
    one = found.modifications[number] if number >= 0 else None
    return (None if one is None else one.name), int(found.site[0]), None if one is None else one


def places_of(sequence, shift, best, allowed=(), tolerance=0.01, before=BEFORE, after=AFTER):
    score = np.full((1, 64), -np.inf, np.float32)
    score[0, : len(sequence)] = 10.0
    for place in (best, *allowed):
        score[0, place - 1] = 20.0 if place == best else 19.5
    protein = before + sequence + after
    return ShiftPlaces(
        np.array([shift]), np.array([tolerance]), score, np.array([len(before)]), np.array([len(sequence)]), np.array([0]),
        np.array([len(protein)]), np.frombuffer(protein.encode(), np.uint8),
    )  # fmt: skip


def mass_of(letters):
    return float(sum(RESIDUE_MASS[ord(letter) - 65] for letter in letters))


@pytest.mark.parametrize(
    ("sequence", "name", "best", "site"),
    [
        ("PEMTIDEK", "Oxidation", 3, 3),
        ("PESTIDEK", "Phospho", 4, 4),
        ("PENTIDEK", "Deamidated", 3, 3),
        ("PEPTIDEK", "Acetyl", 8, 8),
        ("PEPTIDEK", "Acetyl", 1, 0),
        ("QEPTIDEK", "Gln->pyro-Glu", 1, 1),
        ("PEPTIDEK", "GG", 8, 8),
    ],
)
def test_unimod_names_a_mass_at_a_site_that_fits(sequence, name, best, site):
    found, where, one = named(sequence, unimod().by_name(name).mass + 0.003, best=best)
    assert (found, where) == (name, site)
    assert one.unimod_id == unimod().by_name(name).id and one.mass == unimod().by_name(name).mass


def test_a_mass_without_a_site_has_no_name():
    assert named("PEPTIDEK", unimod().by_name("Gln->pyro-Glu").mass, best=5)[0] != "Gln->pyro-Glu"
    assert named("PEPTIDEK", 123.4567, best=4) == (None, 4, None)


def test_a_name_draws_the_shift_to_a_place_that_scores_as_well():
    assert named("PEPMTIDEK", unimod().by_name("Oxidation").mass, best=5, allowed=(4,))[:2] == ("Oxidation", 4)


def test_residues_at_the_ends_are_no_modification():
    # TK before it: K|D is a cut, so it is DE that stands between; the end behind S G K is a cut.
    assert named("PEPTIDEK", mass_of("E"), best=1)[0] == "semi-specific end +E (N-terminus)"
    assert named("PEPTIDEK", mass_of("DE"), best=1)[0] == "missed cleavage +DE (N-terminus)"
    assert named("PEPTIDEK", mass_of("SGK"), best=8)[0] == "missed cleavage +SGK (C-terminus)"
    assert named("PEPTIDEK", -mass_of("PE"), best=2)[0] == "semi-specific end -PE (N-terminus)"
    assert named("PEPKIDEK", -mass_of("IDEK"), best=6)[0] == "further cleavage -IDEK (C-terminus)"
    # In the middle of the peptide the same mass is something else.
    assert named("PEPTIDEK", mass_of("DE"), best=5)[0] != "missed cleavage +DE (N-terminus)"


def test_exchanges_of_amino_acids_are_named_after_both():
    assert named("PEVTIDEK", mass_of("W") - mass_of("V"), best=3)[:2] == ("Val->Trp", 3)


def test_a_fixed_modification_may_be_missing_or_another():
    fixed = unimod().by_name("Carbamidomethyl").mass
    assert named("PECTIDEK", -fixed, best=3)[0] == "without Carbamidomethyl"
    assert named("PECTIDEK", unimod().by_name("Propionamide").mass - fixed, best=3)[0] == "Propionamide instead of Carbamidomethyl"
    assert named("PECTIDEK", -fixed, best=3, fixed=())[0] != "without Carbamidomethyl"


def test_two_usual_modifications_are_named_where_the_peptide_has_sites_for_both():
    both = unimod().by_name("Oxidation").mass + unimod().by_name("Phospho").mass
    assert named("PEMTISDK", both, best=4, tolerance=0.002)[0] == "Oxidation + Phospho"
    assert named("PEATIADK", both, best=4, tolerance=0.002)[0] != "Oxidation + Phospho"


@pytest.mark.parametrize(
    ("sequence", "shift", "best", "is_likely"),
    [
        ("PEMTIDEK", unimod().by_name("Oxidation").mass, 3, True),
        ("PEMTIDEK", unimod().by_name("Oxidation").mass, 6, False),  # an aspartate may carry it, but hardly does
        ("PEPTIDEK", -mass_of("PE"), 1, True),
        ("PEPTIDEK", mass_of("S"), 8, True),
        ("PEPTIDEK", unimod().by_name("GG").mass, 8, False),
        ("PEPTIDEK", mass_of("S") - mass_of("A"), 4, False),
    ],
)
def test_usual_modifications_and_other_ends_are_likely(sequence, shift, best, is_likely):
    tier, distance = tiers_of_shifts(places_of(sequence, shift + 0.003, best), CARBAMIDOMETHYL)
    assert (tier[0] <= LIKELY_TIER) == is_likely and tier[0] < TIERS - 1
    assert distance[0] == pytest.approx(0.003, abs=1e-4)


def test_a_mass_that_nothing_has_is_of_the_last_tier():
    tier, distance = tiers_of_shifts(places_of("PEPTIDEK", 123.4567, 4), CARBAMIDOMETHYL)
    assert tier[0] == TIERS - 1 and np.isinf(distance[0])


def test_the_tier_is_that_of_the_name_in_pieces_too(monkeypatch):
    """Random shifts: named alone, and in pieces of seven; a tier before the pairs' means a name, and the distance is the name's."""
    random = np.random.default_rng(3)
    letters = np.frombuffer(b"ACDEFGHIKLMNPQRSTVWY", np.uint8)
    n, length = 300, 12
    residues = random.choice(letters, n * length)
    score = np.full((n, 64), -np.inf, np.float32)
    score[:, :length] = random.uniform(0, 20, (n, length))
    masses = np.array([one.mass for one in unimod() if abs(one.mass) < 300])
    position = np.arange(n) * length
    places = ShiftPlaces(
        random.choice(masses, n) + random.normal(0, 0.004, n), np.full(n, 0.01), score, position, np.full(n, length), position,
        position + length, residues,
    )  # fmt: skip
    tier, distance = tiers_of_shifts(places, CARBAMIDOMETHYL)
    found = name_shifts(places, CARBAMIDOMETHYL, enzyme("Trypsin"))
    has_name = (found.modification >= 0) & ~found.is_pair
    assert (has_name == (tier < TIERS - 1)).all() and 0.2 < has_name.mean() < 1
    mass = np.array([one.mass for one in found.modifications])[found.modification]
    assert np.abs(np.abs(places.shift - mass) - distance)[has_name].max() < 1e-6
    monkeypatch.setattr(naming, "_ROWS_AT_ONCE", 7)
    again, distances = tiers_of_shifts(places, CARBAMIDOMETHYL)
    assert (again == tier).all() and (distances == distance).all()
