"""Calls the kernels that score spectra, with the types of a real search: who needs them compiles them by it.

Only what is compiled together is inlined, so they must not come in pieces: a search that uses some of them compiles all of them first.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from proteoscope import resources

__all__ = ["PROTEIN", "spectrum_of", "use_scoring"]

PROTEIN = ">protein\nMKWVTFISLLLLFSSAYSRGVFRRDTHKSEIAHRFKDLGEEHFKGLVLIAFSQYLQQCPFDEHVK\n"
"""A protein as FASTA."""
_PEPTIDE = "DLGEEHFK"


def spectrum_of(shift: float = 0.0) -> str:
    """The fragments of a peptide of `PROTEIN` as MGF, so that there is a match to measure; its precursor is heavier by `shift` dalton."""
    from proteoscope.engine.chemistry.fragments import fragment_ions
    from proteoscope.engine.chemistry.masses import mz, sequence_mass

    peaks = "".join(f"{one:.5f} 1.5\n" for one in sorted(fragment_ions(_PEPTIDE, maximum_charge=1).mz.tolist()))
    return f"BEGIN IONS\nTITLE=one\nPEPMASS={mz(sequence_mass(_PEPTIDE) + shift, 2):.5f}\nCHARGE=2+\n{peaks}END IONS\n"


def use_scoring(parameters: Any, *, with_index: bool = False) -> None:
    """Identify next to nothing, through the same functions and so with the same types as a real search.

    `parameters` : any that have what decides the index, the preprocessing and the scoring. `with_index` : by an index of fragments.
    """
    from proteoscope.engine.execution.resources import Resources
    from proteoscope.engine.formats import read_proteins, read_spectra
    from proteoscope.engine.matches.fragment_index import FragmentIndexSearch
    from proteoscope.engine.matches.fragment_intensities import MatchColumns, learn_intensities
    from proteoscope.engine.matches.psms import collect_psms
    from proteoscope.engine.matches.scoring import ScoringPass, modification_arrays, scoring_settings
    from proteoscope.engine.peptides.digestion import Digestion
    from proteoscope.engine.peptides.peptide_index import build_peptide_index
    from proteoscope.engine.peptides.protein_index import build_protein_index
    from proteoscope.engine.spectra.spectrum_index import build_spectrum_index

    alone = Resources(threads=1)
    with tempfile.TemporaryDirectory(prefix="proteoscope-compile-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        (folder / "protein.fasta").write_text(PROTEIN, encoding="ascii")
        (folder / "spectrum.mgf").write_text(spectrum_of(), encoding="ascii")
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
        search = ScoringPass(index, arrays, modifications, parameters, alone)
        search.plan()
        if with_index:
            # So small a search is not worth a fragment-ion index.
            settings = scoring_settings(parameters, float(index.arrays.mz.max()))
            FragmentIndexSearch(index, arrays, modifications, settings, alone, 1 << 26).run(search.score())
        else:
            psms = collect_psms(search.run(with_bonds=True), peptides, proteins, ())
            assert psms.bonds is not None
            judged = MatchColumns(psms.charge, psms.peptide_family, psms.score, ~psms.is_decoy)
            model, _ = learn_intensities(psms.bonds, judged, parameters.fragment_tolerance, fewest_peptides=1)
            assert model is not None
            model.features(psms.bonds, psms.charge, psms.peptide_family, alone)
