"""Agreement of clusters with known labels, by common measures (The et al. 2016, J Proteome Res 15:713; falcon 2021)."""

import csv
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.errors import InputError
from proteoscope.engine.formats.sources import ByteSource
from proteoscope.engine.spectra.columns import Spectra

__all__ = ["Quality", "cluster_quality", "compared_with_labels", "majority_labels", "read_labels"]

_KEYS = ("spectrum_id", "title", "accession", "index")
_MAXIMUM_BYTES = 1 << 30


class Quality(NamedTuple):
    """Agreement of clusters with known labels.

    Attributes
    ----------
    labelled : int
        Number of labelled spectra.
    clustered : float
        Fraction of labelled spectra in clusters of at least two spectra.
    incorrect : float
        Fraction of the clustered labelled spectra whose label is not the most frequent label of their cluster.
    completeness : float
        Measure from 0 to 1, which is 1 if all spectra of each label are in one cluster.
    homogeneity : float
        Measure from 0 to 1, which is 1 if all spectra of each cluster have one label (Rosenberg & Hirschberg 2007).
    """

    labelled: int
    clustered: float
    incorrect: float
    completeness: float
    homogeneity: float


def read_labels(path: Path, spectra: Spectra) -> list[str]:
    """Return the label of each spectrum, '' if unknown.

    Raises
    ------
    InputError
        If the file has no column ``label``, no column that identifies spectra, or names none of these spectra.
    """
    remedy = f"A tab-separated table with the columns label and one of {', '.join(_KEYS)} is expected"
    with ByteSource(path) as source:
        data = source.read(_MAXIMUM_BYTES + 1)
    if len(data) > _MAXIMUM_BYTES:
        raise InputError(path, "is too large for a table of labels", remedy=remedy)
    try:
        lines = data.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise InputError(path, "expected text in UTF-8", remedy=remedy) from None
    header = lines[0].split("\t") if lines else []
    key = next((key for key in _KEYS if key in header), None)
    if "label" not in header or key is None:
        raise InputError(path, "has no such header", remedy=remedy)
    key_column, label_column = header.index(key), header.index("label")
    rows = [row for row in csv.reader(lines[1:], delimiter="\t") if len(row) > max(key_column, label_column)]
    label_of_key = {row[key_column]: row[label_column] for row in rows}
    names = [str(i) for i in range(len(spectra))] if key == "index" else spectra.identifier
    labels = [label_of_key.get(name, "") for name in names]
    if not any(labels):
        raise InputError(path, f"contains none of the spectra in its column '{key}'", remedy=remedy)
    return labels


def compared_with_labels(
    cluster: NDArray[np.int64], labels: list[str]
) -> tuple[Quality, tuple[list[str], NDArray[np.int64], NDArray[np.float64]]]:
    """Return the agreement of clusters with labels ('' if unknown), and the most frequent label of each cluster.

    The second value is a tuple: names of the distinct labels, index in these names of the most frequent label of each cluster, and its
    fraction (see `majority_labels`).
    """
    names, numbers = np.unique(labels, return_inverse=True)
    if not names[0]:
        names, numbers = names[1:], numbers - 1
    return cluster_quality(cluster, numbers), (names.tolist(), *majority_labels(cluster, numbers, int(cluster.max()) + 1))


def cluster_quality(cluster: NDArray[np.int64], labels: NDArray[np.int64]) -> Quality:
    """Return the agreement of clusters with labels.

    Parameters
    ----------
    cluster : ndarray of int64, shape (n,)
        Cluster of each spectrum.
    labels : ndarray of int64, shape (n,)
        Label of each spectrum, -1 if unknown.

    Returns
    -------
    Quality
    """
    has_label = labels >= 0
    n = int(has_label.sum())
    if n == 0:
        return Quality(0, 0.0, 0.0, 1.0, 1.0)
    _, of, size = np.unique(cluster, return_inverse=True, return_counts=True)
    pairs, count = np.unique(np.stack([of[has_label], labels[has_label]]), axis=1, return_counts=True)
    most = np.zeros(len(size), np.int64)
    np.maximum.at(most, pairs[0], count)
    of_cluster = np.bincount(of[has_label], minlength=len(size))
    several = size > 1
    n_clustered = int(of_cluster[several].sum())
    wrong = int((of_cluster - most)[several].sum())
    of_label = np.bincount(labels[has_label])
    joint = -_sum(count, n, count / of_cluster[pairs[0]])  # conditional entropy of the label, given the cluster
    other = -_sum(count, n, count / of_label[pairs[1]])
    labels_entropy, clusters_entropy = _entropy(of_label, n), _entropy(of_cluster, n)
    return Quality(
        n,
        n_clustered / n,
        wrong / max(1, n_clustered),
        1.0 if clusters_entropy == 0 else 1.0 - other / clusters_entropy,
        1.0 if labels_entropy == 0 else 1.0 - joint / labels_entropy,
    )


def majority_labels(
    cluster: NDArray[np.int64], labels: NDArray[np.int64], n_clusters: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the most frequent label of each cluster, and its fraction of the labelled members.

    Parameters
    ----------
    cluster : ndarray of int64, shape (n,)
        Cluster of each spectrum.
    labels : ndarray of int64, shape (n,)
        Label of each spectrum, -1 if unknown.
    n_clusters : int
        Number of clusters.

    Returns
    -------
    label : ndarray of int64, shape (n_clusters,)
        Most frequent label of each cluster (the smallest of several equally frequent labels); -1 without labels.
    fraction : ndarray of float64, shape (n_clusters,)
        Fraction of the labelled members with this label; NaN without labels.
    """
    has_label = labels >= 0
    pairs, count = np.unique(np.stack([cluster[has_label], labels[has_label]]), axis=1, return_counts=True)
    order = np.lexsort((pairs[1], -count, pairs[0]))
    first = order[np.unique(pairs[0][order], return_index=True)[1]]
    label = np.full(n_clusters, -1, np.int64)
    fraction = np.full(n_clusters, np.nan)
    label[pairs[0][first]] = pairs[1][first]
    fraction[pairs[0][first]] = count[first] / np.bincount(cluster[has_label], minlength=n_clusters)[pairs[0][first]]
    return label, fraction


def _entropy(count: NDArray[np.int64], n: int) -> float:
    some = count[count > 0]
    return -_sum(some, n, some / n)


def _sum(count: NDArray[np.int64], n: int, argument: NDArray[np.float64]) -> float:
    return float((count / n * np.log(argument)).sum())
