"""What explaining the unidentified spectra of a project takes, told by its records."""

from __future__ import annotations

from proteoscope.engine.clustering.parameters import ExplanationParameters
from proteoscope.engine.entry import SearchRequest
from proteoscope.engine.estimates import Expectation
from proteoscope.engine.matches.recorded_counts import recorded_counts
from proteoscope.engine.project import Project

__all__ = ["expected"]

_SPECTRUM, _PSM, _COMPARED = 6e-5, 4e-5, 2e-5  # seconds of a spectrum, of a PSM, of a spectrum that is compared
_USUAL_SPECTRA = 20_000.0
_BYTES = 4000.0


def expected(request: SearchRequest) -> Expectation:
    """See `proteoscope.engine.estimates`; the processor does it all.

    Raises
    ------
    InputError : the folder is no project.
    """
    (folder,) = request.files("project")[:1]
    counts = recorded_counts(Project.open(folder), request.parameters_as(ExplanationParameters).run)
    n, psms = float(counts.get("spectra", _USUAL_SPECTRA)), float(counts.get("psms", counts.get("spectra", _USUAL_SPECTRA) / 3))
    host = {"read": n * _SPECTRUM, "index": n * _SPECTRUM, "score": n * _COMPARED, "report": psms * _PSM}
    return Expectation((), host, {"spectra": n, "psms": psms}, n * _BYTES)
