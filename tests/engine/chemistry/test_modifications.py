"""The Unimod catalogue and texts of modifications, against compositions and published figures."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyteomics import mass as pyteomics_mass

from proteoscope.engine.chemistry.modification_naming import find_unimod_entry
from proteoscope.engine.chemistry.modifications import (
    POSITIONS,
    parse_modification,
    parse_site,
    unimod,
    with_replaced_masses,
)
from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.errors import ParameterError

UNITS = {
    "Hex": "C6H10O5",
    "HexNAc": "C8H13NO5",
    "HexN": "C6H11NO4",
    "dHex": "C6H10O4",
    "NeuAc": "C11H17NO8",
    "NeuGc": "C11H17NO9",
    "Pent": "C5H8O4",
    "HexA": "C6H8O6",
    "Ac": "C2H2O",
    "Me": "CH2",
    "Phos": "HO3P",
    "Sulf": "SO3",
    "Kdn": "C9H14O8",
    "Hep": "C7H12O6",
    "Kdo": "C8H12O7",
    "Water": "H2O",
}


def test_unimod_masses_equal_masses_of_compositions() -> None:
    compared = 0
    for entry in unimod():
        mass = 0.0
        for term in entry.composition.split():
            unit, count = re.fullmatch(r"(\w+?)(?:\((-?\d+)\))?", term).groups()
            if unit in UNITS:
                mass += int(count or 1) * pyteomics_mass.calculate_mass(formula=UNITS[unit])
                continue
            number, symbol = re.fullmatch(r"(\d*)([A-Z][a-z]?)", unit).groups()
            mass += int(count or 1) * pyteomics_mass.nist_mass[symbol][int(number or 0)][0]
        compared += 1
        # Unimod's older element masses differ in the sixth digit, which adds up over hundreds of atoms.
        assert entry.mass == pytest.approx(mass, abs=0.006), entry
    assert compared == len(unimod()) > 1500


@pytest.mark.parametrize(
    ("record", "title", "mass"),
    [
        (1, "Acetyl", 42.010565),
        (4, "Carbamidomethyl", 57.021464),
        (21, "Phospho", 79.966331),
        (35, "Oxidation", 15.994915),
        (737, "TMT6plex", 229.162932),
    ],
)
def test_common_unimod_entries_have_known_masses(record: int, title: str, mass: float) -> None:
    assert unimod().by_id(record) is unimod().by_name(title.upper())
    assert unimod().by_id(record).title == title
    assert unimod().by_id(record).mass == mass
    assert unimod().by_id(record).accession == f"UNIMOD:{record}"


def test_unimod_sites_have_position_classification_and_losses() -> None:
    methionine = next(site for site in unimod().by_name("Oxidation").sites if site.residue == "M")
    assert (methionine.position, methionine.classification, methionine.is_hidden) == ("anywhere", "Artefact", False)
    assert methionine.neutral_losses == (63.998285,)
    assert all(site.position in POSITIONS for entry in unimod() for site in entry.sites)
    assert "Carboxyamidomethylation" in unimod().by_name("Carbamidomethyl").alternative_names


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Oxidation (M)", ("Oxidation", 35, "M", "anywhere")),
        ("phospho (yts)", ("Phospho", 21, "STY", "anywhere")),
        ("TMT6plex (N-term)", ("TMT6plex", 737, "", "peptide N-term")),
        ("Acetyl (Protein N-term)", ("Acetyl", 1, "", "protein N-term")),
        ("Acetyl (Protein N-term M)", ("Acetyl", 1, "M", "protein N-term")),
        ("Gln->pyro-Glu (N-term Q)", ("Gln->pyro-Glu", 28, "Q", "peptide N-term")),
        ("Amidated (C-term)", ("Amidated", 2, "", "peptide C-term")),
        ("Label:13C(6)15N(2) (K)", ("Label:13C(6)15N(2)", 259, "K", "anywhere")),
        ("UNIMOD:4 (C)", ("Carbamidomethyl", 4, "C", "anywhere")),
        ("Cation:Fe[III] (D)", ("Cation:Fe[III]", 1870, "D", "anywhere")),
    ],
)
def test_unimod_modification_texts_round_trip(text: str, expected: tuple[object, ...]) -> None:
    result = parse_modification(text)
    assert (result.name, result.unimod_id, result.residues, result.position) == expected
    assert parse_modification(str(result)) == result


def test_parse_modification_accepts_not_c_term_after_residues() -> None:
    result = parse_modification("gg (k NOT c term)")
    assert (str(result), result.residues, result.position, result.place) == ("GG (K not C-term)", "K", "anywhere", -1)
    assert parse_modification(str(result)) == result != parse_modification("GG (K)")
    assert str(parse_modification("mine:+3 (KR not C-term)")) == "mine:+3 (KR not C-term)"
    for text in ("Acetyl (N-term not C-term)", "Acetyl (Protein N-term not C-term)"):
        with pytest.raises(ParameterError, match="'not C-term' follows residues only"):
            parse_modification(text)


@pytest.mark.parametrize(
    ("text", "name", "mass", "written"),
    [
        ("+15.9949 (M)", "+15.9949", 15.9949, "+15.9949 (M)"),
        ("My label:-1.5 (N-term)", "My label", -1.5, "My label:-1.5 (N-term)"),
        ("a:b: + 3 (Protein C-term K)", "a:b", 3.0, "a:b:+3 (Protein C-term K)"),
    ],
)
def test_parse_modification_reads_custom_masses(text: str, name: str, mass: float, written: str) -> None:
    result = parse_modification(text)
    assert (result.name, result.unimod_id, result.mass, str(result)) == (name, None, mass, written)
    assert parse_modification(written) == result


@given(
    st.text("abcXYZ 123", min_size=1, max_size=12).map(str.strip).filter(lambda name: name and name not in unimod()) | st.none(),
    st.integers(-(10**9), 10**9).filter(bool),
    st.sets(st.sampled_from("ACDEFGHIKLMNPQRSTVWY"), max_size=5),
    st.sampled_from(POSITIONS),
)
def test_custom_modification_texts_round_trip(name: str | None, microdalton: int, residues: set[str], position: str) -> None:
    if not residues and position == "anywhere":
        return
    where = {"anywhere": "", "peptide N-term": "N-term", "peptide C-term": "C-term"}.get(position, position.replace("p", "P", 1))
    result = parse_modification(f"{name + ':' if name else ''}{microdalton / 1e6:+.6f} ({where} {''.join(residues)})")
    assert result.mass == pytest.approx(microdalton / 1e6, abs=1e-9)
    assert (result.residues, result.position) == ("".join(sorted(residues)), position)
    assert parse_modification(str(result)) == result


def test_parse_modification_accepts_every_unimod_site() -> None:
    for entry in unimod():
        for site in entry.sites:
            result = parse_modification(f"{entry.title} ({site})")
            assert (result.unimod_id, result.residues, result.position) == (entry.id, site.residue, site.position)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Oxydation (M)", "did you mean Oxidation"),
        ("Carbamidomethylation (C)", "did you mean Carbamidomethyl"),
        ("Phospho (M)", "expected S; T; Y"),
        ("Gln->pyro-Glu (Q)", "expected N-term Q"),
        ("Oxidation", "as Oxidation \\(M\\)"),
        ("Oxidation:+3 (M)", "leave the mass out"),
        ("Phospho (X)", "not a residue"),
        ("Phospho (N-foo)", "not a site"),
        ("UNIMOD:99999 (M)", "no entry"),
        ("+0 (M)", "other than 0"),
        ("", "not a modification"),
        ("qwertyqwerty (M)", "expected a title"),
    ],
)
def test_parse_modification_error_names_the_expected_value(text: str, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        parse_modification(text)


def test_modification_sites_are_read_in_any_spelling() -> None:
    assert parse_site("any n-term") == parse_site("N-Terminus") == parse_site("peptide N-term") == ("", "peptide N-term")
    assert parse_site("protein c-term rk") == ("KR", "protein C-term")


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ({"text": "oxid"}, "Oxidation"),
        ({"text": "phosphorylation"}, "Phospho"),
        ({"text": "carboxyamido"}, "Carbamidomethyl"),
        ({"text": "UNIMOD:121"}, "GG"),
        ({"text": "tag sixplex"}, "TMT6plex"),
        ({"mass": 15.9949}, "Oxidation"),
        ({"mass": 79.9663}, "Phospho"),
        ({"mass": 79.9568}, "Sulfo"),
        ({"mass": 42.0106, "tolerance": Tolerance(20, "ppm")}, "Acetyl"),
        ({"text": "methyl", "site": "K"}, "Methyl"),
    ],
)
def test_unimod_search_ranks_the_likeliest_entry_first(query: dict[str, object], first: str) -> None:
    assert unimod().search(**query)[0].title == first


@settings(max_examples=30)
@given(st.sampled_from([entry.title for entry in unimod()]))
def test_unimod_search_ranks_an_exact_title_first(title: str) -> None:
    assert unimod().search(title.lower(), limit=3)[0].title == title


def test_unimod_search_combines_all_criteria() -> None:
    result = unimod().search(site="Protein N-term", mass=42.0, tolerance=0.1)
    assert all(entry.sites_covering("", "protein N-term") and abs(entry.mass - 42) <= 0.1 for entry in result)
    assert {"Acetyl"} <= {entry.title for entry in result}
    assert unimod().search("no such thing at all") == []
    assert len(unimod().search()) == len(unimod())
    assert len(unimod().search(limit=5)) == 5


@pytest.mark.parametrize(
    ("name", "title"), [("UNIMOD:35", "Oxidation"), ("UNIMOD:4000000", None), ("Oxidation (M)", "Oxidation"), ("no such name", None)]
)
def test_find_unimod_entry_accepts_titles_and_numbers(name: str, title: str | None) -> None:
    entry = find_unimod_entry(name)
    assert (entry.title if entry is not None else None) == title


def test_unimod_file_is_read_only_when_needed() -> None:
    code = (
        "import sys, proteoscope.engine.chemistry.fragments, proteoscope.engine.chemistry.modifications as m; "
        "print(m.unimod.cache_info().currsize, [x for x in ('lxml', 'pyteomics', 'scipy') if x in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "0 []"


FIXED = ("Carbamidomethyl (C)", "TMT6plex (K)", "TMT6plex (N-term)", "Label:13C(6) (K)")
CAM, TMT = 57.021464, 229.162932


@pytest.mark.parametrize(
    ("text", "replaced"),
    [
        ("Acetyl (K)", [("Acetyl (K)", TMT)]),
        ("Acetyl (Protein N-term)", [("Acetyl (Protein N-term)", TMT)]),
        ("Gln->pyro-Glu (N-term Q)", [("Gln->pyro-Glu (N-term Q)", TMT)]),
        ("GG (K)", [("GG (K)", 0)]),
        ("Acetyl (K on top)", [("Acetyl (K on top)", 0)]),
        ("Oxidation (M)", [("Oxidation (M)", 0)]),
        ("Methyl (CKR)", [("Methyl (C)", CAM), ("Methyl (K)", TMT), ("Methyl (R)", 0)]),
        ("Ammonia-loss (N-term C)", [("Ammonia-loss (N-term C)", TMT)]),
        ("Pyro-carbamidomethyl (N-term C)", [("Pyro-carbamidomethyl (N-term C)", TMT + CAM)]),
        ("Label:13C(6)15N(2) (K)", [("Label:13C(6)15N(2) (K)", 0)]),
        ("Mine:+10.5 (K)", [("Mine:+10.5 (K)", TMT)]),
        ("Mine:+10.5 (K On Top)", [("Mine:+10.5 (K on top)", 0)]),
        ("Amidated (C-term)", [("Amidated (C-term)", 0)]),
    ],
)
def test_replaced_mass_equals_fixed_modification_at_same_site(text, replaced):
    """Check a heavy lysine, which stays heavy, and a ubiquitin remnant, whose free amine carries the label."""
    result = with_replaced_masses([parse_modification(text)], [parse_modification(fixed) for fixed in FIXED])
    assert [(str(modification), pytest.approx(modification.replaced_mass, abs=1e-6)) for modification in result] == replaced
    assert all(modification.added_mass == modification.mass - modification.replaced_mass for modification in result)
    assert all(parse_modification(str(modification)) == dataclasses.replace(modification, replaced_mass=0.0) for modification in result)
