"""Estimated workload of clustering, and of explaining spectra, from their requests."""

from proteoscope.engine.clustering import assignment, grouping
from proteoscope.engine.clustering.parameters import ClusteringParameters, ExplanationParameters
from proteoscope.engine.entry import SearchRequest
from proteoscope.engine.estimates import Expectation, ExpectedWork
from proteoscope.engine.execution.cost.parameters import WorkSize
from proteoscope.engine.formats.sizes import input_size
from proteoscope.engine.matches.recorded_counts import recorded_counts
from proteoscope.engine.project import Project

__all__ = ["estimate_explanation_workload", "estimate_workload"]

_READ, _VECTOR, _DESCRIBE, _ROW = 1.2e-8, 4e-5, 1.5e-5, 1.2e-5  # s per byte, and per spectrum in three steps
_ELEMENTS, _ELEMENT_BYTES, _VECTOR_BYTES = 40.0, 6.0, 40.0
_RANGE, _CROWDING = 1200.0, 12.0  # m/z range of precursors, Th; factor for the clustering of m/z within each Th
_PRECURSOR = 700.0
_COST_OF_ELEMENT = 0.1
_USUAL_CLUSTERS = 5.0  # typical spectra per cluster
_SPECTRUM_BYTES = 900.0  # memory per spectrum, without peaks
_SPECTRUM, _PSM, _COMPARED = 6e-5, 4e-5, 2e-5  # explaining: s per spectrum, per PSM, per compared spectrum
_USUAL_SPECTRA, _EXPLAINED_BYTES = 20_000.0, 4000.0


def estimate_workload(request: SearchRequest) -> Expectation:
    """Return the estimated workload of a clustering (see `proteoscope.engine.estimates`)."""
    parameters = request.parameters_as(ClusteringParameters)
    size = input_size(request.files("spectra"))
    n = size.records
    moved = n * (_ELEMENTS * _ELEMENT_BYTES + _VECTOR_BYTES)
    if parameters.method == "k-means":
        k, rounds = float(parameters.clusters or n / _USUAL_CLUSTERS), int(parameters.maximum_iterations)
        operations = n * k * (1.0 + _COST_OF_ELEMENT * _ELEMENTS) * rounds
        work = ExpectedWork(assignment.VECTORS, lambda gpu: WorkSize(operations, int(n) * rounds, moved, 4 * n, rounds))
    else:
        pairs = n * n * 2 * parameters.precursor_tolerance.width(_PRECURSOR) / _RANGE * _CROWDING / 2
        products = (n + pairs) * _ELEMENTS
        work = ExpectedWork(grouping.KIND, lambda gpu: WorkSize(products, int(n), moved, 8 * n))
    host = {"read": size.unpacked * _READ, "index": n * _VECTOR, "report": n * (_DESCRIBE + _ROW)}
    return Expectation((work,), host, {"spectra": n}, n * _SPECTRUM_BYTES + size.held_bytes)


def estimate_explanation_workload(request: SearchRequest) -> Expectation:
    """Return the estimated workload of an explanation, which runs on the CPU only (see `proteoscope.engine.estimates`).

    Raises
    ------
    InputError
        If the folder is not a project.
    """
    (folder,) = request.files("project")[:1]
    counts = recorded_counts(Project.open(folder), request.parameters_as(ExplanationParameters).run)
    n, psms = float(counts.get("spectra", _USUAL_SPECTRA)), float(counts.get("psms", counts.get("spectra", _USUAL_SPECTRA) / 3))
    host = {"read": n * _SPECTRUM, "index": n * _SPECTRUM, "score": n * _COMPARED, "report": psms * _PSM}
    return Expectation((), host, {"spectra": n, "psms": psms}, n * _EXPLAINED_BYTES)
