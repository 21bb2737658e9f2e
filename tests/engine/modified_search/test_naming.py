"""Names of mass shifts."""

import re

import numpy as np
import pytest

from proteoscope.engine.chemistry.enzymes import enzyme
from proteoscope.engine.chemistry.masses import RESIDUE_MASS
from proteoscope.engine.chemistry.modifications import parse_modification, unimod
from proteoscope.engine.matches import shift_names as naming
from proteoscope.engine.matches.neutral_losses import LOSS_OF_PHOSPHATE, LOSS_OF_SULFATE, NO_LOSS
from proteoscope.engine.matches.shift_names import END_TIER, TIERS, USUAL_TIER, ShiftPositions, name_shifts, tiers_of_shifts

CARBAMIDOMETHYL = (parse_modification("Carbamidomethyl (C)"),)
BEFORE, AFTER = "MAAGTKDE", "SGKLLR"
SHORTEST = 6


def named(sequence, shift, *, best, allowed=(), tolerance=0.01, before=BEFORE, after=AFTER, fixed=CARBAMIDOMETHYL):
    """Return the name, site and modification of a shift whose best position is `best`; `before` and `after` are adjacent residues."""
    result = name_shifts(places_of(sequence, shift, best, allowed, tolerance, before, after), fixed, enzyme("Trypsin"))
    number = int(result.modification[0])
    modification = result.modifications[number] if number >= 0 else None
    return (None if modification is None else modification.name), int(result.site[0]), None if modification is None else modification


def places_of(sequence, shift, best, allowed=(), tolerance=0.01, before=BEFORE, after=AFTER):
    score = np.full((1, 64), -np.inf, np.float32)
    score[0, : len(sequence)] = 10.0
    for place in (best, *allowed):
        score[0, place - 1] = 20.0 if place == best else 19.5
    protein = before + sequence + after
    return ShiftPositions(
        np.array([shift]),
        np.array([tolerance]),
        score,
        np.array([len(before)]),
        np.array([len(sequence)]),
        np.array([0]),
        np.array([len(protein)]),
        np.frombuffer(protein.encode(), np.uint8),
        SHORTEST,
    )


def possible(sequence, shift, best, loss=NO_LOSS, tolerance=0.015):
    """Return all names of a shift that are as likely as the first, and the other names."""
    places = places_of(sequence, shift, best, (), tolerance)
    (text,) = name_shifts(places, CARBAMIDOMETHYL, enzyme("Trypsin"), np.array([loss])).possible
    leading, *others = text.split("; ")
    return [name.rsplit(" (", 1)[0] for name in leading.split(" or ")], [name.rsplit(" (", 1)[0] for name in others]


def mass_of(residues):
    return float(sum(RESIDUE_MASS[ord(residue) - 65] for residue in residues))


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
def test_mass_shift_gets_unimod_name_with_matching_site(sequence, name, best, site):
    result, where, modification = named(sequence, unimod().by_name(name).mass + 0.003, best=best)
    assert (result, where) == (name, site)
    assert modification.unimod_id == unimod().by_name(name).id and modification.mass == unimod().by_name(name).mass


def test_mass_shift_without_a_matching_site_has_no_name():
    assert named("PEPTIDEK", unimod().by_name("Gln->pyro-Glu").mass, best=5)[0] != "Gln->pyro-Glu"
    assert named("PEPTIDEK", 123.4567, best=4) == (None, 4, None)


def test_mass_shift_is_moved_to_a_nameable_site_of_equal_score():
    assert named("PEPMTIDEK", unimod().by_name("Oxidation").mass, best=5, allowed=(4,))[:2] == ("Oxidation", 4)


def test_mass_shift_of_end_residues_is_named_as_peptide_end():
    # TK precedes the peptide and K|D is a cut, so the difference is DE; S G K is followed by a cut.
    assert named("PEPTIDEK", mass_of("E"), best=1)[0] == "semi-specific end +E (N-terminus)"
    assert named("PEPTIDEK", mass_of("DE"), best=1)[0] == "missed cleavage +DE (N-terminus)"
    assert named("PEPTIDEK", mass_of("SGK"), best=8)[0] == "missed cleavage +SGK (C-terminus)"
    assert named("PEPTIDEK", -mass_of("PE"), best=2)[0] == "semi-specific end -PE (N-terminus)"
    assert named("PEPTIDKIDEK", -mass_of("IDEK"), best=9)[0] == "further cleavage -IDEK (C-terminus)"
    # In the middle of the peptide, the same mass is another modification.
    assert named("PEPTIDEK", mass_of("DE"), best=5)[0] != "missed cleavage +DE (N-terminus)"


