"""A run of which few spectra were identified: reasons besides its errors, which `proteoscope.engine.identification.few_matches` looks for.

Charges and masses of the precursors are counted. Then some of the spectra are searched for the peptides that other enzymes make of the same
proteins: only where one of them explains far more than the enzyme that was asked for, it is named. It only says what it saw.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.chemistry.masses import ISOTOPE_SPACING
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.files import storage_errors
from proteoscope.engine.identification.few_matches import is_few
from proteoscope.engine.identification.parameters import IdentificationParameters
from proteoscope.engine.identification.passes import Pass, near_isotopes
from proteoscope.engine.matches.psms import search_score
from proteoscope.engine.peptides.digestion import Digestion
from proteoscope.engine.peptides.indexes import Indexes
from proteoscope.engine.peptides.peptide_index import build_peptide_index
from proteoscope.engine.spectra.spectrum_index import SpectrumIndex
from proteoscope.engine.statistics.target_decoy import q_values

__all__ = ["other_enzyme", "precursors_outside", "tell_other_reasons"]

_ENZYMES = ("Trypsin", "Lys-C", "Arg-C", "Asp-N", "glutamyl endopeptidase", "Chymotrypsin")
_MOSTLY = 0.5
_LOOKED_AT = 300
_CONFIDENT, _ENOUGH, _TIMES = 0.05, 15, 3
"""Of another enzyme so many confident matches, and so many times those of the one that was asked for."""
_MAXIMUM_RESIDUES = 12_000_000
"""Of a database, decoys too, that is digested again: about a second for each enzyme."""
_MB = 1_000_000


def tell_other_reasons(
    n_accepted: int, spectra: SpectrumIndex, indexes: Indexes, parameters: IdentificationParameters, folder: Path, resources: Resources
) -> None:
    """Warn of what else may be wrong with a search that identified few spectra. Nothing where it identified enough.

    Parameters
    ----------
    n_accepted : spectra with an accepted match. spectra : as they were searched. folder : for indexes that are made for this.
    """
    if not is_few(n_accepted, spectra, parameters):
        return
    progress = resources.progress
    for text in (precursors_outside(spectra, parameters), other_enzyme(spectra, indexes, parameters, folder, resources)):
        if text:
            progress.message(text, "warning")
    if not parameters.contaminants:
        progress.message("No contaminants were searched: trypsin, keratins and albumin may be what the spectra are of", "warning")


def precursors_outside(spectra: SpectrumIndex, parameters: IdentificationParameters) -> str:
    """What charges and masses of the precursors say, where most of them are not those of the peptides that are searched; else nothing."""
    charge, mass = spectra.queries.charge, spectra.queries.mass
    if not len(charge):
        return ""
    # Of spectra without a charge several are tried: only what no try is of counts.
    n = spectra.n_searched
    beyond = (mass < parameters.minimum_mass) | (mass > parameters.maximum_mass)
    n_within = len(np.unique(spectra.queries.spectrum[~beyond]))
    if n - n_within > _MOSTLY * n:
        return (
            f"{n - n_within:,} of {n:,} precursors weigh less than {parameters.minimum_mass:g} Da or more than "
            f"{parameters.maximum_mass:g} Da, and no such peptide is searched: check the charges in the file, and minimum_mass and "
            "maximum_mass"
        )
    n_single = len(np.unique(spectra.queries.spectrum[charge == 1]))
    if n_single > _MOSTLY * n and parameters.minimum_charge > 1:
        return f"{n_single:,} of {n:,} precursors are singly charged, as of MALDI or of small molecules: are the charges in the file right?"
    return ""


def other_enzyme(spectra: SpectrumIndex, indexes: Indexes, parameters: IdentificationParameters, folder: Path, resources: Resources) -> str:
    """Another enzyme whose peptides explain far more of the spectra, told; nothing where there is none, or the database is too large."""
    proteins = indexes.proteins
    if parameters.specificity == "non-specific" or len(proteins.proteins.residues) > _MAXIMUM_RESIDUES:
        return ""
    quick = parameters.changed(
        variable_modifications=(), hits_per_spectrum=1, predicted_intensities=False, isotope_errors=near_isotopes(parameters)
    )
    numbers = np.unique(spectra.queries.spectrum)
    some = spectra.only(numbers[:: max(1, -(-len(numbers) // _LOOKED_AT))])
    resources.progress.stage("Trying other enzymes")
    usual = _n_confident(some, indexes, quick, resources)
    windows = _windows(some, quick)
    maximum_mass = max(quick.minimum_mass, min(quick.maximum_mass, float(windows.max())))
    found: dict[str, int] = {}
    for name in _ENZYMES:
        if name == parameters.enzyme:
            continue
        digestion = replace(Digestion.of(quick.changed(enzyme=name), "specific"), maximum_mass=maximum_mass)
        with storage_errors(folder, only_disk=True), tempfile.TemporaryDirectory(prefix="enzyme-", dir=folder) as own:
            memory_bytes = parameters.index_memory * _MB
            peptides = build_peptide_index(Path(own), proteins, digestion, resources, memory_bytes=memory_bytes, windows=windows)
            found[name] = _n_confident(some, Indexes(proteins, peptides), quick, resources)
    best = max(found, key=lambda name: found[name])
    if found[best] < max(_ENOUGH, _TIMES * usual):
        return ""
    return (
        f"Of {some.n_searched:,} spectra {found[best]:,} match well with peptides that {best} makes, and {usual:,} with those of "
        f"{parameters.enzyme}: set enzyme to {best}"
    )


def _windows(spectra: SpectrumIndex, parameters: IdentificationParameters) -> NDArray[np.float64]:
    """(k, 2) float64, dalton: where peptides of the spectra may lie, as the scoring looks for them."""
    masses = [spectra.queries.mass - error * ISOTOPE_SPACING for error in parameters.isotope_errors]
    return np.column_stack(parameters.precursor_tolerance.bounds(np.concatenate(masses)))


def _n_confident(spectra: SpectrumIndex, indexes: Indexes, parameters: IdentificationParameters, resources: Resources) -> int:
    """How many of the spectra match targets, at 5 % by decoys."""
    search = Pass(spectra, indexes, (), parameters, resources)
    search.plan()
    psms = search.score()
    rates = q_values(search_score(psms), psms.is_decoy, decoy_ratio=psms.decoy_ratio)
    return int(np.count_nonzero((rates <= _CONFIDENT) & ~psms.is_decoy))
