"""Quality and speed of the structure search in ranking labelled chains, all against all.

    python -m benchmarks.structures --data FOLDER [--modes sensitive published] [--folds 5] [--threads N]

`FOLDER/structures/bench_ca` contains chains with SCOPe classes; the single-domain chains of up to 450 residues are searched with each
other. The superfamilies are divided into five folds for cross-validation. For each fold the sensitive mode is trained without the
superfamilies of the fold, and evaluated on queries of the fold; the shipped alphabets are used, since they were trained without labels.

Printed, and added to `benchmarks/results/structures.jsonl`, for each fold and for all queries: precision at 1 (same superfamily, of
queries that have such a partner), and the share of true partners before the first chain of another fold, averaged over the queries that
have any: of the same family, of the same superfamily but another family, of the same fold but another superfamily. `sequence_share`:
the part of the log-odds of aligned relatives that is sequence.
"""

from __future__ import annotations

import argparse
import csv
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.structure_tables import aligned_residues, learned_tables
from proteoscope.engine.execution.executor import Executor
from proteoscope.engine.execution.resources import Resources, available_threads
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.structure_search.candidates import Comparison
from proteoscope.engine.structure_search.hits import query_hits
from proteoscope.engine.structure_search.parameters import StructureSearchParameters
from proteoscope.engine.structure_search.scoring import build_workload
from proteoscope.engine.structure_search.structures import ChainSource, DescribedChains, read_chains
from proteoscope.engine.structures.rewards import SensitiveTables, sensitive_tables
from proteoscope.engine.version import VERSION
from tests.engine.structures.examples import codes_of

__all__ = ["Labels", "folds_of", "labelled_chains", "ranking_figures"]

RESULTS = Path(__file__).with_name("results") / "structures.jsonl"
_LONGEST = 450
_N_FOLDS = 5
_OF_SHARE = 10  # the alignments of one query in ten are inspected


@dataclass(frozen=True)
class Labels:
    """(n,) SCOPe classes of chains: family, superfamily and fold."""

    family: NDArray
    superfamily: NDArray
    fold: NDArray

    @classmethod
    def of(cls, classes: Sequence[str]) -> Labels:
        """Return labels from concise classification strings such as ``a.4.5.1``."""
        parts = [class_name.split(".") for class_name in classes]
        return cls(np.array(classes), np.array([".".join(part[:3]) for part in parts]), np.array([".".join(part[:2]) for part in parts]))


