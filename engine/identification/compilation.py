"""The kernels of an identification: those of every search, and apart from them, since most users never need it, those of wide windows."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import resources
from engine.execution.compilation import Kernels

__all__ = ["FRAGMENT_INDEX", "SCORING"]

_PROTEIN = ">protein\nMKWVTFISLLLLFSSAYSRGVFRRDTHKSEIAHRFKDLGEEHFKGLVLIAFSQYLQQCPFDEHVK\n"
_PEPTIDE = "DLGEEHFK"


def _last_of_scoring() -> Callable[..., Any]:
    from kernels.cpu.fragment_intensities import compare_intensities

    return compare_intensities


def _last_of_index() -> Callable[..., Any]:
    from kernels.cpu.candidates import score_candidates

    return score_candidates


def _spectrum() -> str:
    """The peptide's fragments as MGF, so that there is a match to measure."""
    from engine.chemistry.fragments import fragment_ions
    from engine.chemistry.masses import mz, sequence_mass

    peaks = "".join(f"{one:.5f} 1.5\n" for one in sorted(fragment_ions(_PEPTIDE, max_charge=1).mz.tolist()))
    return f"BEGIN IONS\nTITLE=one\nPEPMASS={mz(sequence_mass(_PEPTIDE), 2):.5f}\nCHARGE=2+\n{peaks}END IONS\n"


def _use(*, with_index: bool) -> None:
    """Identify next to nothing, through the same functions and so with the same types as a real search."""
    from engine.execution.resources import Resources
    from engine.formats import read_proteins, read_spectra
    from engine.identification.parameters import IdentificationParameters
    from engine.matches.fragment_index import FragmentSearch
    from engine.matches.fragment_intensities import Judged, intensity_features
    from engine.matches.psms import collect_psms
    from engine.matches.scoring import Search, modification_arrays, scoring_settings
    from engine.peptides.digestion import Digestion
    from engine.peptides.peptide_index import build_peptide_index
    from engine.peptides.protein_index import build_protein_index
    from engine.spectra.spectrum_index import build_spectrum_index

    parameters, alone = IdentificationParameters(), Resources(threads=1)
    with tempfile.TemporaryDirectory(prefix="proteoscope-compile-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        (folder / "protein.fasta").write_text(_PROTEIN, encoding="ascii")
        (folder / "spectrum.mgf").write_text(_spectrum(), encoding="ascii")
        read_spectra([resources.path("samples", "Ecoli_MS2_small.mzML.gz")], threads=1)
        spectra = read_spectra([folder / "spectrum.mgf"], threads=1)
        digestion = Digestion.of(parameters, parameters.specificity)
        proteins = build_protein_index(
            folder,
            read_proteins([folder / "protein.fasta"]),
            database="protein.fasta",
            decoys=parameters.decoys,
            decoy_prefix=parameters.decoy_prefix,
            cleaves=digestion.enzyme.cleavage_table(),
        )
        peptides = build_peptide_index(folder, proteins, digestion, alone, memory_bytes=1 << 26)
        index = build_spectrum_index(spectra, parameters, alone)
        arrays, modifications = peptides.arrays(proteins), modification_arrays((), parameters)
        search = Search(index, arrays, modifications, parameters, alone)
        search.plan()
        if with_index:
            # So small a search is not worth a fragment-ion index.
            settings = scoring_settings(parameters, float(index.arrays.mz.max()))
            FragmentSearch(index, arrays, modifications, settings, alone, 1 << 26).run(search.score())
        else:
            psms = collect_psms(search.run(with_bonds=True), peptides, proteins, ())
            assert psms.bonds is not None
            judged = Judged(psms.charge, psms.peptide_family, psms.score, ~psms.is_decoy)
            intensity_features(psms.bonds, judged, parameters.fragment_tolerance, alone, fewest_peptides=1)


SCORING = Kernels("kernels", _last_of_scoring, partial(_use, with_index=False))
FRAGMENT_INDEX = Kernels("fragment index", _last_of_index, partial(_use, with_index=True))
"""Comes after `SCORING`, whose kernels must not come in pieces."""
