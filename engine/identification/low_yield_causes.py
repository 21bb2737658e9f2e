"""Causes of few identifications other than tolerances (see `proteoscope.engine.identification.low_yield` for tolerances).

Precursors with unusual charges and masses are counted. A sample of the spectra is searched for other ion series, and for peptides that
other enzymes generate from the same proteins; these causes are reported only if they explain far more spectra than the requested settings.
"""

import tempfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.chemistry.masses import ISOTOPE_SPACING
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.files import storage_errors
from proteoscope.engine.identification.low_yield import LowYieldRun
from proteoscope.engine.identification.parameters import IdentificationParameters
from proteoscope.engine.identification.passes import quick_matches, quick_parameters
from proteoscope.engine.jobs.progress import LimitedProgress, TimeOverError
from proteoscope.engine.peptides.digestion import Digestion
from proteoscope.engine.peptides.indexes import Indexes
from proteoscope.engine.peptides.peptide_index import build_peptide_index
from proteoscope.engine.spectra.spectrum_index import SpectrumIndex

__all__ = ["find_better_enzyme", "find_better_series", "find_unusual_precursors"]

_SERIES = ("by", "cz", "bycz")
_ENZYMES = ("Trypsin", "Lys-C", "Arg-C", "Asp-N", "glutamyl endopeptidase", "Chymotrypsin")
_MOSTLY = 0.5
_MAXIMUM_PROBED = 300
_CONFIDENT, _ENOUGH, _TIMES = 0.05, 15, 3
"""q-value of confident matches; for advice, their minimum number and minimum ratio to those with the requested settings."""
_MAXIMUM_RESIDUES = 12_000_000
"""Maximum number of residues, with decoys, of a database that is digested with other enzymes."""
_RESIDUES_PER_SECOND = 12e6
"""Approximate number of residues per second in digesting and searching a database for one enzyme."""
_MB = 1_000_000


def find_unusual_precursors(run: LowYieldRun) -> str:
    """Return a sentence if most precursors have charges or masses that were not searched; otherwise ''."""
    spectra, parameters = run.spectra, run.parameters
    charge, mass = spectra.queries.charge, spectra.queries.mass
    if not len(charge):
        return ""
    # Spectra without a charge have queries with several charges; a spectrum is outside only if all its queries are.
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


def _probe(spectra: SpectrumIndex, parameters: IdentificationParameters) -> tuple[IdentificationParameters, SpectrumIndex]:
    """Return the parameters of a probe search, and a sample of the spectra."""
    numbers = np.unique(spectra.queries.spectrum)
    return quick_parameters(parameters), spectra.only(numbers[:: max(1, -(-len(numbers) // _MAXIMUM_PROBED))])


def find_better_series(run: LowYieldRun, resources: Resources, limit: LimitedProgress) -> str:
    """Return a sentence that names ion series which explain far more spectra than the searched series; '' for none.

    Raises
    ------
    TimeOverError
        If the time ended before all ion series were tried.
    Cancelled
        If the user cancelled.
    """
    used = run.spectra.ion_series.symbols
    others = [series for series in _SERIES if [set(series)] != list(map(set, used))]
    if not others:
        return ""
    quick, some = _probe(run.spectra, run.parameters)
    limit.stage("Trying other ion series")
    usual = _count_confident(some, run.indexes, quick, resources)
    result = {series: _count_confident(some.with_series(series), run.indexes, quick, resources) for series in others}
    best = max(others, key=lambda series: result[series])
    if result[best] < max(_ENOUGH, _TIMES * usual):
        return ""
    return (
        f"Of {some.n_searched:,} spectra {result[best]:,} match well with the ions {', '.join(best)}, and {usual:,} with "
        f"{' or '.join(map(', '.join, used))}: set ion_series to {best}"
    )


def find_better_enzyme(run: LowYieldRun, resources: Resources, limit: LimitedProgress) -> str:
    """Return a sentence that names an enzyme whose peptides explain far more spectra than those of the requested enzyme; '' for none.

    Databases that are too large are not searched.

    Raises
    ------
    TimeOverError
        If the time ended before such an enzyme was found.
    Cancelled
        If the user cancelled.
    """
    indexes, parameters, spectra = run.indexes, run.parameters, run.spectra
    proteins = indexes.proteins
    if parameters.specificity == "non-specific" or len(proteins.proteins.residues) > _MAXIMUM_RESIDUES:
        return ""
    quick, some = _probe(spectra, parameters)
    limit.stage("Trying other enzymes")
    if limit.seconds_left < len(proteins.proteins.residues) / _RESIDUES_PER_SECOND:
        raise TimeOverError
    usual = _count_confident(some, indexes, quick, resources)
    windows = _windows(some, quick)
    maximum_mass = max(quick.minimum_mass, min(quick.maximum_mass, float(windows.max())))
    result, others = dict[str, int](), [name for name in _ENZYMES if name != parameters.enzyme]
    with suppress(TimeOverError):
        for name in others:
            digestion = replace(Digestion.from_settings(quick.changed(enzyme=name), "specific"), maximum_mass=maximum_mass)
            with storage_errors(run.folder, only_disk=True), tempfile.TemporaryDirectory(prefix="enzyme-", dir=run.folder) as folder:
                memory_bytes = parameters.index_memory * _MB
                peptides = build_peptide_index(Path(folder), proteins, digestion, resources, memory_bytes=memory_bytes, windows=windows)
                result[name] = _count_confident(some, Indexes(proteins, peptides), quick, resources)
    best = max(result, key=lambda name: result[name], default="")
    if not best or result[best] < max(_ENOUGH, _TIMES * usual):
        if len(result) < len(others):
            raise TimeOverError
        return ""
    return (
        f"Of {some.n_searched:,} spectra {result[best]:,} match well with peptides that {best} makes, and {usual:,} with those of "
        f"{parameters.enzyme}: set enzyme to {best}"
    )


def _windows(spectra: SpectrumIndex, parameters: IdentificationParameters) -> NDArray[np.float64]:
    """Return the precursor windows in which peptides are scored, (k, 2) float64, Da."""
    masses = [spectra.queries.mass - error * ISOTOPE_SPACING for error in parameters.isotope_errors]
    return np.column_stack(parameters.precursor_tolerance.bounds(np.concatenate(masses)))


def _count_confident(spectra: SpectrumIndex, indexes: Indexes, parameters: IdentificationParameters, resources: Resources) -> int:
    """Count the spectra with a target match at 5 % FDR."""
    return int(np.count_nonzero(~quick_matches(spectra, indexes, parameters, resources, _CONFIDENT).is_decoy))
