"""Indexes are cached under the rules, masses and codes that produced them, not under names whose meaning may change."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from proteoscope.engine.chemistry import enzymes, masses, modifications
from proteoscope.engine.identification.parameters import IdentificationParameters
from proteoscope.engine.peptides import digestion as digestions
from proteoscope.engine.peptides.digestion import Digestion
from proteoscope.engine.peptides.indexes import Databases, key_parts
from proteoscope.engine.project.digests import parts_digest
from proteoscope.engine.sequences import database as sequences
from proteoscope.engine.structure_search import prepared_chains, structures
from proteoscope.engine.structure_search.structures import ChainSource
from proteoscope.kernels.cpu import structure_descriptors

DATABASES = Databases([], [], {"database": ["00"], "contaminants": []})


def peptide_key(parameters: IdentificationParameters | None = None) -> str:
    parameters = parameters or IdentificationParameters()
    return parts_digest(key_parts(DATABASES, parameters, Digestion.from_settings(parameters, parameters.specificity)))


def test_peptide_index_key_changes_with_cleavage_rule(monkeypatch):
    before = peptide_key()
    corrected = replace(enzymes.ENZYMES["Trypsin"], not_before="")
    monkeypatch.setitem(enzymes._BY_ANY_NAME, "trypsin", corrected)
    assert peptide_key() != before
    monkeypatch.setitem(enzymes._BY_ANY_NAME, "trypsin", replace(corrected, not_before="P"))
    assert peptide_key() == before


def test_peptide_index_key_changes_with_modification_mass(monkeypatch):
    before = peptide_key()
    parse = modifications.parse_modification
    monkeypatch.setattr(digestions, "parse_modification", lambda name: replace(parse(name), mass=parse(name).mass + 1e-6))
    assert peptide_key() != before


@pytest.mark.parametrize("residue", ["A", "U", "Y"])
def test_peptide_index_key_changes_with_a_corrected_residue_mass(residue, monkeypatch):
    before = peptide_key()
    corrected = masses.RESIDUE_MASS.copy()
    corrected[ord(residue) - ord("A")] += 1e-9
    monkeypatch.setattr(digestions, "RESIDUE_MASS", corrected)
    assert peptide_key() != before


def test_peptide_index_key_changes_when_a_residue_gets_a_mass(monkeypatch):
    before = peptide_key()
    assert np.isnan(masses.RESIDUE_MASS[ord("B") - ord("A")])
    monkeypatch.setattr(digestions, "RESIDUE_MASS", np.nan_to_num(masses.RESIDUE_MASS, nan=114.5))
    assert peptide_key() != before


def test_peptide_index_key_changes_with_terminal_masses(monkeypatch):
    before = peptide_key()
    monkeypatch.setattr(digestions, "WATER_MASS", masses.WATER_MASS + 1e-9)
    assert peptide_key() != before
    monkeypatch.undo()
    assert peptide_key(IdentificationParameters(fixed_modifications=("Carbamidomethyl (C)", "Acetyl (N-term)"))) != before


@pytest.mark.parametrize(
    "changes",
    [
        {"enzyme": "Lys-C"},
        {"specificity": "semi-specific"},
        {"missed_cleavages": 1},
        {"minimum_length": 8},
        {"maximum_length": 20},
        {"minimum_mass": 700.0},
        {"maximum_mass": 3000.0},
        {"clip_methionine": False},
        {"fixed_modifications": ()},
        {"decoys": "shuffle"},
        {"decoy_prefix": "REV_"},
        {"decoy_suffix": "_REVERSED"},
        {"decoys_in_database": "leave-out"},
    ],
)
def test_peptide_index_key_changes_with_every_peptide_parameter(changes):
    assert peptide_key(IdentificationParameters(**changes)) != peptide_key()


def test_peptide_index_key_ignores_settings_without_effect():
    """Check another name of the same enzyme, and fixed modifications in another order."""
    settings = {"fdr": 0.05, "precursor_tolerance": "5 ppm", "variable_modifications": (), "index_memory": 64, "enzyme": "MS:1001251"}
    assert peptide_key(IdentificationParameters(**settings)) == peptide_key()
    both = "Carbamidomethyl (C)", "Label:13C(6) (K)"
    assert peptide_key(IdentificationParameters(fixed_modifications=both)) == peptide_key(
        IdentificationParameters(fixed_modifications=both[::-1])
    )


def test_packed_database_key_depends_on_residue_codes(monkeypatch):
    before = parts_digest(sequences.key_parts(["00"]))
    assert parts_digest(sequences.key_parts(["01"])) != before
    encode = sequences.encode
    monkeypatch.setattr(sequences, "encode", lambda residues: np.where(encode(residues) == 20, 2, encode(residues)))
    assert parts_digest(sequences.key_parts(["00"])) != before


@pytest.mark.parametrize(
    ("module", "name", "value"),
    [
        (structure_descriptors, "RULES", (3.5, *structure_descriptors.RULES[1:])),
        (structures, "LENGTH_UNITS", 256),
        (structures, "ALPHABETS", ("secondary", "residue")),
    ],
)
def test_structure_descriptor_key_depends_on_rules(module, name, value, monkeypatch):
    before = parts_digest(structures.key_parts("a"))
    assert parts_digest(structures.key_parts("b")) != before
    monkeypatch.setattr(module, name, value)
    assert parts_digest(structures.key_parts("a")) != before


def test_structure_descriptor_key_depends_on_alphabets(tmp_path, monkeypatch):
    before = parts_digest(structures.key_parts("a"))
    content = structures.resources.path("structures", "descriptors.json").read_bytes()
    (tmp_path / "other.json").write_bytes(content.replace(b"0", b"1", 1))
    monkeypatch.setattr(structures.resources, "path", lambda *_: tmp_path / "other.json")
    assert parts_digest(structures.key_parts("a")) != before


def test_structure_chain_key_depends_on_files_chains_and_rules(monkeypatch):
    first, second = ChainSource(Path("1.pdb")), ChainSource(Path("2.pdb"))
    before = parts_digest(prepared_chains.key_parts([first, second], ["00", "01"]))
    others = (([first, second], ["00", "02"]), ([second, first], ["01", "00"]), ([ChainSource(Path("1.pdb"), "B"), second], ["00", "01"]))
    assert before not in {parts_digest(prepared_chains.key_parts(*other)) for other in others}
    monkeypatch.setattr(structure_descriptors, "RULES", (*structure_descriptors.RULES, 1))
    assert parts_digest(prepared_chains.key_parts([first, second], ["00", "01"])) != before
