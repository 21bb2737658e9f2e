"""Results of clustering: the tables of the project, ``clusters.tsv``, and the file of consensus spectra."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import ranges, row_mask, segment_offsets, take_segments
from proteoscope.engine.clustering.parameters import ClusteringParameters
from proteoscope.engine.clustering.tables import CLUSTERS, CONSENSUS, MEMBERS
from proteoscope.engine.execution.resources import Resources, run_on_threads
from proteoscope.engine.formats.peak_list_writers import charge_texts, mgf_text, on_one_line
from proteoscope.engine.formats.spectrum_blocks import NEGATIVE
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.project.paths import EXPORTS
from proteoscope.engine.project.run import Run
from proteoscope.engine.results.arrow import in_one, or_null
from proteoscope.engine.results.separated import ROUNDED, write_lines, write_separated
from proteoscope.engine.spectra.columns import Spectra
from proteoscope.engine.spectra.tables import spectrum_columns
from proteoscope.engine.spectra.vectors import SpectrumVectors
from proteoscope.kernels.cpu.consensus import BEST, MAXIMUM_SIMILAR, MEAN, count_mean_peaks, describe_clusters, mean_peaks
from proteoscope.kernels.device import Partition, equal_partitions
from proteoscope.kernels.layouts import PeakArrays

__all__ = [
    "CLUSTERS_FILE",
    "ConsensusSpectra",
    "SpectrumClusters",
    "cluster_tables",
    "consensus_spectra",
    "consensus_table",
    "described_clusters",
    "signed_charges",
    "write_clusters",
    "write_consensus_file",
]

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
    """Consensus spectra of c clusters.

    Attributes
    ----------
    offsets : ndarray of int64, shape (c + 1,)
        Peaks of spectrum i are ``offsets[i]:offsets[i + 1]``.
    mz : ndarray of float64, shape (peaks,)
        m/z, Th.
    intensity : ndarray of float64, shape (peaks,)
        Intensities.
    """

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


CLUSTERS_FILE = "clusters.tsv"
"""Name of the clusters file in the project folder."""
_CLUSTERS_PER_GROUP = 256  # rows per Parquet row group: the window reads single clusters


def signed_charges(mask: NDArray[np.uint32]) -> pa.Array:
    """Return the charge of each spectrum, negative for negative ions; null if the mask contains no charge or several."""
    bits = mask >> np.uint32(1)
    is_one = (bits != 0) & (bits & (bits - np.uint32(1)) == 0)
    charge = 1 + np.log2(np.where(is_one, bits, 1)).astype(np.int32)
    return pa.array(np.where(mask & NEGATIVE, -charge, charge).astype(np.int32), mask=~is_one)


def cluster_tables(
    clusters: SpectrumClusters, spectra: Spectra, labels: tuple[list[str], NDArray[np.int64], NDArray[np.float64]] | None
) -> tuple[pa.Table, pa.Table]:
    """Return the tables ``clusters`` (of at least two spectra) and ``members`` (all spectra).

    `labels` contains the names of labels and, for each cluster, the index of its most frequent label (-1 for none) and the fraction of
    members with this label.
    """
    cluster, similarity = clusters.cluster, clusters.similarity
    charge = signed_charges(spectra.charge_mask)
    of_spectra = spectrum_columns(spectra, np.arange(len(spectra)), ("spectrum", "spectrum_file", "spectrum_id", "retention_time"))
    is_consensus = row_mask(len(spectra), clusters.representative)
    members = MEMBERS.arrow(
        {
            **of_spectra,
            "cluster": pa.array(cluster + 1),
            "title": of_spectra["spectrum_id"],
            "precursor_mz": or_null(spectra.precursor_mz),
            "charge": charge,
            "similarity_to_consensus": pa.array(similarity),
            "is_consensus": pa.array(is_consensus),
            "n_members": pa.array(clusters.sizes[cluster]),
        }
    )
    groups = clusters.groups
    least, mean = np.ones(len(clusters)), np.bincount(cluster, similarity, len(clusters)) / clusters.sizes
    np.minimum.at(least, cluster, similarity)
    chosen = clusters.representative[groups]
    rows = pa.array(chosen)
    in_order = np.argsort(np.argsort(groups))  # the table of consensus spectra is in the order of the clusters' numbers
    columns: dict[str, Any] = {
        "cluster": pa.array(groups + 1),
        "n_members": pa.array(clusters.sizes[groups]),
        "precursor_mz": members["precursor_mz"].take(rows),
        "charge": charge.take(rows),
        "mean_similarity": pa.array(mean[groups]),
        "least_similarity": pa.array(least[groups]),
        "retention_time": of_spectra["retention_time"].take(rows),
        "title": of_spectra["spectrum_id"].take(rows),
        "consensus": pa.array(in_order),
        "label": pa.nulls(len(groups), pa.string()),
        "label_share": pa.nulls(len(groups), pa.float64()),
    }
    if labels is not None:
        names, of, fraction = labels
        unknown = of[groups] < 0
        columns["label"] = pa.array(names, pa.string()).take(pa.array(of[groups], mask=unknown))
        columns["label_share"] = pa.array(fraction[groups], mask=unknown)
    return CLUSTERS.arrow(columns), members


def consensus_table(clusters: SpectrumClusters, consensus: ConsensusSpectra, spectra: Spectra) -> pa.Table:
    """Return the table ``consensus``: consensus spectra of clusters of at least two spectra, ordered by cluster number."""
    groups = np.sort(clusters.groups)
    chosen = clusters.representative[groups]
    offsets = pa.array(consensus.offsets, pa.int64())
    return CONSENSUS.arrow(
        {
            "cluster": pa.array(groups + 1),
            "precursor_mz": pa.array(spectra.precursor_mz[chosen]),
            "charge": signed_charges(spectra.charge_mask[chosen]),
            "mz": pa.LargeListArray.from_arrays(offsets, pa.array(consensus.mz)),
            "intensity": pa.LargeListArray.from_arrays(offsets, pa.array(consensus.intensity)),
        }
    )


def write_clusters(
    results: Run,
    clusters: SpectrumClusters,
    spectra: Spectra,
    labels: tuple[list[str], NDArray[np.int64], NDArray[np.float64]] | None,
    consensus_file: Path | None,
    parameters: ClusteringParameters,
    resources: Resources,
    begin: Callable[[Callable[[Progress], Any]], Callable[[], Any]],
) -> None:
    """Write the tables of a run, ``clusters.tsv`` in the project folder, and the file of consensus spectra, at the same time.

    Parameters
    ----------
    results : Run
        Run to write to.
    clusters : SpectrumClusters
        Clusters to write.
    spectra : Spectra
        Spectra of the run.
    labels : tuple or None
        See `cluster_tables`.
    consensus_file : Path or None
        File for the consensus spectra; None to write no file.
    parameters : ClusteringParameters
        Parameters of the clustering.
    resources : Resources
        Devices, threads and progress of the run.
    begin : callable
        Function that starts a task in the background and returns a function that waits for it.
    """

    def write_consensus(progress: Progress) -> pa.Table:
        consensus = consensus_spectra(clusters, np.sort(clusters.groups), spectra, parameters, resources.reporting_to(progress))
        table = consensus_table(clusters, consensus, spectra)
        results.write_table("consensus", table, _CLUSTERS_PER_GROUP)
        return table

    def write_text(progress: Progress) -> None:
        progress.stage("Writing clusters", len(members))
        out = results.folder / EXPORTS / CLUSTERS_FILE
        write_separated(out, members, MEMBERS.saved_columns, progress, ROUNDED, threads=resources.threads)

    consensus_written = begin(write_consensus)
    groups, members = cluster_tables(clusters, spectra, labels)
    written = [begin(write_text), begin(lambda _: results.write_table("members", members))]
    results.write_table("clusters", groups)
    spectra_of_groups = consensus_written()
    for wait in written:
        wait()
    if consensus_file is not None:
        write_consensus_file(consensus_file, spectra_of_groups, members, resources.progress)


def write_consensus_file(out: Path, consensus: pa.Table, members: pa.Table, progress: Progress) -> None:
    """Write consensus spectra as MGF.

    The title contains the number, the size and the representative of the cluster. The entries CLUSTER and MEMBERS, which other programs
    ignore, contain its number and all its members. m/z have five decimals, precursor m/z six.

    Raises
    ------
    StorageError
        If writing fails.
    Cancelled
        If the user cancelled.
    """
    cluster = members["cluster"].to_numpy()
    order = np.argsort(cluster, kind="stable")
    in_order, is_consensus = cluster[order], members["is_consensus"].to_numpy()
    titles = members["title"].combine_chunks()
    progress.stage("Writing consensus spectra", len(consensus))

    def text(batch: pa.Table) -> bytes:
        numbers = batch["cluster"].to_numpy()
        offsets, positions = ranges(np.searchsorted(in_order, numbers), np.searchsorted(in_order, numbers, side="right"))
        rows = order[positions]
        names = on_one_line(titles.take(pa.array(rows)))
        # The first member marked as representative, or the first member.
        at = np.where(is_consensus[rows], np.arange(len(rows)), len(rows))
        chosen = np.minimum.reduceat(at, offsets[:-1])
        chosen = np.where(chosen < len(rows), chosen, offsets[:-1])
        number = pa.compute.cast(batch["cluster"].combine_chunks(), pa.string())
        size = pa.compute.cast(pa.array(np.diff(offsets)), pa.string())
        peaks = in_one(batch["mz"])
        ends = peaks.offsets.to_numpy().astype(np.int64)
        entries = {
            "TITLE": pa.compute.binary_join_element_wise("cluster ", number, " (", size, " spectra): ", names.take(pa.array(chosen)), ""),
            "CLUSTER": number,
            "MEMBERS": pa.compute.binary_join(pa.LargeListArray.from_arrays(pa.array(offsets), names), ";"),
            "PEPMASS": pa.compute.cast(pa.array(np.round(batch["precursor_mz"].to_numpy(), 6)), pa.string()),
            "CHARGE": charge_texts(_charge_bits(batch["charge"].fill_null(0).to_numpy())),
        }
        mz, intensity = (in_one(batch[name]).flatten().to_numpy() for name in ("mz", "intensity"))
        return mgf_text(entries, ends - ends[0], np.round(mz, 5), intensity.astype(np.float32))

    chunks = (consensus.slice(first, _CLUSTERS_PER_GROUP) for first in range(0, len(consensus), _CLUSTERS_PER_GROUP))
    write_lines(out, b"", chunks, text, progress)


def _charge_bits(charge: NDArray[np.integer]) -> NDArray[np.uint32]:
    """Return the charge mask (see `Spectra`) of each signed charge; an unknown charge (0) gives mask 0."""
    bits = np.uint32(1) << np.abs(charge).astype(np.uint32)
    return np.where(charge == 0, np.uint32(0), np.where(charge < 0, bits | np.uint32(NEGATIVE), bits))
