"""Estimated workload of a spectral library search, from its request."""

from proteoscope.engine.entry import SearchRequest
from proteoscope.engine.estimates import LOCALISE_SECONDS, Expectation, ExpectedWork
from proteoscope.engine.execution.cost.parameters import WorkSize
from proteoscope.engine.formats.sizes import input_size
from proteoscope.engine.library_search.parameters import LibrarySearchParameters
from proteoscope.engine.library_search.scoring import KIND

__all__ = ["estimate_workload"]

_READ, _INDEX, _PREPARE, _REPORT = 1.4e-8, 6e-8, 3e-5, 2e-4  # s per byte of spectra, per byte of libraries, and per spectrum in two steps
_BYTES_OF_ENTRY, _PEAKS, _SPREAD = 4000.0, 60.0, 1200.0  # the last: m/z range of most entries
_USUAL_MASS, _CROWDED = 1000.0, 8.0  # masses cluster around whole numbers


def estimate_workload(request: SearchRequest) -> Expectation:
    """Return the estimated workload of a request (see `proteoscope.engine.estimates`)."""
    parameters = request.parameters_as(LibrarySearchParameters)
    spectra, library = input_size(request.files("spectra")), input_size(request.files("library"))
    n, entries = spectra.records, library.unpacked / _BYTES_OF_ENTRY
    width = 2.0 * float(parameters.precursor_tolerance.width(_USUAL_MASS))
    pairs = n * 2.0 * entries * min(1.0, width * (1.0 if parameters.is_open else _CROWDED) / _SPREAD)
    peaks = pairs * _PEAKS * (2.0 if parameters.is_open else 1.0)

    size = WorkSize(peaks, int(n), 2 * 6 * _PEAKS * entries + 6 * n * _PEAKS, 20.0 * n)
    host = {
        "read": spectra.unpacked * _READ,
        "index": library.unpacked * _INDEX,
        "plan": n * _PREPARE,
        "localise": n * LOCALISE_SECONDS * bool(request.files("database")),
        "report": n * _REPORT,
    }
    counts = {"spectra": n, "entries": entries, "candidates": pairs}
    return Expectation((ExpectedWork(KIND, lambda gpu: size),), host, counts, 3 * library.unpacked + 2 * spectra.unpacked)
