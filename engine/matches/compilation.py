"""Calls the kernels that score spectra, with the types of a real search: who needs them compiles them by it.

Only what is compiled together is inlined, so they must not come in pieces: a search that uses some of them compiles all of them first.
"""

from __future__ import annotations

from typing import Any

from proteoscope import resources
from proteoscope.engine import chemistry, execution, formats, matches
from proteoscope.engine import peptides as peptides_package
from proteoscope.engine import spectra as spectra_package
from proteoscope.engine.files import scratch_folder

__all__ = ["PROTEIN", "spectrum_of", "use_scoring"]

PROTEIN = ">protein\nMKWVTFISLLLLFSSAYSRGVFRRDTHKSEIAHRFKDLGEEHFKGLVLIAFSQYLQQCPFDEHVK\n"
"""A protein as FASTA."""
_PEPTIDE = "DLGEEHFK"


def spectrum_of(shift: float = 0.0) -> str:
    """The fragments of a peptide of `PROTEIN` as MGF, so that there is a match to measure; its precursor is heavier by `shift` dalton."""
    peaks = "".join(f"{one:.5f} 1.5\n" for one in sorted(chemistry.fragments.fragment_ions(_PEPTIDE, maximum_charge=1).mz.tolist()))
    precursor_mz = chemistry.masses.mz(chemistry.masses.sequence_mass(_PEPTIDE) + shift, 2)
    return f"BEGIN IONS\nTITLE=one\nPEPMASS={precursor_mz:.5f}\nCHARGE=2+\n{peaks}END IONS\n"


def use_scoring(parameters: Any, *, with_index: bool = False) -> None:
    """Identify next to nothing, through the same functions and so with the same types as a real search.

    `parameters` : any that have what decides the index, the preprocessing and the scoring. `with_index` : by an index of fragments.
    """
    alone = execution.resources.Resources(threads=1)
    with scratch_folder() as folder:
        (folder / "protein.fasta").write_text(PROTEIN, encoding="ascii")
        (folder / "spectrum.mgf").write_text(spectrum_of(), encoding="ascii")
        formats.read_spectra([resources.path("samples", "Ecoli_MS2_small.mzML.gz")], threads=1)
        spectra = formats.read_spectra([folder / "spectrum.mgf"], threads=1)
        digestion = peptides_package.digestion.Digestion.of(parameters, parameters.specificity)
        proteins = peptides_package.protein_index.build_protein_index(
            folder,
            formats.read_proteins([folder / "protein.fasta"]),
            database="protein.fasta",
            decoys=parameters.decoys,
            decoy_prefix=parameters.decoy_prefix,
            cleaves=digestion.enzyme.cleavage_table(),
        )
        peptides = peptides_package.peptide_index.build_peptide_index(folder, proteins, digestion, alone, memory_bytes=1 << 26)
        index = spectra_package.spectrum_index.build_spectrum_index(spectra, parameters, alone)
        arrays, modifications = peptides.arrays(proteins), matches.scoring_settings.modification_arrays((), parameters)
        search = matches.scoring.plan_scoring(index, arrays, modifications, parameters, alone)
        if with_index:
            # So small a search is not worth a fragment-ion index.
            settings = matches.scoring_settings.scoring_settings(parameters, index.series, float(index.arrays.mz.max()))
            matches.fragment_index.FragmentIndexSearch(index, arrays, modifications, settings, alone, 1 << 26).run(search.score())
        else:
            psms = matches.psms.collect_psms(search.run(with_bonds=True), peptides, proteins, ())
            assert psms.bonds is not None
            judged = matches.fragment_intensities.MatchColumns(psms.charge, psms.peptide_family, psms.score, ~psms.is_decoy)
            model, _ = matches.fragment_intensities.learn_intensities(psms.bonds, judged, parameters.fragment_tolerance, fewest_peptides=1)
            assert model is not None
            model.features(psms.bonds, psms.charge, psms.peptide_family, alone)
