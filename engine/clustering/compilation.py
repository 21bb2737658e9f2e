"""The kernels of grouping spectra, and of explaining the unidentified."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from proteoscope import kernels
from proteoscope.engine import clustering, execution, formats, matches
from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.execution.compilation import Kernels
from proteoscope.engine.files import scratch_folder
from proteoscope.engine.jobs.progress import Progress

if TYPE_CHECKING:
    from proteoscope.engine.spectra.columns import Spectra

__all__ = ["CLUSTERING", "EXPLANATION"]

_SPECTRUM = "BEGIN IONS\nTITLE={0}\nPEPMASS=500.25\nCHARGE=2+\n110.5 1\n175.1 2\n300.2 {0}\n400.2 4\nEND IONS\n"
_METHODS = {"linkage": "complete"}, {"method": "dbscan"}, {"method": "k-means", "clusters": 2, "rounds": 2}


def _spectra() -> Spectra:
    with scratch_folder() as folder:
        path = folder / "spectra.mgf"
        path.write_text("".join(_SPECTRUM.format(i) for i in range(1, 7)), encoding="ascii")
        return formats.read_spectra([path], threads=1, takes_negative=True)


def _use() -> None:
    """Group a few spectra with each method."""
    resources, spectra = execution.resources.Resources(1, progress=Progress()), _spectra()
    for values in ({}, *_METHODS):
        parameters = clustering.parameters.ClusteringParameters().changed(consensus_spectrum="mean", **values)
        clusters = clustering.spectrum_groups.clusters_of(spectra, parameters, resources)
        clustering.consensus.consensus_spectra(clusters, np.sort(clusters.groups), spectra, parameters, resources)


CLUSTERING = Kernels("kernels of the clustering of spectra", lambda: kernels.cpu.consensus.mean_peaks, _use, "up to a minute")


def _use_for_explaining() -> None:
    """Explain a few spectra."""
    resources, parameters = (
        execution.resources.Resources(1, progress=Progress()),
        clustering.parameters.ExplanationParameters().changed(mass_difference=100.0),
    )
    spectra = _spectra()
    residues = np.array([57.02146, 71.03711, 87.03203, 97.05276, 99.06841, 128.09496])
    some, none = np.zeros(1, np.int64), np.zeros(1)
    identified = matches.identified_spectra.Identified(
        some, some + 2, none + 998.5, some, ("GASPVK",), some, ("GASPVK",), np.array([0, 6]), residues, none, none
    )
    explained = clustering.explained_spectra
    library = explained.identified_library(spectra, identified, "by", Tolerance(20.0, "ppm"), parameters, resources)
    queries = explained.prepare_queries(spectra, np.arange(1, len(spectra)), library, parameters, resources)
    explained.score_same_mass(explained.plan_same_mass(queries, library, parameters), library, resources)
    explained.score_other_masses(explained.plan_other_masses(queries, library, np.zeros(0, np.int64), parameters), library, resources)


EXPLANATION = Kernels("kernels that explain spectra", lambda: kernels.cpu.nearest_vectors.nearest_shifted, _use_for_explaining)
