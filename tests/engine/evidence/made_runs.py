"""Runs on spectra that are made of peptides of known proteins, some of whose residues carry something: nobody measured these.

Intensities are those of the model that ships, so that a search of them shows where peptides and sites are put, and nothing of how many
of a sample are found.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.made_spectra import made_spectrum
from proteoscope import resources
from proteoscope.engine.chemistry.enzymes import digest, enzyme
from proteoscope.engine.chemistry.modifications import unimod
from proteoscope.engine.matches.fragment_intensities import load_network

__all__ = ["MadeRun", "Planted", "make_run"]

_LENGTHS = 8, 22
_STANDARD = set("ADEFGHIKLMNPQRSTVWYC")


class Planted(NamedTuple):
    """A peptide whose spectrum was made: where it lies (from 0), and what residue `site` of the protein (from 0) carries, -1: none."""

    protein: str
    sequence: str
    start: int
    site: int
    name: str


class MadeRun(NamedTuple):
    """Files of spectra and proteins, and by the title of each spectrum what it is of."""

    spectra: Path
    database: Path
    planted: dict[str, Planted]


def make_run(
    folder: Path, proteins: Mapping[str, str], carried: Mapping[str, str], seed: int, every: int = 1, share: float = 0.3
) -> MadeRun:
    """Write spectra of the tryptic peptides of proteins, one in `every` of them, and their database.

    Parameters
    ----------
    carried : names in Unimod with the residues that may carry them; of the peptides that can, a `share` carries one of them.
    """
    generator = np.random.default_rng(seed)
    network = load_network(resources.path("fragmentation", "intensities.npz"))
    planted: dict[str, Planted] = {}
    texts = []
    for protein, residues in proteins.items():
        for span in digest(residues, enzyme("Trypsin"), minimum_length=_LENGTHS[0], maximum_length=_LENGTHS[1])[::every]:
            sequence = residues[span.start : span.stop]
            if not set(sequence) <= _STANDARD:
                continue
            shift, site, name = np.zeros(len(sequence)), -1, ""
            possible = [(one, k) for one, letters in carried.items() for k, letter in enumerate(sequence[:-1]) if letter in letters]
            if possible and generator.random() < share:
                name, k = possible[int(generator.integers(len(possible)))]
                site, shift[k] = span.start + k, unimod().by_name(name).mass
            number = len(planted)
            texts.append(made_spectrum(network, number, sequence, 2, shift, generator))
            planted[str(number)] = Planted(protein, sequence, span.start, site, name)
    database, spectra = folder / "proteins.fasta", folder / "made.mgf"
    database.write_text("".join(f">{name} made\n{residues}\n" for name, residues in proteins.items()))
    spectra.write_text("".join(texts))
    return MadeRun(spectra, database, planted)
