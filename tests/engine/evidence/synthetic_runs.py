"""Synthetic runs: spectra of peptides of given proteins, some with a modified residue.

Intensities are those of the model that ships with the program. Searches of these spectra test where peptides and sites are mapped, not
how much of a real sample is identified.
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

__all__ = ["Planted", "SyntheticRun", "write_run"]

_LENGTHS = 8, 22
_STANDARD = set("ADEFGHIKLMNPQRSTVWYC")


class Planted(NamedTuple):
    """The peptide of a synthetic spectrum: start and modified residue (`site`) in the protein, from 0; a site of -1 if unmodified."""

    protein: str
    sequence: str
    start: int
    site: int
    name: str


class SyntheticRun(NamedTuple):
    """Files of spectra and proteins, and the planted peptide of each spectrum by title."""

    spectra: Path
    database: Path
    planted: dict[str, Planted]


def write_run(
    folder: Path, proteins: Mapping[str, str], carried: Mapping[str, str], seed: int, every: int = 1, share: float = 0.3
) -> SyntheticRun:
    """Write spectra of the tryptic peptides of proteins and their database.

    Parameters
    ----------
    carried : residues that may carry a modification, by its name in Unimod.
    every : use every n-th peptide.
    share : share of the peptides with a suitable residue that carry a modification.
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
            possible = [
                (modification, k)
                for modification, residues in carried.items()
                for k, residue in enumerate(sequence[:-1])
                if residue in residues
            ]
            if possible and generator.random() < share:
                name, k = possible[int(generator.integers(len(possible)))]
                site, shift[k] = span.start + k, unimod().by_name(name).mass
            number = len(planted)
            texts.append(made_spectrum(network, number, sequence, 2, shift, generator))
            planted[str(number)] = Planted(protein, sequence, span.start, site, name)
    database, spectra = folder / "proteins.fasta", folder / "made.mgf"
    database.write_text("".join(f">{name} made\n{residues}\n" for name, residues in proteins.items()))
    spectra.write_text("".join(texts))
    return SyntheticRun(spectra, database, planted)