@pytest.mark.parametrize("k", range(1, 8))
def test_mass_shift_does_not_name_truncations_to_short_peptides(k):
    sequence = "LVNELTEFAK"
    for lost, best, end in ((sequence[:k], 1, "N-terminus"), (sequence[-k:], len(sequence), "C-terminus")):
        name = f"-{lost} ({end})"
        leading, others = possible(sequence, -mass_of(lost), best)
        is_end = any(text.endswith(name) for text in (*leading, *others))
        assert is_end == (len(sequence) - k >= SHORTEST)
        tier, _ = tiers_of_shifts(places_of(sequence, -mass_of(lost), best), CARBAMIDOMETHYL)
        assert (tier[0] == END_TIER) <= is_end


@pytest.mark.parametrize(("residue", "exchange"), [("S", "Ser->Asp"), ("T", "Thr->Glu"), ("K", "Lys->Arg")])
def test_mass_shift_names_list_modification_before_substitution(residue, exchange):
    sequence = f"PEV{residue}IDEK"
    assert named(sequence, unimod().by_name("Formyl").mass, best=4, tolerance=0.015)[0] == "Formyl"
    leading, others = possible(sequence, unimod().by_name("Formyl").mass, 4)
    assert leading[0] == "Formyl" and exchange in others


def test_mass_shift_names_list_modification_before_peptide_end():
    # Either glycine, which follows serine in the protein, or a carbamidomethyl group on lysine.
    leading, others = possible("PEPTIDEK", mass_of("G"), 8)
    assert leading[0] == "Carbamidomethyl" and not any("end" in name for name in leading)
    leading, others = possible("EPTIDEK", mass_of("E"), 1)
    assert leading == ["Glu"] and "semi-specific end +E (N-terminus)" in others


def test_neutral_loss_distinguishes_phospho_from_sulfo():
    for name, other in (("Phospho", "Sulfo"), ("Sulfo", "Phospho")):
        mass = unimod().by_name(name).mass
        assert possible("PESTIDEK", mass, 4)[0] == [name, other]
        for loss, expected in ((LOSS_OF_PHOSPHATE, "Phospho"), (LOSS_OF_SULFATE, "Sulfo")):
            leading, others = possible("PESTIDEK", mass, 4, loss)
            assert leading == [expected] and ("Sulfo" if expected == "Phospho" else "Phospho") in others
        assert possible("PESTIDEK", mass, 4, tolerance=0.004)[0] == [name]


def test_possible_mass_shift_names_equal_the_definition():
    """Check random shifts at one position: every matching Unimod entry, substitution and end is named, and nothing else."""
    random = np.random.default_rng(8)
    sequence, tolerance = "GSTKMDENQHYWK", 0.02
    masses = [modification.mass for modification in unimod() if abs(modification.mass) < 300]
    for best in random.integers(2, len(sequence) - 1, 40).tolist():
        shift, residue = float(random.choice(masses)) + float(random.normal(0, 0.005)), sequence[best - 1]
        expected = {
            modification.title
            for modification in unimod()
            for site in modification.sites
            if site.classification != "AA substitution"
            and site.residue == residue
            and site.position == "anywhere"
            and modification.mass
            and abs(modification.mass - shift) <= tolerance
        }
        leading, others = possible(sequence, shift, best, tolerance=tolerance)
        names = {name for name in (*leading, *others) if name and "->" not in name and " + " not in name and "terminus)" not in name}
        assert names == {name for name in expected if "->" not in name}
        residues = [after for after in "ACDEFGHIKLMNPQRSTVWY" if after != residue]
        exchanges = [after for after in residues if abs(mass_of(after) - mass_of(residue) - shift) <= tolerance]
        assert sum(bool(re.fullmatch("[A-Z][a-z]{2}->[A-Z][a-z]{2}", name)) for name in (*leading, *others)) >= len(exchanges)


