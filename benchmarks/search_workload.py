"""Workloads of real spectra and sequences for timing the scoring kernels."""

from __future__ import annotations

import gzip
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from proteoscope.engine.chemistry.enzymes import enzyme
from proteoscope.engine.chemistry.modifications import parse_modification
from proteoscope.engine.execution.resources import Resources, available_threads
from proteoscope.engine.formats import read_proteins, read_spectra
from proteoscope.engine.identification.parameters import IdentificationParameters
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.matches.scoring_settings import modification_arrays, scoring_settings
from proteoscope.engine.parameters import read_preset
from proteoscope.engine.peptides.digestion import Digestion
from proteoscope.engine.peptides.peptide_index import build_peptide_index
from proteoscope.engine.peptides.protein_index import build_protein_index
from proteoscope.engine.spectra.spectrum_index import SpectrumIndex, build_spectrum_index
from proteoscope.kernels.layouts import ModificationArrays, PeptideArrays, ScoringSettings

__all__ = ["Workload", "peptides_of", "preset", "search_workload"]


@dataclass(frozen=True)
class Workload:
    """Inputs of the kernels; `n_spectra` is the number of spectra read."""

    parameters: IdentificationParameters
    index: SpectrumIndex
    peptides: PeptideArrays
    modifications: ModificationArrays
    settings: ScoringSettings
    n_spectra: int


def _unpacked(path: Path, folder: Path, repeats: int = 1) -> Path:
    """Return the file itself, or a decompressed copy in `folder` with repeated content."""
    if path.suffix != ".gz" and repeats == 1:
        return path
    copy = folder / path.name.removesuffix(".gz")
    content = path.read_bytes()
    copy.write_bytes((gzip.decompress(content) if path.suffix == ".gz" else content) * repeats)
    return copy


def peptides_of(database: Path, parameters: IdentificationParameters) -> PeptideArrays:
    """Return the peptide dictionary of a FASTA file with reversed decoys, in memory."""
    agent = enzyme(parameters.enzyme)
    digestion = Digestion(
        agent,
        2,
        parameters.missed_cleavages,
        parameters.minimum_length,
        parameters.maximum_length,
        parameters.clip_methionine,
        parameters.minimum_mass,
        parameters.maximum_mass,
        tuple(parse_modification(name) for name in parameters.fixed_modifications),
    )
    with tempfile.TemporaryDirectory(prefix="proteoscope-workload-") as name:
        folder = Path(name)
        proteins = build_protein_index(
            folder,
            read_proteins([_unpacked(database, folder)]),
            database=str(database),
            decoys="reverse",
            decoy_prefix="DECOY_",
            cleaves=agent.cleavage_table(),
        )
        peptides = build_peptide_index(folder, proteins, digestion, Resources(), memory_bytes=8 << 30).arrays(proteins)
        return PeptideArrays(*(np.array(column) if isinstance(column, np.ndarray) else column for column in peptides))


def search_workload(spectra: Path, repeats: int, peptides: PeptideArrays, parameters: IdentificationParameters) -> Workload:
    """Return spectra, each `repeats` times (more than once only from peak lists), against a dictionary."""
    with tempfile.TemporaryDirectory(prefix="proteoscope-workload-") as name:
        read = read_spectra([_unpacked(spectra, Path(name), repeats)], progress=Progress(), strict=True, threads=available_threads())
    index = build_spectrum_index(read, parameters, Resources(available_threads()))
    modifications = modification_arrays(
        tuple(parse_modification(variable_modification) for variable_modification in parameters.variable_modifications), parameters
    )
    settings = scoring_settings(parameters, index.series, float(index.arrays.mz.max(initial=0.0)))
    return Workload(parameters, index, peptides, modifications, settings, len(read))


def preset(name: str, **values: object) -> IdentificationParameters:
    """Return the parameters of a preset, some changed."""
    return IdentificationParameters.checked(read_preset("identify", name) | values)
