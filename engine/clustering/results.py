"""The results of grouping spectra: tables of the project, ``clusters.tsv``, and the file of consensus spectra."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from engine.clustering.consensus import ConsensusSpectra, SpectrumClusters
from engine.clustering.tables import CLUSTERS, CONSENSUS, MEMBERS
from engine.execution.resources import Resources
from engine.files import atomic_file
from engine.formats.spectrum_blocks import NEGATIVE
from engine.jobs.progress import Progress
from engine.project.paths import EXPORTS
from engine.project.run import Run
from engine.results.separated import ROUNDED, write_separated
from engine.spectra.columns import Spectra

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "cluster_tables",
    "consensus_table",
    "signed_charges",
    "write_consensus_file",
    "write_exports",
]

_CLUSTERS_PER_GROUP = 256
_MAXIMUM_CHARGE = 31


def signed_charges(mask: NDArray[np.uint32]) -> pa.Array:
    """The charge that a file gives each spectrum, negative for negative ions; null where it gives none or several."""
    import pyarrow as pa

    bits = mask >> np.uint32(1)
    is_one = (bits != 0) & (bits & (bits - np.uint32(1)) == 0)
    charge = 1 + np.log2(np.where(is_one, bits, 1)).astype(np.int32)
    return pa.array(np.where(mask & NEGATIVE, -charge, charge).astype(np.int32), mask=~is_one)


def cluster_tables(
    clusters: SpectrumClusters, spectra: Spectra, labels: tuple[list[str], NDArray[np.int64], NDArray[np.float64]] | None
) -> tuple[pa.Table, pa.Table]:
    """The tables ``clusters``, of those of two spectra and more, and ``members``, of all spectra.

    `labels`: the names of labels, and of each cluster the most frequent one's number, -1 for none, and its share.
    """
    import pyarrow as pa

    cluster, similarity = clusters.cluster, clusters.similarity
    time = pa.array(spectra.retention_time, mask=np.isnan(spectra.retention_time))
    charge, titles = signed_charges(spectra.charge_mask), pa.array(spectra.identifier, pa.string())
    is_consensus = np.zeros(len(spectra), np.bool_)
    is_consensus[clusters.representative] = True
    members = MEMBERS.arrow(
        {
            "spectrum": pa.array(np.arange(len(spectra))),
            "cluster": pa.array(cluster + 1),
            "title": titles,
            "spectrum_file": pa.DictionaryArray.from_arrays(pa.array(spectra.file), pa.array(spectra.files)).cast(pa.string()),
            "spectrum_id": titles,
            "precursor_mz": pa.array(spectra.precursor_mz, mask=np.isnan(spectra.precursor_mz)),
            "charge": charge,
            "retention_time": time,
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
        "retention_time": time.take(rows),
        "title": titles.take(rows),
        "consensus": pa.array(in_order),
        "label": pa.nulls(len(groups), pa.string()),
        "label_share": pa.nulls(len(groups), pa.float64()),
    }
    if labels is not None:
        names, of, share = labels
        unknown = of[groups] < 0
        columns["label"] = pa.array(names, pa.string()).take(pa.array(of[groups], mask=unknown))
        columns["label_share"] = pa.array(share[groups], mask=unknown)
    return CLUSTERS.arrow(columns), members


def consensus_table(clusters: SpectrumClusters, consensus: ConsensusSpectra, spectra: Spectra) -> pa.Table:
    """The table ``consensus``: the spectra that stand for clusters of two and more, in the order of these clusters' numbers."""
    import pyarrow as pa

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


def write_exports(run: Run, members: pa.Table, resources: Resources) -> str:
    """Write ``clusters.tsv`` where the project shows it; its name."""
    name = "clusters.tsv"
    resources.progress.stage("Writing clusters", len(members))
    out = run.folder / EXPORTS / name
    write_separated(out, members, MEMBERS.saved_columns, resources.progress, ROUNDED, threads=resources.threads)
    return name


def write_consensus_file(out: Path, consensus: pa.Table, members: pa.Table, progress: Progress) -> None:
    """Write consensus spectra as MGF, each with the number of its cluster and its members.

    The title tells the cluster, how many spectra it has, and the one that stands for it; CLUSTER and MEMBERS, which other programs leave
    unread, tell the number and all members by their names.

    Raises
    ------
    StorageError : the disk refused. Cancelled : the user asked to stop.
    """
    cluster = members["cluster"].to_numpy()
    order = np.argsort(cluster, kind="stable")
    in_order = cluster[order]
    progress.stage("Writing consensus spectra", len(consensus))
    titles, is_consensus = members["title"].combine_chunks(), members["is_consensus"].to_numpy()
    with atomic_file(out) as file:
        for piece in consensus.to_batches(_CLUSTERS_PER_GROUP):
            numbers = piece["cluster"].to_numpy()
            starts, stops = (np.searchsorted(in_order, numbers, side=side).tolist() for side in ("left", "right"))
            for row, start, stop in zip(piece.to_pylist(), starts, stops, strict=True):
                of = order[start:stop]
                names = [_one_line(name) for name in titles.take(of).to_pylist()]
                chosen = names[int(np.argmax(is_consensus[of]))]
                file.write("".join(_entry(row, names, chosen)).encode())
            progress.advance(len(piece))
            progress.check()


def _entry(row: dict[str, Any], names: list[str], chosen: str) -> Iterator[str]:
    yield f"BEGIN IONS\nTITLE=cluster {row['cluster']} ({len(names)} spectra): {chosen}\n"
    yield f"CLUSTER={row['cluster']}\nMEMBERS={';'.join(names)}\n"
    yield f"PEPMASS={row['precursor_mz']:.6f}\n"
    if row["charge"] is not None:
        yield f"CHARGE={abs(row['charge'])}{'-' if row['charge'] < 0 else '+'}\n"
    for mz, intensity in zip(row["mz"], row["intensity"], strict=True):
        yield f"{mz:.5f} {intensity:.6g}\n"
    yield "END IONS\n\n"


def _one_line(name: str) -> str:
    return " ".join(name.split())
