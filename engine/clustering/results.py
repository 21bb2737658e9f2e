"""Results of clustering: the tables of the project, ``clusters.tsv``, and the file of consensus spectra."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import ranges, true_at
from proteoscope.engine.clustering.consensus import ConsensusSpectra, SpectrumClusters, consensus_spectra
from proteoscope.engine.clustering.parameters import ClusteringParameters
from proteoscope.engine.clustering.tables import CLUSTERS, CONSENSUS, MEMBERS
from proteoscope.engine.execution.resources import Resources
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

__all__ = ["CLUSTERS_FILE", "cluster_tables", "consensus_table", "signed_charges", "write_clusters", "write_consensus_file"]

CLUSTERS_FILE = "clusters.tsv"
"""Name of the clusters file in the project folder."""
_CLUSTERS_PER_GROUP = 256  # rows per Parquet row group: the window reads single clusters


def signed_charges(mask: NDArray[np.uint32]) -> pa.Array:
    """Return the charge of each spectrum, negative for negative ions; null if it is missing or ambiguous."""
    bits = mask >> np.uint32(1)
    is_one = (bits != 0) & (bits & (bits - np.uint32(1)) == 0)
    charge = 1 + np.log2(np.where(is_one, bits, 1)).astype(np.int32)
    return pa.array(np.where(mask & NEGATIVE, -charge, charge).astype(np.int32), mask=~is_one)


def cluster_tables(
    clusters: SpectrumClusters, spectra: Spectra, labels: tuple[list[str], NDArray[np.int64], NDArray[np.float64]] | None
) -> tuple[pa.Table, pa.Table]:
    """Return the tables ``clusters`` (of at least two spectra) and ``members`` (all spectra).

    `labels` are the names of labels, and for each cluster the index of its most frequent label (-1 for none) and the fraction of members
    with it.
    """
    cluster, similarity = clusters.cluster, clusters.similarity
    charge = signed_charges(spectra.charge_mask)
    of_spectra = spectrum_columns(spectra, np.arange(len(spectra)), ("spectrum", "spectrum_file", "spectrum_id", "retention_time"))
    is_consensus = true_at(len(spectra), clusters.representative)
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
) -> None:
    """Write the tables of a run, ``clusters.tsv`` in the project folder, and the file of consensus spectra.

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
    """
    progress = resources.progress
    consensus = consensus_spectra(clusters, np.sort(clusters.groups), spectra, parameters, resources)
    groups, members = cluster_tables(clusters, spectra, labels)
    spectra_of_groups = consensus_table(clusters, consensus, spectra)
    results.write_table("clusters", groups)
    results.write_table("members", members)
    results.write_table("consensus", spectra_of_groups, _CLUSTERS_PER_GROUP)
    progress.stage("Writing clusters", len(members))
    out = results.folder / EXPORTS / CLUSTERS_FILE
    write_separated(out, members, MEMBERS.saved_columns, progress, ROUNDED, threads=resources.threads)
    if consensus_file is not None:
        write_consensus_file(consensus_file, spectra_of_groups, members, progress)


def write_consensus_file(out: Path, consensus: pa.Table, members: pa.Table, progress: Progress) -> None:
    """Write consensus spectra as MGF.

    The title contains the cluster number, size and representative. The entries CLUSTER and MEMBERS, which other programs ignore, contain
    the number and all members. m/z have five decimals, precursor m/z six.

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
    """Return charges with their sign (0 if unknown) as masks of charges, see `Spectra`."""
    bits = np.uint32(1) << np.abs(charge).astype(np.uint32)
    return np.where(charge == 0, np.uint32(0), np.where(charge < 0, bits | np.uint32(NEGATIVE), bits))
