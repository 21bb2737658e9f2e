"""The kernels of grouping spectra, and of explaining the unidentified."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from engine.execution.compilation import Kernels

__all__ = ["CLUSTERING"]

_SPECTRUM = "BEGIN IONS\nTITLE={0}\nPEPMASS=500.25\nCHARGE=2+\n110.5 1\n175.1 2\n300.2 {0}\n400.2 4\nEND IONS\n"
_METHODS = {"method": "hierarchical", "linkage": "complete"}, {"method": "dbscan"}


def _last() -> Callable[..., Any]:
    from kernels.cpu.consensus import mean_peaks

    return mean_peaks


def _use() -> None:
    """Group next to nothing, in each way."""
    import numpy as np

    from engine.clustering.consensus import consensus_spectra
    from engine.clustering.parameters import ClusteringParameters
    from engine.clustering.search import clusters_of
    from engine.execution.resources import Resources
    from engine.formats import read_spectra
    from engine.jobs.progress import Progress

    resources = Resources(1, progress=Progress())
    with tempfile.TemporaryDirectory(prefix="proteoscope-compile-", ignore_cleanup_errors=True) as folder:
        path = Path(folder) / "spectra.mgf"
        path.write_text("".join(_SPECTRUM.format(i) for i in range(1, 7)), encoding="ascii")
        spectra = read_spectra([path], threads=1, takes_negative=True)
    for values in ({}, *_METHODS):
        parameters = ClusteringParameters().changed(consensus_spectrum="mean", **values)
        clusters = clusters_of(spectra, parameters, resources)
        consensus_spectra(clusters, np.sort(clusters.groups), spectra, parameters, resources)


CLUSTERING = Kernels("kernels of the clustering of spectra", _last, _use)