def labelled_chains(folder: Path, threads: int, longest: int | None = _LONGEST) -> tuple[DescribedChains, Labels]:
    """Return the single-domain chains up to 450 residues, or another number of them, in order of length, and their classes."""
    with (folder / "labels.tsv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file, delimiter="\t") if row["single_domain_whole_chain"] == "1"]
    rows = [row for row in rows if longest is None or int(row["length"]) <= longest]
    chains = read_chains([ChainSource(folder / "pdb" / f"{row['chain']}.pdb") for row in rows], Progress(), threads)
    return chains, Labels.of([rows[i]["sccs"] for i in chains.file_order.tolist()])


def folds_of(superfamily: NDArray, n: int = _N_FOLDS) -> NDArray[np.int64]:
    """Return a cross-validation fold for each chain: superfamilies are not divided, the largest first, each to the smallest fold."""
    names, counts = np.unique(superfamily, return_counts=True)
    chosen, filled = {}, [0] * n
    for name, count in sorted(zip(names.tolist(), counts.tolist(), strict=True), key=lambda item: (-item[1], item[0])):
        chosen[name] = filled.index(min(filled))
        filled[chosen[name]] += count
    return np.array([chosen[name] for name in superfamily.tolist()])


def ranking_figures(rankings: dict[int, NDArray[np.int64]], labels: Labels) -> dict[str, float]:
    """Return figures of queries, given the other chains in the order in which each query ranks them."""
    family, superfamily, fold, first = [], [], [], []
    for query, order in rankings.items():
        is_fold = labels.fold[order] == labels.fold[query]
        is_superfamily = labels.superfamily[order] == labels.superfamily[query]
        is_family = labels.family[order] == labels.family[query]
        before = np.arange(len(order)) < (len(order) if is_fold.all() else int(is_fold.argmin()))
        for hits, partners in ((family, is_family), (superfamily, is_superfamily & ~is_family), (fold, is_fold & ~is_superfamily)):
            if partners.any():
                hits.append((partners & before).sum() / partners.sum())
        if is_superfamily.any():
            first.append(float(is_superfamily[0]))
    means = [round(float(np.mean(values)), 3) if values else float("nan") for values in (first, family, superfamily, fold)]
    return dict(zip(("precision_at_1", "family", "superfamily", "fold"), means, strict=True))


def rankings_of(comparison: Comparison, queries: Sequence[int], n: int) -> dict[int, NDArray[np.int64]]:
    """Return all other chains in order: the reported hits, then the others by z-score (published mode: by score)."""
    place = np.empty(n, np.int64)
    place[comparison.database.file_order] = np.arange(n)
    rankings = {}
    for i in queries:
        hits = query_hits(comparison, [i])[0]
        by = np.where(hits.scores >= 0, hits.z_scores if comparison.is_sensitive else hits.scores, -np.inf)
        ahead = place[hits.hits["target_index"].to_numpy()].tolist()
        taken = set(ahead)
        order = np.array(ahead + [k for k in np.argsort(-by, kind="stable").tolist() if k not in taken])
        rankings[i] = order[order != i]
    return rankings


def sequence_share(comparison: Comparison, queries: Sequence[int], labels: Labels, place: NDArray[np.int64]) -> float:
    """Return the part of the log-odds, without the constant, of residues in the aligned pairs of hits of the query's superfamily."""
    tables = sensitive_tables()
    sums = dict.fromkeys(tables.tables, 0.0)
    query_chains, others = comparison.queries.arrays, comparison.database.arrays
    for i in queries:
        hits = query_hits(comparison, [i])[0]
        for index, alignment in zip(hits.hits["target_index"].to_pylist(), hits.aligned, strict=True):
            target = int(place[index])
            if target == i or labels.superfamily[target] != labels.superfamily[i]:
                continue
            for name, table in tables.tables.items():
                first, second = codes_of(query_chains.chain(i), name), codes_of(others.chain(target), name)
                sums[name] += tables.weights[name] * table[first[alignment.pairs[:, 0]], second[alignment.pairs[:, 1]]].sum()
    return sums["residue"] / sum(sums.values())


def measured(chains: DescribedChains, labels: Labels, mode: str, threads: int, n_folds: int) -> list[dict[str, object]]:
    """Return rows of figures, one for each fold and one for all folds."""
    folds, n = folds_of(labels.superfamily), len(chains)
    parameters = StructureSearchParameters().changed(mode=mode, hits_per_query=100)
    resources = Resources(threads)
    aligned = aligned_residues(chains, labels.fold, threads) if mode == "sensitive" else None
    rows, everyone, seconds, share = [], {}, 0.0, {}
    place = np.argsort(chains.file_order)
    for fold in range(n_folds):
        tables = None
        if aligned is not None:
            tables = SensitiveTables.from_json(learned_tables(chains.arrays, aligned.among(folds != fold, chains.chains.offsets)))
        began = time.perf_counter()
        with Executor(resources).session(build_workload(chains.arrays)) as session:
            hits = rankings_of(
                Comparison(chains, chains, parameters, session, resources, tables=tables), np.flatnonzero(folds == fold).tolist(), n
            )
        seconds += time.perf_counter() - began
        everyone |= hits
        rows.append({"mode": mode, "held_out": fold, "queries": len(hits), **ranking_figures(hits, labels)})
        print(json.dumps(rows[-1]), flush=True)
    if mode == "sensitive":
        # Alignments with the bundled tables; a tenth of the queries suffices.
        with Executor(resources).session(build_workload(chains.arrays)) as session:
            every = Comparison(chains, chains, parameters, session, resources)
            share = {"sequence_share": round(sequence_share(every, range(0, n, _OF_SHARE), labels, place), 3)}
    rows.append(
        {
            "mode": mode,
            "held_out": "all",
            "queries": len(everyone),
            **ranking_figures(everyone, labels),
            **share,
            "seconds": round(seconds, 1),
            "threads": threads,
            "version": VERSION,
        }
    )
    print(json.dumps(rows[-1]), flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--modes", nargs="+", choices=("sensitive", "published"), default=["sensitive", "published"])
    parser.add_argument("--folds", type=int, default=_N_FOLDS, metavar="N", help="measure only the first N")
    parser.add_argument("--threads", type=int, default=available_threads())
    options = parser.parse_args()
    chains, labels = labelled_chains(options.data / "structures" / "bench_ca", options.threads)
    for mode in options.modes:
        rows = measured(chains, labels, mode, options.threads, options.folds)
        with RESULTS.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows if row["held_out"] == "all" or options.folds == _N_FOLDS)


if __name__ == "__main__":
    main()
