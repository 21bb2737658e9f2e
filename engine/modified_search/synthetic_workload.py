"""Synthetic mass lists for measuring the speed of devices."""

from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.execution.workload import Sample, Workload
from proteoscope.engine.matches.synthetic_workload import synthetic_search
from proteoscope.engine.modified_search.candidate_search import KIND, ListSettings, peptide_lists

__all__ = ["sample_lists"]

_QUERIES, _PEPTIDES, _CANDIDATES = 2500, 250_000, 60
_LISTS = ListSettings(50.0, 0.02, 5e-6, -200.0, 300.0)


def sample_lists(size: float, seed: int) -> Sample:
    """Return a workload of synthetic queries and peptides with mass shifts from -200 to 300 Da."""
    made = synthetic_search(max(8, round(_QUERIES * size**0.6)), max(1000, round(_PEPTIDES * size**0.4)), (0.0, 10e-6), seed)
    lists = peptide_lists(made.peptides, _LISTS.per_dalton, 0, len(made.peptides.mass), Resources(threads=1))
    sources = {
        "spectra": made.spectra._asdict(),
        "queries": made.queries._asdict(),
        "settings": made.settings._asdict(),
        "candidates": lists._asdict(),
    }
    return Sample(Workload(KIND, sources, {"n_candidates": _CANDIDATES, **_LISTS._asdict()}), [None])
