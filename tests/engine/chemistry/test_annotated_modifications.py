"""UniProt's names of modifications against the masses of their chemistry and Unimod's sites."""

from __future__ import annotations

import re

import pytest

from proteoscope.engine.chemistry.formulas import formula_mass
from proteoscope.engine.chemistry.modifications import annotated_modification, annotated_names, unimod

GROUPS = (
    # Part of a name, and the atoms that it adds.
    (r"dipyrrolyl", "C20H22N2O8"),
    (r"Diphthamide", "C7H14N2O"),
    (r"trimethyl", "C3H6"),
    (r"methylated.*di|dimethyl|Dimethylated", "C2H4"),
    (r"acetyl", "C2H2O"),
    (r"formyl", "CO"),
    (r"succinyllysine", "C4H4O3"),
    (r"malonyl", "C3H2O3"),
    (r"glutaryl", "C5H6O3"),
    (r"hydroxyisobutyryl|hydroxybutyryl", "C4H6O2"),
    (r"isobutyryl|butyryl", "C4H6O"),
    (r"propionyl", "C3H4O"),
    (r"crotonyl", "C4H4O"),
    (r"lactoyl|carboxyethyl", "C3H4O2"),
    (r"Glutamate methyl ester \(Gln\)", "CH3O|H2N"),
    (r"[Mm]ethyl", "CH2"),
    (r"[Dd]iphospho", "H2O6P2"),
    (r"pantetheine", "C11H21N2O6PS"),
    (r"pyridoxal phosphate", "C8H8NO5P"),
    (r"[Pp]hospho|aspartylphosphate", "HO3P"),
    (r"dihydroxyprol|sulfone|sulfinic", "O2"),
    (r"sulfonic", "O3"),
    (r"persulfide", "S"),
    (r"3',4'-dihydroxy|hydroxy|Hydroxy|sulfoxide|sulfenic", "O"),
    (r"carboxylysine|carboxyglutamate", "CO2"),
    (r"Sulfo", "O3S"),
    (r"Citrulline|Deamidated", "O|HN"),
    (r"carboxylic acid \(Glu\)", "|H2O"),
    (r"carboxylic acid", "|H3N"),
    (r"nitrosocysteine", "NO|H"),
    (r"[Nn]itr", "NO2|H"),
    (r"amide$", "HN|O"),
    (r"glutathionyl", "C10H15N3O6S"),
    (r"cysteinyl", "C3H5NO2S"),
    (r"biotinyl", "C10H14N2O2S"),
    (r"lipoyl", "C8H12OS2"),
    (r"palmitoyl", "C16H30O"),
    (r"myristoyl", "C14H26O"),
    (r"geranylgeranyl", "C20H32"),
    (r"farnesyl", "C15H24"),
    (r"octanoyl", "C8H14O"),
    (r"decanoyl", "C10H18O"),
    (r"retinylidene", "C20H26"),
    (r"HexNAc|GlcNAc|GalNAc", "C8H13NO5"),
    (r"Fuc", "C6H10O4"),
    (r"\((Glc|Man|Hex)\)", "C6H10O5"),
    (r"ADP-ribosyl", "C15H21N5O13P2"),
    (r"AMP", "C10H12N5O6P"),
    (r"UMP", "C9H11N2O8P"),
    (r"FAD", "C27H31N9O15P2"),
    (r"\(2-succinyl\)", "C4H4O4"),
    (r"didehydroalanine \(Cys\)", "|H2S"),
    (r"2,3-didehydro", "|H2O"),
    (r"oxoalanine \(Cys\)", "O|H2S"),
    (r"oxoalanine \(Ser\)", "|H2"),
    (r"Allysine", "O|H3N"),
    (r"topaquinone", "O2|H2"),
    (r"bromo", "Br|H"),
    (r"Diiodo", "I2|H2"),
    (r"Iodo", "I|H"),
    (r"Hypusine", "C4H9NO"),
)
"""In search order: the first part found in a name is used."""
HALOGENS = {"Br": 78.918338, "I": 126.904473}
RESIDUES = {
    "alanine": "A",
    "arginine": "R",
    "asparagine": "N",
    "aspartate": "D",
    "cysteine": "C",
    "glutamine": "Q",
    "glutamate": "E",
    "glycine": "G",
    "histidine": "H",
    "isoleucine": "I",
    "leucine": "L",
    "lysine": "K",
    "methionine": "M",
    "phenylalanine": "F",
    "proline": "P",
    "serine": "S",
    "threonine": "T",
    "tryptophan": "W",
    "tyrosine": "Y",
    "valine": "V",
}


def weight(formula: str) -> float:
    """Return the mass of a formula, including halogens."""
    for halogen, mass in HALOGENS.items():
        if result := re.match(rf"{halogen}(\d*)$", formula):
            return mass * int(result[1] or 1)
    return formula_mass(formula) if formula else 0.0


@pytest.mark.parametrize(("name", "residue"), list(annotated_names()))
def test_annotated_modification_has_the_mass_of_its_formula(name: str, residue: str) -> None:
    modification = annotated_names()[name, residue]
    added, _, lost = next(formula for part, formula in GROUPS if re.search(part, name)).partition("|")
    assert modification.mass == pytest.approx(weight(added) - weight(lost), abs=2e-4)
    assert modification.unimod_id is not None and unimod().by_id(modification.unimod_id).mass == modification.mass
    # The residue at the end of the name, except for a tyrosine derivative that is named after phenylalanine.
    named = [residue for text, residue in RESIDUES.items() if re.search(rf"{text}$", name)]
    assert not named or residue in named or name.startswith("3',4'-")
    # Unimod lists the residue, or any residue at that terminus.
    assert modification.position != "anywhere" or modification.residues == residue
    assert modification.residues in ("", residue) and unimod().by_id(modification.unimod_id).sites_covering(
        modification.residues, modification.position
    )


def test_annotated_modification_ignores_remarks_in_names() -> None:
    for note in ("Phosphoserine", "Phosphoserine; by PKA and PKC", "Phosphoserine; alternate", "Phosphoserine (By similarity)"):
        assert str(annotated_modification(note, "S")) == "Phospho (S)"
    for note, residue in (("Phosphoserine", "T"), ("N6-methylated lysine", "K"), ("O-linked (GalNAc...) serine", "S"), ("", "S")):
        assert annotated_modification(note, residue) is None
    assert str(annotated_modification("Pyrrolidone carboxylic acid", "Q")) == "Gln->pyro-Glu (N-term Q)"
    assert str(annotated_modification("Leucine amide", "L")) == "Amidated (C-term)"
