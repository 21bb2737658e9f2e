"""Databases with corrupt known modifications and variants are searched without them, or rejected."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from proteoscope.engine.chemistry.modifications import annotated_names
from proteoscope.engine.errors import ProteoscopeError
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.identification.parameters import IdentificationParameters
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.peptides.indexes import Databases, Indexes, build_indexes
from tests.engine.formats.entry_files import swiss_prot_entry
from tests.engine.peptides.test_known_modifications import searched

RESIDUES = "ACDEFGHIKLMNPQRSTVWYKRSST"
PLACES = (
    "{a}",
    "{a}..{b}",
    "{b}..{a}",
    "<{a}",
    ">{a}",
    "?{a}",
    "?",
    "0",
    "-{a}",
    "{n}",
    "{n}..{m}",
    "9" * 20,
    "1..99999999999",
    "{a}.5",
    "",
    "{a}..",
    "..{a}",
    "Q00001-2:{a}",
    "{a} {b}",
    "x",
    "1e3",
    "²",
    "{a}..{a}..{b}",
)
"""Return features of a protein of n residues, with a and b in it and m after it."""
NOTES = (
    "{name}",
    "{name}; by PKA",
    "{old} -> {new}",
    "{old} -> {new} (in X)",
    "Missing",
    "Missing (in X)",
    "{old} -> ",
    " -> {new}",
    "{old}->{new}",
    "{old} -> {long}",
    "{old} -> 7%$",
    "{old} -> j",
    "{old} -> {old}",
    "(in X) {old} -> {new}",
    "{wrong} -> {new}",
    "",
    " ",
    "{name}{name}",
    "PHOSPHOSERINE",
    "Phospho",
    "N-linked (GlcNAc...) asparagine",
    "\\t{name}",
    "\ufeff{name}",
    "\U0001f9ec",
    "'; DROP TABLE",
    "=1+1",
    "../../etc",
    "<b>",
    "&amp;",
    "{many}",
    "{name} (with {old} -> {new})",
    "a\\x00b",
)
KINDS = ("MOD_RES", "LIPID", "CARBOHYD", "VARIANT", "VAR_SEQ", "CROSSLNK", "mod_res", "XXXXXXXX", "")
XML_KINDS = ("modified residue", "lipid moiety-binding region", "glycosylation site", "sequence variant", "cross-link", "", "nothing")


def filled(chance: random.Random, text: str, sequence: str) -> str:
    a, b = sorted(chance.choices(range(1, len(sequence) + 1), k=2))
    names = [name for name, residue in annotated_names() if residue == sequence[a - 1]] or ["Phosphoserine"]
    words = {
        "a": a,
        "b": b,
        "n": len(sequence),
        "m": len(sequence) + 9,
        "name": chance.choice(names),
        "old": sequence[a - 1 : b][:4],
        "new": "".join(chance.choices(RESIDUES, k=chance.randrange(4))),
        "long": "A" * 3000,
        "many": "Phosphoserine; " * 300,
        "wrong": "WWW",
    }
    return text.format(**words)


def broken_text(chance: random.Random, sequence: str) -> str:
    features = ""
    for _ in range(chance.randrange(1, 12)):
        place, note = (filled(chance, chance.choice(some), sequence) for some in (PLACES, NOTES))
        kind = chance.choice(KINDS[:4]) if chance.random() < 0.8 else chance.choice(KINDS)
        features += f"FT   {kind:<15} {place}\n" + (f'FT                   /note="{note}"\n' if chance.random() < 0.9 else "")
    return features


def broken_xml(chance: random.Random, sequence: str) -> str:
    def quoted(text: str) -> str:
        return text.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;").replace("\x00", "")

    features = ""
    for _ in range(chance.randrange(1, 12)):
        note, kind = quoted(filled(chance, chance.choice(NOTES), sequence)), chance.choice(XML_KINDS)
        first, last = (quoted(filled(chance, chance.choice(PLACES), sequence)) for _ in range(2))
        place = chance.choice(
            (
                f'<position position="{first}"/>',
                f'<begin position="{first}"/><end position="{last}"/>',
                f'<begin position="{first}"/>',
                "",
                f'<begin status="unknown"/><end position="{last}"/>',
                f'<position status="less than" position="{first}"/>',
                "<position/>",
            )
        )
        variation = f"<original>{sequence[2:4]}</original>" + f"<variation>{quoted(note[:9])}</variation>" * chance.randrange(3)
        location = f"<location>{place}</location>" * chance.choice((1, 1, 1, 0, 2))
        features += f'<feature type="{kind}" description="{note}">{variation if chance.random() < 0.5 else ""}{location}</feature>'
    return features


def databases(chance: random.Random, sequences: dict[str, str]) -> tuple[str, str]:
    text = "".join(swiss_prot_entry(name, f"{name}_X", sequence, broken_text(chance, sequence)) for name, sequence in sequences.items())
    xml = "".join(
        f'<entry dataset="Swiss-Prot"><accession>{name}</accession><name>{name}_X</name>{broken_xml(chance, sequence)}'
        f'<sequence length="{len(sequence)}">{sequence}</sequence></entry>'
        for name, sequence in sequences.items()
    )
    return text, f'<?xml version="1.0" encoding="UTF-8"?><uniprot xmlns="http://uniprot.org/uniprot">{xml}</uniprot>'


def built(folder: Path, database: Path, *, knows: bool) -> Indexes:
    folder.mkdir()
    settings = IdentificationParameters().changed(
        known_modifications=knows, known_variants=knows, minimum_length=5, maximum_length=20, minimum_mass=100.0, maximum_forms=50
    )
    return build_indexes(
        Databases([database], [], {"database": ["x"]}, None, knows, searched(settings) if knows else None),
        folder,
        settings,
        Resources(2, (), True, Progress()),
    )


def collect_peptides(indexes: Indexes, *, refer_to_proteins: int) -> set[tuple[str, float]]:
    """Return the peptides without known modifications of the first proteins, and their masses."""
    residues = np.asarray(indexes.proteins.proteins.residues).tobytes().decode()
    modifications = indexes.peptides.forms.form
    end = int(indexes.proteins.proteins.offsets[refer_to_proteins])
    results = zip(indexes.peptides.position.tolist(), indexes.peptides.length.tolist(), indexes.peptides.mass.tolist(), strict=True)
    return {
        (residues[start : start + length], round(mass, 5))
        for row, (start, length, mass) in enumerate(results)
        if start < end and (not len(modifications) or not modifications[row])
    }


@pytest.mark.parametrize("seed", range(15))
def test_broken_features_of_a_database_are_skipped(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    sequences = {f"Q0000{i}": "M" + "".join(chance.choices(RESIDUES, k=chance.randrange(12, 90))) for i in range(3)}
    for suffix, text in zip((".dat", ".xml"), databases(chance, sequences), strict=True):
        path = tmp_path / f"database{suffix}"
        path.write_text(text, encoding="utf-8")
        try:
            indexes = built(tmp_path / f"index{suffix}", path, knows=True)
        except ProteoscopeError as error:
            assert path.name in str(error) and "\n" not in str(error)
            continue
        without = built(tmp_path / f"without{suffix}", path, knows=False)
        assert collect_peptides(indexes, refer_to_proteins=3) == collect_peptides(without, refer_to_proteins=3)
        modifications, proteins = indexes.proteins.known_modifications, indexes.proteins.proteins
        if modifications is not None:
            sequence = np.asarray(proteins.residues)[modifications.position].tobytes().decode()
            of_targets = modifications.position < indexes.proteins.first_decoy_residue
            for residue, kind, is_target in zip(sequence, modifications.modification.tolist(), of_targets.tolist(), strict=True):
                residues = modifications.modifications[kind].residues
                assert not is_target or not residues or residue in residues
