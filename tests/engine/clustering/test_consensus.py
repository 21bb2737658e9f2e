"""Consensus spectra of clusters against plain loops, and the agreement of clusters with labels against scikit-learn."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from proteoscope.engine.clustering.parameters import ClusteringParameters
from proteoscope.engine.clustering.quality import cluster_quality, majority_labels, read_labels
from proteoscope.engine.clustering.results import SpectrumClusters, consensus_spectra
from proteoscope.engine.clustering.search import compute_clusters
from proteoscope.engine.errors import InputError
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.spectra.columns import Spectra
from proteoscope.engine.spectra.vectors import SpectrumVectors, spectrum_vectors
from tests.engine.spectra.made import spectra


@pytest.fixture(scope="module")
def copies() -> Spectra:
    """Copies of forty spectra, each with other intensities and slightly shifted m/z."""
    random = np.random.default_rng(7)
    peaks, mz = [], []
    for k in range(40):
        places, heights = np.sort(random.uniform(100, 900, 12)), random.uniform(1, 100, 12)
        for _ in range(int(random.integers(1, 6))):
            moved = np.sort(places + random.uniform(-0.002, 0.002, 12))
            peaks.append(list(zip(moved.tolist(), (heights * random.uniform(0.6, 1.4, 12)).tolist(), strict=True)))
            mz.append(400.0 + k * 0.01)
    order = random.permutation(len(peaks))
    return spectra([peaks[i] for i in order], [mz[i] for i in order], [4] * len(peaks))


def dense_vectors(vectors: SpectrumVectors) -> list[np.ndarray]:
    """Return the weights of each spectrum in all bins that any spectrum uses; empty bins add nothing to a dot product."""
    used, columns = np.unique(vectors.arrays.bins, return_inverse=True)
    full = np.zeros((len(vectors.order), len(used)))
    for row, spectrum in enumerate(vectors.order.tolist()):
        elements = slice(*vectors.arrays.offsets[row : row + 2])
        full[spectrum, columns[elements]] = vectors.arrays.weights[elements]
    return list(full)


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float(a @ b / math.sqrt((a @ a) * (b @ b)))


@pytest.mark.parametrize("choice", ["most-similar", "best", "mean"])
def test_spectrum_clusters_equal_reference_loop(copies, choice):
    parameters, resources = ClusteringParameters().changed(consensus_spectrum=choice), Resources(2)
    clusters, vectors = compute_clusters(copies, parameters, resources), spectrum_vectors(copies, parameters, resources)
    assert 20 < len(clusters) < len(copies) and sorted(clusters.members.tolist()) == list(range(len(copies)))
    dense = dense_vectors(vectors)
    for number in range(len(clusters)):
        members = clusters.members[clusters.member_offsets[number] : clusters.member_offsets[number + 1]].tolist()
        assert {int(clusters.cluster[i]) for i in members} == {number}
        whole = sum(dense[i] for i in members)
        to_all = {i: cosine(dense[i], whole) for i in members}
        chosen = int(clusters.representative[number])
        if choice == "best":
            assert copies.peaks(chosen)[1].sum() == max(copies.peaks(i)[1].sum() for i in members)
        else:
            assert to_all[chosen] == pytest.approx(max(to_all.values()), abs=1e-12)
        for i in members:
            expected = to_all[i] if choice == "mean" else cosine(dense[i], dense[chosen])
            assert clusters.similarity[i] == pytest.approx(expected, abs=1e-12)


def test_clusters_are_numbered_by_their_first_spectrum(copies):
    clusters = compute_clusters(copies, ClusteringParameters(), Resources(1))
    _, first = np.unique(clusters.cluster, return_index=True)
    assert (np.diff(first) > 0).all()
    sizes = clusters.sizes[clusters.groups]
    assert (sizes > 1).all() and (np.diff(sizes) <= 0).all()


def test_mean_consensus_spectra_equal_reference_loops(copies):
    parameters = ClusteringParameters().changed(consensus_spectrum="mean")
    clusters = compute_clusters(copies, parameters, Resources(2))
    consensus = consensus_spectra(clusters, clusters.groups, copies, parameters, Resources(2))
    assert len(consensus.offsets) == len(clusters.groups) + 1
    for row, number in enumerate(clusters.groups.tolist()):
        members = clusters.members[clusters.member_offsets[number] : clusters.member_offsets[number + 1]].tolist()
        peaks = sorted(
            (mz, height / copies.peaks(i)[1].sum(dtype=np.float64)) for i in members for mz, height in zip(*copies.peaks(i), strict=True)
        )
        merged: list[list[tuple[float, float]]] = []
        for peak in peaks:
            if merged and peak[0] - merged[-1][-1][0] <= 0.5 * parameters.bin_width:
                merged[-1].append(peak)
            else:
                merged.append([peak])
        frequent = [group for group in merged if len(group) >= max(1, math.ceil(0.25 * len(members)))]
        peaks_of_row = slice(consensus.offsets[row], consensus.offsets[row + 1])
        assert consensus.mz[peaks_of_row] == pytest.approx(
            [sum(mz * h for mz, h in group) / sum(h for _, h in group) for group in frequent]
        )
        assert consensus.intensity[peaks_of_row] == pytest.approx([sum(h for _, h in group) / len(members) for group in frequent])


def test_consensus_spectrum_is_the_representative_by_default(copies):
    clusters = compute_clusters(copies, ClusteringParameters(), Resources(1))
    consensus = consensus_spectra(clusters, clusters.groups, copies, ClusteringParameters(), Resources(1))
    for row, number in enumerate(clusters.groups.tolist()):
        mz, _ = copies.peaks(int(clusters.representative[number]))
        assert consensus.mz[consensus.offsets[row] : consensus.offsets[row + 1]].tolist() == mz.tolist()


def test_spectra_without_peaks_are_not_clustered():
    some = spectra([[], [(100.0, 1.0)], []], [500.0, 500.0, np.nan], [4, 4, 4])
    clusters = compute_clusters(some, ClusteringParameters(), Resources(1))
    assert clusters.cluster.tolist() == [0, 1, 2] and clusters.similarity.tolist() == [1.0, 1.0, 1.0]
    assert isinstance(clusters, SpectrumClusters) and len(clusters.groups) == 0
    assert len(compute_clusters(spectra([], [], []), ClusteringParameters(), Resources(1))) == 0


def test_cluster_quality_equals_scikit_learn():
    from sklearn.metrics import completeness_score, homogeneity_score  # the import takes as long as many tests

    random = np.random.default_rng(1)
    for _ in range(20):
        cluster, labels = random.integers(0, 30, 200), random.integers(-1, 20, 200)
        is_labelled = labels >= 0
        quality = cluster_quality(cluster, labels)
        assert quality.completeness == pytest.approx(completeness_score(labels[is_labelled], cluster[is_labelled]))
        assert quality.homogeneity == pytest.approx(homogeneity_score(labels[is_labelled], cluster[is_labelled]))


def test_cluster_quality_counts_labels_that_differ_from_majority():
    cluster, labels = np.array([0, 0, 0, 1, 1, 2, 3, 3]), np.array([5, 5, 6, 7, -1, 5, -1, -1])
    quality = cluster_quality(cluster, labels)
    assert (quality.labelled, quality.clustered, quality.incorrect) == (5, 4 / 5, 1 / 4)
    of, share = majority_labels(cluster, labels, 4)
    assert of.tolist() == [5, 7, 5, -1] and share[:3].tolist() == [2 / 3, 1.0, 1.0] and np.isnan(share[3])


def test_read_labels_accepts_all_column_names(tmp_path: Path):
    some = spectra([[(100.0, 1.0)]] * 3, [500.0] * 3, [4] * 3)
    for content in (
        "index\tlabel\n0\ta\n2\tb\n",
        "label\ttitle\na\tindex=0\nb\tindex=2\n",
        "x\tspectrum_id\tlabel\n\tindex=0\ta\n\tindex=2\tb\n",
    ):
        (tmp_path / "labels.tsv").write_text(content)
        assert read_labels(tmp_path / "labels.tsv", some) == ["a", "", "b"]


@pytest.mark.parametrize("content", [b"", b"index\tname\n0\ta\n", b"label\na\n", b"\xff\xfe", b"index\tlabel\n9\ta\n"])
def test_read_labels_rejects_invalid_tables_of_spectrum_labels(content, tmp_path: Path):
    (tmp_path / "labels.tsv").write_bytes(content)
    with pytest.raises(InputError, match=r"labels\.tsv"):
        read_labels(tmp_path / "labels.tsv", spectra([[(100.0, 1.0)]], [500.0], [4]))
