"""Quality and speed of the clustering of spectra on this machine.

    python -m benchmarks.clustering [--data FOLDER] [--times 5]

One JSON line each for

* ``peptides``: 891 spectra of 312 peptides; the first spectrum of each peptide is a centroid, and the others are assigned to the most
  similar centroid within 3,000 ppm and of the same charge. Settings are chosen on one half of the peptides, and evaluated on the other half
  and on all peptides, together with the distance of Li's thesis as printed (Algorithm 4.8);
* ``massbank``: 39,212 spectra; the largest distance with at most .036 incorrectly clustered spectra is chosen on one half of the compounds,
  and evaluated on the other half and on all compounds; each half is clustered separately;
* ``command``: seconds of the whole command ``cluster`` on MassBank, with compiled kernels and a new project each time.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import os
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.figures import emit
from proteoscope.engine.clustering.parameters import ClusteringParameters, ExplanationParameters
from proteoscope.engine.clustering.quality import Quality, cluster_quality
from proteoscope.engine.clustering.search import compute_clusters
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.formats import read_spectra
from proteoscope.engine.spectra.columns import Spectra
from proteoscope.engine.spectra.vectors import spectrum_vectors
from proteoscope.kernels.clustering_layouts import VectorArrays
from proteoscope.kernels.cpu.nearest_vectors import CandidateRanges, nearest_vectors

_PPM = 3000
_MAXIMUM_INCORRECT = 0.036
_DISTANCES = (0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55)


def labelled(folder: Path, name: str, unit: str) -> tuple[Spectra, NDArray[np.int64], NDArray[np.bool_]]:
    """Return spectra, their labels as numbers, and the half of each spectrum (bool), chosen by the column `unit` of the labels."""
    with (folder / f"{name}.labels.tsv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    labels = np.unique([row["label"] for row in rows], return_inverse=True)[1]
    half = np.array([zlib.crc32(row[unit].split("-")[0].encode()) & 1 for row in rows], np.bool_)
    return read_spectra([folder / f"{name}.mgf"], takes_negative=True), labels, half


class Peptides:
    """The peptide set: centroids, and the other spectra, which are assigned to them."""

    def __init__(self, spectra: Spectra, labels: NDArray[np.int64]) -> None:
        self.spectra, self.labels = spectra, labels
        self.centroids = np.sort(np.unique(labels, return_index=True)[1])
        self.rest = np.setdiff1d(np.arange(len(spectra)), self.centroids)

    def right(self, **settings: Any) -> NDArray[np.bool_]:
        """Return True for each remaining spectrum that is assigned to the centroid of its label."""
        parameters = ExplanationParameters().changed(minimum_peaks=1, **settings)
        vectors = spectrum_vectors(self.spectra, parameters, Resources(2))
        place = np.argsort(vectors.order)  # of each spectrum
        offsets, bins, weights = vectors.arrays
        is_centroid = np.zeros(len(vectors), np.bool_)
        is_centroid[place[self.centroids]] = True
        rows = np.flatnonzero(is_centroid)
        of_offsets = np.concatenate(([0], np.cumsum(np.diff(offsets)[rows])))
        some = np.concatenate([np.arange(*offsets[row : row + 2]) for row in rows.tolist()])
        mz, n = vectors.precursor_mz, len(vectors)
        low, high = np.zeros((n, 1), np.int64), np.zeros((n, 1), np.int64)
        for ion in np.unique(vectors.ion):
            of, of_ion = np.flatnonzero(vectors.ion[rows] == ion), vectors.ion == ion
            width = mz[of_ion] * _PPM * 1e-6
            low[of_ion, 0] = of[0] + np.searchsorted(mz[rows[of]], mz[of_ion] - width) if len(of) else 0
            high[of_ion, 0] = of[0] + np.searchsorted(mz[rows[of]], mz[of_ion] + width, side="right") if len(of) else 0
        nearest, similarity, value = np.empty(n, np.int64), np.empty(n), np.empty(n)
        price = (parameters.precursor_weight / (mz * _PPM * 1e-6))[:, None]
        ranges, centroids = CandidateRanges(low, high, mz[:, None], price), VectorArrays(of_offsets, bins[some], weights[some])
        nearest_vectors(vectors.arrays, ranges, centroids, mz[rows], vectors.n_bins, 0, n, nearest, similarity, value)
        label = np.where(nearest >= 0, self.labels[vectors.order[rows[nearest]]], -1)
        return (label[place] == self.labels)[self.rest]

    def right_as_printed(self) -> NDArray[np.bool_]:
        """Return the result of `right` with the distance of Algorithm 4.8, which counts only shared bins, to all centroids."""
        settings = {
            "bin_width": 0.5,
            "minimum_mz": 600.0,
            "maximum_mz": 6000.0,
            "intensity_transform": "none",
            "peak_merging": "mean",
            "precursor_removal": 0.0,
            "minimum_peaks": 1,
        }
        vectors = spectrum_vectors(self.spectra, ExplanationParameters().changed(**settings), Resources(2))
        dense = np.zeros((len(vectors), vectors.n_bins))
        row = np.repeat(vectors.order, np.diff(vectors.arrays.offsets))
        dense[row, vectors.arrays.bins] = vectors.arrays.weights
        right = []
        for spectrum in self.rest.tolist():
            both = (dense[self.centroids] > 0) & (dense[spectrum] > 0)
            distance = (((dense[self.centroids] - dense[spectrum]) ** 2) * both).sum(axis=1)
            right.append(self.labels[self.centroids[distance.argmin()]] == self.labels[spectrum])
        return np.array(right)


def peptide_figures(folder: Path) -> None:
    """Print the figures of the peptide set."""
    spectra, labels, half = labelled(folder, "peptides_pride_labelled", "label")
    peptides = Peptides(spectra, labels)
    grid = [
        {
            "bin_width": width,
            "bin_spread": 0.5,
            "precursor_weight": weight,
            "precursor_removal": 2.0,
            "rare_peak_weight": rare_peak_weight,
            "peaks_per_window": peaks,
        }
        for width, weight, rare_peak_weight, peaks in itertools.product((0.3, 0.4, 0.5), (0.0, 0.1, 0.2), (0.0, 0.5, 1.0), (0, 10))
    ]
    right = [peptides.right(**settings) for settings in grid]
    other = half[peptides.rest]
    for shown in (False, True):
        best = int(np.argmax([is_right[other != shown].mean() for is_right in right]))
        emit(
            {"what": "peptides"},
            chosen_on=int(not shown),
            settings=grid[best],
            right_there=round(right[best][other != shown].mean(), 4),
            right_on_the_other=round(right[best][other == shown].mean(), 4),
            right_on_all=round(right[best].mean(), 4),
            n=len(other),
        )
    emit({"what": "peptides, distance as printed"}, right=round(peptides.right_as_printed().mean(), 4))


def massbank_figures(folder: Path) -> None:
    """Print the figures of MassBank."""
    spectra, labels, half = labelled(folder, "massbank_esi_ms2", "inchikey")

    def quality(some: NDArray[np.bool_], **settings: Any) -> Quality:
        clusters = compute_clusters(spectra.only(np.flatnonzero(some)), ClusteringParameters().changed(**settings), Resources())
        return cluster_quality(clusters.cluster[some], labels[some])

    for settings in ({"linkage": "average"}, {"linkage": "complete"}, {"method": "dbscan"}):
        of_half = {d: quality(~half, maximum_distance=d, **settings) for d in _DISTANCES}
        chosen = max((d for d, errors in of_half.items() if errors.incorrect <= _MAXIMUM_INCORRECT), default=_DISTANCES[0])
        figures = {
            name: [round(value, 4) for value in quality(some, maximum_distance=chosen, **settings)[1:]]
            for name, some in (("chosen_on", ~half), ("other", half), ("all", np.ones_like(half)))
        }
        emit(
            {"what": "massbank", **settings, "maximum_distance": chosen},
            columns=Quality._fields[1:],
            **figures,
        )


def command_figures(folder: Path, times: int) -> None:
    """Print the seconds of the whole command."""
    seconds = []
    with tempfile.TemporaryDirectory() as name:
        for k in range(times + 1):
            began = time.perf_counter()
            command = [
                sys.executable,
                "-m",
                "proteoscope.engine.command_line",
                "cluster",
                str(folder / "massbank_esi_ms2.mgf"),
                "--out",
                f"{name}/{k}",
            ]
            subprocess.run([*command, "--device", "cpu", "--quiet"], check=True)
            seconds.append(round(time.perf_counter() - began, 2))
    emit({"what": "command"}, spectra=39_212, threads=os.cpu_count(), seconds=sorted(seconds[1:]), median=float(np.median(seconds[1:])))


def main() -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("PROTEOSCOPE_TEST_DATA", "")) / "clustering")
    parser.add_argument("--times", type=int, default=5)
    options = parser.parse_args()
    peptide_figures(options.data)
    massbank_figures(options.data)
    command_figures(options.data, options.times)


if __name__ == "__main__":
    main()
