"""Estimated workload of a quantification, computed from the project's records and file sizes."""

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from proteoscope.engine.entry import SearchRequest
from proteoscope.engine.errors import InputError, ParameterError
from proteoscope.engine.estimates import Expectation, read_counts
from proteoscope.engine.project import Project
from proteoscope.engine.quantification.identified import sources
from proteoscope.engine.quantification.labels import label
from proteoscope.engine.quantification.parameters import QuantificationParameters
from proteoscope.engine.spectra.spooling import MAXIMUM_BYTES_IN_MEMORY

__all__ = ["estimate_workload"]

_USUAL_SPECTRA = 5000.0
_PSM, _BYTE = 2e-5, 2.5e-8  # s per PSM and per byte
_ALIGNMENT = 1.0  # s for the alignment of the times of several files
_BASE_BYTES, _BYTES_OF_PSM, _BYTES_OF_PEPTIDE = 2e8, 150.0, 1000.0  # benchmarks: results/quantified_runs.jsonl
_TABLES_OF_PEPTIDES = ((8, 3), (4, 2), (1, 3))
"""Bytes of a value, and number of tables: quantities of ions, peptidoforms and peptides, numbers of their PSMs, and their states."""
_BYTES_OF_PROTEIN = 60.0
"""Bytes of a protein in a sample: quantities, their logarithms and states, and numbers of PSMs and peptides."""
_NEW_PEPTIDES, _NEW_PROTEINS = (1.0, 0.01), (0.25, 0.002)
"""New peptides and proteins, as fractions of those of a run: for each doubling of the number of runs, and wrong ones of each run."""


def estimate_workload(request: SearchRequest) -> Expectation:
    """Return the estimated workload of a request (see `proteoscope.engine.estimates`).

    Raises
    ------
    InputError
        If the folder is not a project.
    """
    parameters, folder = request.parameters_as(QuantificationParameters), request.files("project")[0]
    project, spectra, sizes, tables = Project.open(folder), _USUAL_SPECTRA, [0], 0.0
    with suppress(InputError, ParameterError):  # the search itself reports the error
        result = sources(folder, parameters.run)
        counts = [read_counts(project.record(run.run)) for run in result.runs]
        spectra = sum(of_run.get("psms", _USUAL_SPECTRA) for of_run in counts)
        n_channels = len(label(parameters.label)) if parameters.method == "tmt" else 1
        tables = _table_bytes(counts, len(result.files) * n_channels)
        paths = [Path(file.path) for file in result.files] if parameters.method != "counts" else []
        sizes += [path.stat().st_size for path in paths if path.exists()]
    alignment = _ALIGNMENT if len(sizes) > 2 else 0.0
    host = {"read": 0.2 + spectra * _PSM, "score": sum(sizes) * _BYTE + alignment, "report": 0.1 + spectra * _PSM}
    # Files are read one after the other.
    return Expectation((), host, {"spectra": spectra}, _BASE_BYTES + tables + max(sizes) / 4)


def _table_bytes(counts: Sequence[Mapping[str, float]], n_samples: int) -> float:
    """Return the expected memory of the PSMs, and of the tables of peptides and proteins by sample, given the counts of the runs.

    Most peptides are the same in all runs. Their number grows with the logarithm of the number of runs, and wrong ones add up.
    """

    def n_items(name: str, new: tuple[float, float]) -> float:
        of_runs = [of_run.get(name, _USUAL_SPECTRA) for of_run in counts]
        return min(sum(of_runs), max(of_runs) * (1 + new[0] * math.log2(len(of_runs))) + new[1] * sum(of_runs))

    n_peptides, n_proteins = n_items("peptides", _NEW_PEPTIDES), n_items("proteins", _NEW_PROTEINS)
    by_sample = sum(n * min(n_peptides * n_samples * width, MAXIMUM_BYTES_IN_MEMORY) for width, n in _TABLES_OF_PEPTIDES)
    n_psms = sum(of_run.get("psms", _USUAL_SPECTRA) for of_run in counts)
    return n_psms * _BYTES_OF_PSM + n_peptides * _BYTES_OF_PEPTIDE + by_sample + n_proteins * n_samples * _BYTES_OF_PROTEIN
