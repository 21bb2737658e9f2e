"""Estimated workload of a quantification, computed from the project's records and file sizes."""

from contextlib import suppress
from pathlib import Path

from proteoscope.engine.entry import SearchRequest
from proteoscope.engine.errors import InputError, ParameterError
from proteoscope.engine.estimates import Expectation, read_counts
from proteoscope.engine.project import Project
from proteoscope.engine.quantification.identified import sources
from proteoscope.engine.quantification.parameters import QuantificationParameters

__all__ = ["estimate_workload"]

_USUAL_SPECTRA = 5000.0
_PSM, _BYTE = 2e-5, 2.5e-8  # s per PSM and per byte
_ALIGNMENT = 1.0  # s for the alignment of the times of several files


def estimate_workload(request: SearchRequest) -> Expectation:
    """Return the estimated workload of a request (see `proteoscope.engine.estimates`).

    Raises
    ------
    InputError
        If the folder is not a project.
    """
    parameters, folder = request.parameters_as(QuantificationParameters), request.files("project")[0]
    project, spectra, size, paths = Project.open(folder), _USUAL_SPECTRA, 0, list[Path]()
    with suppress(InputError, ParameterError):  # the search itself reports the error
        result = sources(folder, parameters.run)
        spectra = sum(read_counts(project.record(run.run)).get("psms", _USUAL_SPECTRA) for run in result.runs)
        paths = [Path(file.path) for file in result.files] if parameters.method != "counts" else []
        size = sum(path.stat().st_size for path in paths if path.exists())
    alignment = _ALIGNMENT if len(paths) > 1 else 0.0
    host = {"read": 0.2 + spectra * _PSM, "score": size * _BYTE + alignment, "report": 0.1 + spectra * _PSM}
    return Expectation((), host, {"spectra": spectra}, 1e8 + size / 4)