def test_substitution_is_named_after_both_amino_acids():
    assert named("PEVTIDEK", mass_of("W") - mass_of("V"), best=3)[:2] == ("Val->Trp", 3)


def test_mass_shift_may_remove_or_replace_fixed_modification():
    fixed = unimod().by_name("Carbamidomethyl").mass
    assert named("PECTIDEK", -fixed, best=3)[0] == "without Carbamidomethyl"
    assert named("PECTIDEK", unimod().by_name("Propionamide").mass - fixed, best=3)[0] == "Propionamide instead of Carbamidomethyl"
    assert named("PECTIDEK", -fixed, best=3, fixed=())[0] != "without Carbamidomethyl"


def test_two_modifications_are_named_with_both_sites():
    both = unimod().by_name("Oxidation").mass + unimod().by_name("Phospho").mass
    assert named("PEMTISDK", both, best=4, tolerance=0.002)[0] == "Oxidation + Phospho"
    assert named("PEATIADK", both, best=4, tolerance=0.002)[0] != "Oxidation + Phospho"


@pytest.mark.parametrize(
    ("sequence", "shift", "best", "tier"),
    [
        ("PEMTIDEK", unimod().by_name("Oxidation").mass, 3, USUAL_TIER),
        ("PEMTIDEK", unimod().by_name("Oxidation").mass, 6, None),  # Aspartate can carry it, but rarely does.
        ("PEPTIDEK", -mass_of("PE"), 1, END_TIER),
        ("PEPTIDEK", -mass_of("PEP"), 1, None),  # Five residues remain.
        ("PEPTIDEK", mass_of("S"), 8, END_TIER),
        ("PEPTIDEK", unimod().by_name("GG").mass, 8, None),
        ("PEPTIDEK", mass_of("S") - mass_of("A"), 4, None),
    ],
)
def test_fdr_tiers_separate_modifications_and_peptide_ends(sequence, shift, best, tier):
    tiers, distance = tiers_of_shifts(places_of(sequence, shift + 0.003, best), CARBAMIDOMETHYL)
    assert tiers[0] == tier if tier is not None else tiers[0] > END_TIER
    if tiers[0] < TIERS - 1:
        assert distance[0] == pytest.approx(0.003, abs=1e-4)


def test_mass_shift_without_a_name_has_the_last_fdr_tier():
    tier, distance = tiers_of_shifts(places_of("PEPTIDEK", 123.4567, 4), CARBAMIDOMETHYL)
    assert tier[0] == TIERS - 1 and np.isinf(distance[0])


def test_mass_shift_names_and_fdr_tiers_do_not_depend_on_batches(monkeypatch):
    """Name random shifts together and in batches of seven; all tiers but the last have names and distances."""
    random = np.random.default_rng(3)
    residue_codes = np.frombuffer(b"ACDEFGHIKLMNPQRSTVWY", np.uint8)
    n, length = 300, 12
    residues = random.choice(residue_codes, n * length)
    score = np.full((n, 64), -np.inf, np.float32)
    score[:, :length] = random.uniform(0, 20, (n, length))
    masses = np.array([modification.mass for modification in unimod() if abs(modification.mass) < 300])
    position = np.arange(n) * length
    places = ShiftPositions(
        random.choice(masses, n) + random.normal(0, 0.004, n),
        np.full(n, 0.01),
        score,
        position,
        np.full(n, length),
        position,
        position + length,
        residues,
        SHORTEST,
    )
    tier, distance = tiers_of_shifts(places, CARBAMIDOMETHYL)
    result = name_shifts(places, CARBAMIDOMETHYL, enzyme("Trypsin"))
    has_name = (result.modification >= 0) & ~result.is_pair
    assert (has_name == (tier < TIERS - 1)).all() and 0.2 < has_name.mean() < 1
    for row in np.flatnonzero(has_name).tolist():
        masses = [float(name.rsplit("(", 1)[1].rstrip(")")) for part in result.possible[row].split("; ") for name in part.split(" or ")]
        assert min(abs(abs(places.shift[row] - mass) - distance[row]) for mass in masses) < 1e-4
    monkeypatch.setattr(naming, "_ROWS_AT_ONCE", 7)
    again, distances = tiers_of_shifts(places, CARBAMIDOMETHYL)
    assert (again == tier).all() and (distances == distance).all()
