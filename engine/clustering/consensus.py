"""Consensus spectra of clusters, and the similarity of the clusters' members to them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import segment_offsets, take_segments
from proteoscope.engine.clustering.parameters import ClusteringParameters
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.execution.threads import run_on_threads
from proteoscope.engine.spectra.columns import Spectra
from proteoscope.engine.spectra.vectors import SpectrumVectors
from proteoscope.kernels.cpu.consensus import BEST, MAXIMUM_SIMILAR, MEAN, count_mean_peaks, describe_clusters, mean_peaks
from proteoscope.kernels.device import Partition, equal_partitions
from proteoscope.kernels.layouts import PeakArrays

__all__ = ["ConsensusSpectra", "SpectrumClusters", "consensus_spectra", "described_clusters"]

_CHOICES = {"most-similar": MAXIMUM_SIMILAR, "best": BEST, "mean": MEAN}
_MINIMUM_SHARE = 0.25
"""Minimum fraction of members that contain a peak of the mean spectrum."""


@dataclass(frozen=True)
class SpectrumClusters:
    """Spectra (n) in c clusters.

    Attributes
    ----------
    cluster : ndarray of int64, shape (n,)
        Cluster of each spectrum; clusters are ordered by their first spectrum.
    member_offsets : ndarray of int64, shape (c + 1,)
        Start of each cluster in `members`, followed by n.
    members : ndarray of int64, shape (n,)
        Spectra of each cluster, ordered by precursor m/z.
    representative : ndarray of int64, shape (c,)
        Representative spectrum of each cluster.
    similarity : ndarray of float64, shape (n,)
        Cosine between each spectrum and the representative of its cluster.
    """

    cluster: NDArray[np.int64]
    member_offsets: NDArray[np.int64]
    members: NDArray[np.int64]
    representative: NDArray[np.int64]
    similarity: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.representative)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Number of spectra in each cluster, (c,) int64."""
        return np.diff(self.member_offsets)

    @property
    def groups(self) -> NDArray[np.int64]:
        """Indices of clusters with at least two spectra, largest first, int64."""
        several = np.flatnonzero(self.sizes > 1)
        return several[np.argsort(-self.sizes[several], kind="stable")]


@dataclass(frozen=True)
class ConsensusSpectra:
    """Consensus spectra of clusters: start of the peaks of each in `mz` and `intensity`, float64 m/z (Th) and intensities."""

    offsets: NDArray[np.int64]
    mz: NDArray[np.float64]
    intensity: NDArray[np.float64]


def described_clusters(
    vectors: SpectrumVectors, labels: NDArray[np.int64], spectra: Spectra, parameters: ClusteringParameters, resources: Resources
) -> SpectrumClusters:
    """Return the clusters with representatives and similarities; spectra with equal labels form a cluster.

    Parameters
    ----------
    vectors : SpectrumVectors
        Vectors of the n spectra.
    labels : ndarray of int64, shape (n,)
        Label of each vector, from 0 to n - 1.
    spectra : Spectra
        Spectra of the run.
    parameters : ClusteringParameters
        Parameters of the clustering.
    resources : Resources
        Devices, threads and progress of the run.

    Returns
    -------
    SpectrumClusters
    """
    n, threads, progress = len(vectors), resources.threads, resources.progress
    first_spectrum = np.full(n, n, np.int64)  # first spectrum with each label
    np.minimum.at(first_spectrum, labels, vectors.order)
    covers_positions = first_spectrum[labels]
    firsts, cluster_of_place = np.unique(covers_positions, return_inverse=True)
    members = np.argsort(cluster_of_place, kind="stable")  # indices of vectors
    member_offsets = segment_offsets(np.bincount(cluster_of_place, minlength=len(firsts)))
    brightness = np.zeros(n)
    if parameters.consensus_spectrum == "best" and len(spectra.mz):
        total = np.concatenate(([0.0], np.cumsum(spectra.intensity, dtype=np.float64)))
        brightness = np.diff(total[spectra.offsets])[vectors.order]
    representative, similarity = np.empty(len(firsts), np.int64), np.empty(n)
    progress.stage("Comparing spectra with their clusters", n)

    def describe(part: Partition) -> None:
        describe_clusters(
            vectors.arrays,
            vectors.n_bins,
            member_offsets,
            members,
            _CHOICES[parameters.consensus_spectrum],
            brightness,
            part.first,
            part.last,
            representative,
            similarity,
        )

    parts = equal_partitions(np.diff(member_offsets), threads)
    run_on_threads(describe, parts, threads, progress, steps=lambda part: int(member_offsets[part.last] - member_offsets[part.first]))
    cluster, of_spectrum = np.empty(n, np.int64), np.empty(n)
    cluster[vectors.order], of_spectrum[vectors.order] = cluster_of_place, similarity
    return SpectrumClusters(cluster, member_offsets, vectors.order[members], vectors.order[representative], of_spectrum)


def consensus_spectra(
    clusters: SpectrumClusters, which: NDArray[np.int64], spectra: Spectra, parameters: ClusteringParameters, resources: Resources
) -> ConsensusSpectra:
    """Return the consensus spectra of the clusters `which`: the peaks of the representative, or the mean of all members."""
    if parameters.consensus_spectrum != "mean":
        chosen = clusters.representative[which]
        mz, offsets = take_segments(spectra.mz, spectra.offsets, chosen)
        return ConsensusSpectra(offsets, mz, take_segments(spectra.intensity, spectra.offsets, chosen)[0].astype(np.float64))
    members, member_offsets = take_segments(clusters.members, clusters.member_offsets, which)
    count, threads, progress = np.zeros(len(which), np.int64), resources.threads, resources.progress
    settings = spectra.peak_arrays, member_offsets, members, parameters.bin_width, _MINIMUM_SHARE
    parts = equal_partitions(np.diff(member_offsets), threads)
    progress.stage("Making mean spectra", 2 * len(which))
    run_on_threads(
        lambda part: count_mean_peaks(*settings, part.first, part.last, count),
        parts,
        threads,
        progress,
        steps=lambda part: part.last - part.first,
    )
    offsets = segment_offsets(count)
    mz, intensity = np.empty(offsets[-1]), np.empty(offsets[-1])
    means = PeakArrays(offsets, mz, intensity)
    run_on_threads(
        lambda part: mean_peaks(*settings, part.first, part.last, means),
        parts,
        threads,
        progress,
        steps=lambda part: part.last - part.first,
    )
    return ConsensusSpectra(offsets, mz, intensity)
