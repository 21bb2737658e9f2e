"""What stands for a cluster, against plain loops; and how clusters agree with labels, against scikit-learn."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from proteoscope.engine.clustering.consensus import SpectrumClusters, consensus_spectra
from proteoscope.engine.clustering.parameters import ClusteringParameters
from proteoscope.engine.clustering.quality import cluster_quality, majority_labels, read_labels
from proteoscope.engine.clustering.spectrum_groups import clusters_of
from proteoscope.engine.errors import InputError
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.spectra.columns import Spectra
from proteoscope.engine.spectra.vectors import SpectrumVectors, spectrum_vectors
from tests.engine.spectra.made import spectra


@pytest.fixture(scope="module")
def held() -> Spectra:
    """Copies of forty spectra, each with other heights and places a little off."""
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


def vector(vectors: SpectrumVectors, spectrum: int) -> np.ndarray:
    place = int(np.flatnonzero(vectors.order == spectrum)[0])
    some = slice(*vectors.arrays.offsets[place : place + 2])
    full = np.zeros(vectors.n_bins)
    full[vectors.arrays.bins[some]] = vectors.arrays.weights[some]
    return full


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float(a @ b / math.sqrt((a @ a) * (b @ b)))


@pytest.mark.parametrize("choice", ["most-similar", "best", "mean"])
def test_consensus_and_similarities_are_those_of_plain_loops(held, choice):
    parameters, resources = ClusteringParameters().changed(consensus_spectrum=choice), Resources(2)
    clusters, vectors = clusters_of(held, parameters, resources), spectrum_vectors(held, parameters, resources)
    assert 20 < len(clusters) < len(held) and sorted(clusters.members.tolist()) == list(range(len(held)))
    for number in range(len(clusters)):
        members = clusters.members[clusters.member_offsets[number] : clusters.member_offsets[number + 1]].tolist()
        assert {int(clusters.cluster[i]) for i in members} == {number}
        whole = sum(vector(vectors, i) for i in members)
        to_all = {i: cosine(vector(vectors, i), whole) for i in members}
        chosen = int(clusters.representative[number])
        if choice == "best":
            assert held.peaks(chosen)[1].sum() == max(held.peaks(i)[1].sum() for i in members)
        else:
            assert to_all[chosen] == pytest.approx(max(to_all.values()), abs=1e-12)
        for i in members:
            expected = to_all[i] if choice == "mean" else cosine(vector(vectors, i), vector(vectors, chosen))
            assert clusters.similarity[i] == pytest.approx(expected, abs=1e-12)


def test_clusters_are_numbered_by_their_first_spectra(held):
    clusters = clusters_of(held, ClusteringParameters(), Resources(1))
    _, first = np.unique(clusters.cluster, return_index=True)
    assert (np.diff(first) > 0).all()
    sizes = clusters.sizes[clusters.groups]
    assert (sizes > 1).all() and (np.diff(sizes) <= 0).all()


def test_a_mean_spectrum_is_that_of_plain_loops(held):
    parameters = ClusteringParameters().changed(consensus_spectrum="mean")
    clusters = clusters_of(held, parameters, Resources(2))
    found = consensus_spectra(clusters, clusters.groups, held, parameters, Resources(2))
    assert len(found.offsets) == len(clusters.groups) + 1
    for row, number in enumerate(clusters.groups.tolist()):
        members = clusters.members[clusters.member_offsets[number] : clusters.member_offsets[number + 1]].tolist()
        peaks = sorted(
            (mz, height / held.peaks(i)[1].sum(dtype=np.float64)) for i in members for mz, height in zip(*held.peaks(i), strict=True)
        )
        merged: list[list[tuple[float, float]]] = []
        for peak in peaks:
            if merged and peak[0] - merged[-1][-1][0] <= 0.5 * parameters.bin_width:
                merged[-1].append(peak)
            else:
                merged.append([peak])
        kept = [one for one in merged if len(one) >= max(1, math.ceil(0.25 * len(members)))]
        some = slice(found.offsets[row], found.offsets[row + 1])
        assert found.mz[some] == pytest.approx([sum(mz * h for mz, h in one) / sum(h for _, h in one) for one in kept])
        assert found.intensity[some] == pytest.approx([sum(h for _, h in one) / len(members) for one in kept])


def test_a_members_own_peaks_stand_for_its_cluster(held):
    clusters = clusters_of(held, ClusteringParameters(), Resources(1))
    found = consensus_spectra(clusters, clusters.groups, held, ClusteringParameters(), Resources(1))
    for row, number in enumerate(clusters.groups.tolist()):
        mz, _ = held.peaks(int(clusters.representative[number]))
        assert found.mz[found.offsets[row] : found.offsets[row + 1]].tolist() == mz.tolist()


def test_vectors_without_elements_are_alone_and_like_themselves():
    some = spectra([[], [(100.0, 1.0)], []], [500.0, 500.0, np.nan], [4, 4, 4])
    clusters = clusters_of(some, ClusteringParameters(), Resources(1))
    assert clusters.cluster.tolist() == [0, 1, 2] and clusters.similarity.tolist() == [1.0, 1.0, 1.0]
    assert isinstance(clusters, SpectrumClusters) and len(clusters.groups) == 0
    assert len(clusters_of(spectra([], [], []), ClusteringParameters(), Resources(1))) == 0


def test_agreement_with_labels_is_scikit_learns():
    from sklearn.metrics import completeness_score, homogeneity_score  # which takes as long as many tests

    random = np.random.default_rng(1)
    for _ in range(20):
        cluster, labels = random.integers(0, 30, 200), random.integers(-1, 20, 200)
        known = labels >= 0
        found = cluster_quality(cluster, labels)
        assert found.completeness == pytest.approx(completeness_score(labels[known], cluster[known]))
        assert found.homogeneity == pytest.approx(homogeneity_score(labels[known], cluster[known]))


def test_incorrect_are_those_with_another_label_than_most_of_their_cluster():
    cluster, labels = np.array([0, 0, 0, 1, 1, 2, 3, 3]), np.array([5, 5, 6, 7, -1, 5, -1, -1])
    found = cluster_quality(cluster, labels)
    assert (found.labelled, found.clustered, found.incorrect) == (5, 4 / 5, 1 / 4)
    of, share = majority_labels(cluster, labels, 4)
    assert of.tolist() == [5, 7, 5, -1] and share[:3].tolist() == [2 / 3, 1.0, 1.0] and np.isnan(share[3])


def test_labels_are_read_by_any_of_their_names(tmp_path: Path):
    some = spectra([[(100.0, 1.0)]] * 3, [500.0] * 3, [4] * 3)
    for content in (
        "index\tlabel\n0\ta\n2\tb\n",
        "label\ttitle\na\tindex=0\nb\tindex=2\n",
        "x\tspectrum_id\tlabel\n\tindex=0\ta\n\tindex=2\tb\n",
    ):
        (tmp_path / "labels.tsv").write_text(content)
        assert read_labels(tmp_path / "labels.tsv", some) == ["a", "", "b"]


@pytest.mark.parametrize("content", [b"", b"index\tname\n0\ta\n", b"label\na\n", b"\xff\xfe", b"index\tlabel\n9\ta\n"])
def test_what_is_no_table_of_labels_is_refused(content, tmp_path: Path):
    (tmp_path / "labels.tsv").write_bytes(content)
    with pytest.raises(InputError, match=r"labels\.tsv"):
        read_labels(tmp_path / "labels.tsv", spectra([[(100.0, 1.0)]], [500.0], [4]))
