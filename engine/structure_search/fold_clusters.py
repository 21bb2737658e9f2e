"""Clusters of chains with the same fold: each chain is assigned to a representative chain by the TM-scores of all pairs of chains.

Representatives are chosen greedily, as by qTMclust (Zhang et al., Nature Methods 19, 2022, 1109-1115): the longest chain is the first one;
every further chain joins a longer representative of the same fold, or else becomes a representative. Two chains have the same fold if the
TM-score normalised by the longer chain is at least 0.5 (Xu & Zhang, Bioinformatics 26, 2010, 889-895). Unlike single linkage, this does not
join chains that are related only through other chains. Unlike average linkage, it guarantees a minimum TM-score with the representative,
and needs only the pairs above the threshold, not a matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.files import atomic_file
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.project.run import Run
from proteoscope.engine.results.separated import UNQUOTED, header_line, separated_lines
from proteoscope.engine.structure_search.hits import StructureQueryHits
from proteoscope.engine.structure_search.structures import DescribedChains
from proteoscope.engine.structure_search.tables import CLUSTERS

__all__ = ["SAME_FOLD", "cluster_table", "cluster_writer", "fold_representatives"]

SAME_FOLD = 0.5
"""Minimum TM-score, normalised by the longer chain, of a chain with its representative."""


def fold_representatives(
    priority: NDArray[np.int64], first: NDArray[np.int64], second: NDArray[np.int64], scores: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the representative of each chain, and the score of the chain with it (1 for representatives).

    Parameters
    ----------
    priority : ndarray of int64, shape (n,)
        Priority of each chain, a permutation of 0 to n - 1: chains with smaller numbers become representatives first.
    first, second : ndarray of int64, shape (k,)
        Indices of the chains of each pair that may be in one cluster.
    scores : ndarray, shape (k,)
        Score of each pair.

    Examples
    --------
    >>> chains, scores = fold_representatives(np.arange(4), np.array([0, 1, 2]), np.array([1, 2, 3]), np.array([0.6, 0.9, 0.7]))
    >>> chains.tolist(), scores.tolist()
    ([0, 0, 2, 2], [1.0, 0.6, 1.0, 0.7])
    """
    n, is_turned = len(priority), priority[first] > priority[second]
    before, after = np.where(is_turned, second, first), np.where(is_turned, first, second)
    is_representative, is_open = np.zeros(n, np.bool_), np.ones(n, np.bool_)
    left = np.flatnonzero(before != after)
    # Chains that no undecided chain precedes are decided together, with the same result as one after the other.
    while is_open.any():
        waits = np.zeros(n, np.bool_)
        waits[after[left]] = True
        chosen = is_open & ~waits
        is_representative |= chosen
        is_open &= ~chosen
        is_open[after[left][chosen[before[left]]]] = False
        left = left[is_open[before[left]] & is_open[after[left]]]
    joins = np.flatnonzero(is_representative[before] & ~is_representative[after])
    best = joins[np.lexsort((priority[before[joins]], -scores[joins]))][::-1]  # of several values for an index, the last one counts
    representative: NDArray[np.int64] = np.arange(n)
    score: NDArray[np.float64] = np.ones(n)
    representative[after[best]], score[after[best]] = before[best], scores[best]
    return representative, score


def cluster_table(chains: DescribedChains, pairs: NDArray[np.int64], scores: NDArray[np.float64]) -> pa.Table:
    """Return the table of clusters, with a row per chain: the largest cluster first, and in each cluster the representative first.

    Parameters
    ----------
    chains : DescribedChains
        All chains (n).
    pairs : ndarray of int64, shape (k, 2)
        Pairs of chains with a TM-score of at least `SAME_FOLD`, as indices in the order of the files.
    scores : ndarray, shape (k,)
        TM-score of each pair, normalised by the longer chain.
    """
    n = len(chains)
    place = np.argsort(chains.file_order)  # indices of the chains in the order of the files
    lengths = chains.chains.lengths[place]
    priority = np.argsort(np.lexsort((np.arange(n), -lengths)))
    representative, score = fold_representatives(priority, pairs[:, 0], pairs[:, 1], scores)
    sizes = np.bincount(representative, minlength=n)[representative]
    order = np.lexsort((np.arange(n), -score, representative != np.arange(n), representative, -sizes))
    is_first = representative[order] == order
    names = pa.array(list(map(chains.chains.names.__getitem__, place.tolist())), pa.string())
    return CLUSTERS.arrow(
        {
            "cluster": np.cumsum(is_first),
            "size": sizes[order],
            "representative": names.take(representative[order]),
            "chain": names.take(order),
            "length": lengths[order],
            "tm_score": score[order],
            "chain_index": order,
        }
    )


@contextmanager
def cluster_writer(run: Run | None, path: Path | None, chains: DescribedChains) -> Iterator[list[Callable[[StructureQueryHits], None]]]:
    """Collect the pairs of hits with the same fold; write the table of clusters when the ``with`` block ends without an error.

    Parameters
    ----------
    run : Run or None
        Run that stores the table; None without a project.
    path : Path or None
        File of the table; None for no file.
    chains : DescribedChains
        All chains.

    Yields
    ------
    list of callable
        Function to call with the hits of each chain; the list is empty without a run and a file.
    """
    if run is None and path is None:
        yield []
        return
    pairs: list[NDArray[np.int64]] = [np.empty((0, 2), np.int64)]
    scores: list[NDArray[np.float64]] = [np.empty(0)]

    def add(hits: StructureQueryHits) -> None:
        by_query, by_target, lengths, targets = (
            hits.hits[name].to_numpy() for name in ("tm_score_query", "tm_score_target", "target_length", "target_index")
        )
        by_longer = np.where(lengths > len(hits.sequence), by_target, by_query)
        is_alike = by_longer >= SAME_FOLD
        pairs.append(np.stack([np.full(int(is_alike.sum()), hits.index), targets[is_alike].astype(np.int64)], axis=1))
        scores.append(by_longer[is_alike])

    yield [add]
    table = cluster_table(chains, np.concatenate(pairs), np.concatenate(scores))
    if run is not None:
        run.write_table(CLUSTERS.name, table)
    if path is None:
        return
    with atomic_file(path) as file:
        file.write(header_line(CLUSTERS.saved_columns))
        file.write(separated_lines(table, CLUSTERS.saved_columns, UNQUOTED))
