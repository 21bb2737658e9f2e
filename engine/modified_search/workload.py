"""Estimated workload of an open modification search, from its request."""

from pathlib import Path

from proteoscope.engine.entry import SearchRequest
from proteoscope.engine.estimates import LOCALISE_SECONDS, Expectation, ExpectedWork
from proteoscope.engine.execution.cost.parameters import WorkSize
from proteoscope.engine.execution.workload import GpuShape
from proteoscope.engine.formats.sizes import InputSize, input_size
from proteoscope.engine.matches.workload import estimate_peptides
from proteoscope.engine.modified_search.candidate_search import KIND
from proteoscope.engine.modified_search.parameters import ModifiedSearchParameters, shift_range

__all__ = ["estimate_workload"]

_READ, _INDEX, _PREPARE, _RANK, _REPORT = 1.4e-8, 4e-7, 6e-5, 1.2e-3, 1.1e-4  # s per byte, per peptide, and per spectrum in three steps
_SPREAD, _HEAVIEST = 2500.0, 5000.0  # Da: mass range of most peptides; heaviest peptide
_PEAKS, _LENGTH = 60.0, 13.0
_USUAL_SPECTRA = 10_000.0


def estimate_workload(request: SearchRequest) -> Expectation:
    """Return the estimated workload of a request (see `proteoscope.engine.estimates`)."""
    parameters = request.parameters_as(ModifiedSearchParameters)
    files = request.files("spectra")
    spectra = input_size(files) if files else InputSize(records=_USUAL_SPECTRA)
    database = input_size([*request.files("database"), *(Path(contaminant) for contaminant in parameters.contaminants)])
    peptides, n = estimate_peptides(database, parameters), spectra.records
    low, high = shift_range(parameters.mass_shift)
    inside = peptides * min(1.0, (high - low) / _SPREAD)
    masses = peptides * (_LENGTH - 1)

    def size(gpu: GpuShape | None) -> WorkSize:
        units = _HEAVIEST / parameters.mass_unit
        met = n * inside * (_LENGTH - 1) * 4.0 * _PEAKS / units
        return WorkSize(met + masses, int(n), 4 * masses + 12 * peptides + 8 * n * _PEAKS, 12.0 * n * parameters.candidates)

    host = {
        "read": spectra.unpacked * _READ,
        "index": peptides * _INDEX,
        "plan": n * _PREPARE,
        "score": n * _RANK,
        "localise": n * LOCALISE_SECONDS,
        "report": n * _REPORT,
    }
    counts = {"spectra": n, "residues": database.residues, "peptides": peptides, "candidates": n * inside}
    memory = min(16 * masses, parameters.index_memory * 1e6) + 2 * spectra.unpacked + 60 * peptides
    return Expectation((ExpectedWork(KIND, size),), host, counts, memory)
