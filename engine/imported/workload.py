"""Estimated time and memory of importing results, from the request."""

from proteoscope.engine.entry import SearchRequest
from proteoscope.engine.estimates import LOCALISE_SECONDS, Expectation
from proteoscope.engine.formats.sizes import input_size

__all__ = ["estimate_workload"]

_RESULT_BYTE, _SPECTRUM_BYTE, _PROTEIN_BYTE = 1.2e-7, 1.4e-8, 2e-8  # s per byte
_BYTES_OF_MATCH = 1200.0
_REPORT = 9e-5  # s per match


def estimate_workload(request: SearchRequest) -> Expectation:
    """Return the estimated workload, which runs on the CPU only (see `proteoscope.engine.estimates`)."""
    results, spectra, proteins = (input_size(request.files(name)) for name in ("results", "spectra", "database"))
    matches = results.unpacked / _BYTES_OF_MATCH
    host = {
        "read": results.unpacked * _RESULT_BYTE + spectra.unpacked * _SPECTRUM_BYTE,
        "index": proteins.unpacked * _PROTEIN_BYTE,
        "localise": matches * LOCALISE_SECONDS * bool(request.files("database") and request.files("spectra")),
        "report": matches * _REPORT,
    }
    counts = {"matches": matches, "spectra": spectra.records, "proteins": proteins.records}
    return Expectation((), host, counts, 4 * results.unpacked + 2 * spectra.unpacked + 2 * proteins.unpacked)
