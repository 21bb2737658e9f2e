"""Observed and expected numbers of hits at E-values of the sequence search, for shuffled proteins of every composition.

    python -m benchmarks.sequence_statistics --data FOLDER [--every 8] shuffled [--queries 1000] > sequence_statistics.jsonl
    python -m benchmarks.sequence_statistics --data FOLDER [--every 8] peer [--queries 50] > peer.jsonl

A shuffled protein retains its composition but has no relatives, so that the expected number of hits per query up to an E-value equals this
E-value. Real proteins of five proteomes and of a database are classified by the residue with the largest excess over its usual share.
Proteins of each class are drawn, shuffled and searched against every n-th sequence of `mmseqs_DB.fasta`. One JSON line for each figure:

shuffled
    of a class: hits for a thousand queries at each E-value, with the E-values adjusted for composition and without; the half of the classes
    on which the adjustment was chosen, or on which it was verified. Of ``tuning`` and ``verification``: the mean of their classes.
peer
    of a class: the hits of blastp with its default composition-based statistics (Debian's ncbi-blast+) and of this program.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.figures import emit
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.sequence_search.scoring import score_all
from proteoscope.engine.sequences.composition import CompositionAdjustment, significant_hits
from proteoscope.engine.sequences.database import SequenceDatabase, decode, read_sequences
from proteoscope.engine.sequences.matrices import SYMBOLS, read_matrix
from proteoscope.engine.sequences.scheme import ScoringScheme
from proteoscope.engine.sequences.statistics import BACKGROUND, default_gap_costs, tabulated
from tests.peers.sequence_peers import run_peer

RESIDUES = "ACDEFGHIKLMNPQRSTVWY"
USUAL = "usual"
CLASSES = (*RESIDUES, USUAL)
E_VALUES = (1.0, 0.1, 0.01, 0.001)
LENGTHS = (60, 600)
_MINIMUM_EXCESS = 0.25
_SEED = 20251
QUERIES_TOGETHER, PEER_HITS = 100, 100_000


def half(name: str) -> str:
    """Return the half of the classes that a class belongs to: every second one was used to choose the adjustment."""
    return "tuning" if CLASSES.index(name) % 2 == 0 and name != USUAL else "verification"


def composition_classes(proteins: SequenceDatabase) -> np.ndarray:
    """Return the place in `CLASSES` of each protein, or -1 where it is too short, too long, or has an ambiguous residue.

    The excess of a residue is ``(share - usual share) / sqrt(usual share)``. A protein without an excess of at least a quarter is in the
    class of usual proteins.
    """
    codes = [SYMBOLS.index(residue) for residue in RESIDUES]
    owner, lengths = np.repeat(np.arange(len(proteins)), proteins.lengths), proteins.lengths
    counts = np.zeros((len(proteins), len(SYMBOLS)), np.int64)
    np.add.at(counts, (owner, proteins.residues), 1)
    counts, usual = counts[:, codes], BACKGROUND[codes]
    excess = (counts / np.maximum(lengths, 1)[:, None] - usual) / np.sqrt(usual)
    result = np.where(excess.max(axis=1) < _MINIMUM_EXCESS, CLASSES.index(USUAL), excess.argmax(axis=1))
    return np.where((lengths >= LENGTHS[0]) & (lengths <= LENGTHS[1]) & (counts.sum(axis=1) == lengths), result, -1)


@dataclass(frozen=True)
class Calibration:
    """Proteins to shuffle, with their classes, and the database to search."""

    proteins: SequenceDatabase
    classes: np.ndarray
    database: SequenceDatabase

    @classmethod
    def from_data(cls, data: Path, every: int, folder: Path) -> Calibration:
        """Read the proteins, and every n-th sequence of the database."""
        database_file = data / "sequences" / "mmseqs_DB.fasta"
        sources = [data / "proteomes" / "combo.fasta", data / "sequences" / "mmseqs_QUERY.fasta", database_file]
        proteins = read_sequences(sources, Progress())
        records = database_file.read_text().removeprefix(">").split("\n>")
        part = folder / "database.fasta"
        part.write_text("".join(f">{record.rstrip()}\n" for record in records[::every]))
        return cls(proteins, composition_classes(proteins), read_sequences([part], Progress()))

    def shuffled(self, name: str, n: int, seed: int = _SEED) -> list[np.ndarray]:
        """Return codes of `n` shuffled proteins of a class, some drawn twice where it has fewer."""
        place = CLASSES.index(name)
        generator, members = np.random.default_rng((seed, place)), np.flatnonzero(self.classes == place)
        chosen = generator.choice(members, n, replace=len(members) < n)
        return [generator.permutation(self.proteins.codes(int(i))) for i in chosen]

    def hits(self, queries: Sequence[np.ndarray], scheme: ScoringScheme, threads: int) -> dict[str, np.ndarray]:
        """Return the number of hits of all queries at each of `E_VALUES`, by ``adjusted`` and by ``plain`` E-values."""
        statistics, database, progress = tabulated(scheme), self.database, Progress()
        assert statistics is not None
        result = {name: np.zeros(len(E_VALUES), np.int64) for name in ("adjusted", "plain")}
        adjustments = {"adjusted": CompositionAdjustment(database, scheme), "plain": None}
        for start in range(0, len(queries), QUERIES_TOGETHER):
            some = queries[start : start + QUERIES_TOGETHER]
            all_scores = score_all(some, database.residues, database.offsets, scheme, threads, progress)
            for name, adjustment in adjustments.items():
                for hits in significant_hits(statistics, adjustment, database, some, all_scores, max(E_VALUES), threads, progress):
                    result[name] += [(hits.e_values <= e_value).sum() for e_value in E_VALUES]
        return result


def per_thousand(counts: np.ndarray, n: int) -> list[float]:
    """Return hits for a thousand queries."""
    return [round(float(count) * 1000 / n, 1) for count in counts]


def measure_shuffled(calibration: Calibration, matrix: str, n: int, threads: int) -> None:
    """Print the hits of each class of shuffled proteins, and their means over each half of the classes."""
    scheme = ScoringScheme(read_matrix(matrix), *default_gap_costs(matrix))
    settings = {"matrix": matrix, "queries": n, "subjects": len(calibration.database), "e_values": E_VALUES}
    by_half: dict[str, list[np.ndarray]] = {"tuning": [], "verification": []}
    for name in CLASSES:
        result = calibration.hits(calibration.shuffled(name, n), scheme, threads)
        by_half[half(name)].append(result["adjusted"])
        figures = {kind: per_thousand(counts, n) for kind, counts in result.items()}
        n_proteins = int((calibration.classes == CLASSES.index(name)).sum())
        emit({"figure": "shuffled", "composition": name, "half": half(name), "proteins": n_proteins}, **settings, **figures)
    for name, counts in by_half.items():
        emit({"figure": "shuffled", "composition": "mean", "half": name}, **settings, adjusted=per_thousand(np.mean(counts, axis=0), n))


def measure_peer(calibration: Calibration, folder: Path, n: int, threads: int) -> None:
    """Print the hits of each class with blastp's composition-based statistics and with this program's."""
    scheme = ScoringScheme(read_matrix("BLOSUM62"), 11, 1)
    for name in CLASSES:
        queries = calibration.shuffled(name, n)
        path = folder / "queries.fasta"
        path.write_text("".join(f">{k}\n{decode(query)}\n" for k, query in enumerate(queries)))
        hits, _ = run_peer("blastp", path, folder / "database.fasta", max(E_VALUES), PEER_HITS, threads, is_adjusted=True)
        theirs = np.array([sum(hit.e_value <= e_value for hit in hits) for e_value in E_VALUES])
        ours = calibration.hits(queries, scheme, threads)["adjusted"]
        figures = {"blastp": per_thousand(theirs, n), "adjusted": per_thousand(ours, n)}
        emit({"figure": "peer", "composition": name}, queries=n, e_values=E_VALUES, **figures)


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, type=Path, help="folder of the unpacked test data")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--every", type=int, default=8, help="search every n-th sequence of the database")
    commands = parser.add_subparsers(dest="command", required=True)
    shuffled = commands.add_parser("shuffled")
    shuffled.add_argument("--queries", type=int, default=1000, help="shuffled proteins of each class")
    shuffled.add_argument("--matrix", default="BLOSUM62")
    peer = commands.add_parser("peer")
    peer.add_argument("--queries", type=int, default=50, help="shuffled proteins of each class")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        calibration = Calibration.from_data(options.data, options.every, Path(name))
        if options.command == "shuffled":
            measure_shuffled(calibration, options.matrix, options.queries, options.threads)
        else:
            measure_peer(calibration, Path(name), options.queries, options.threads)


if __name__ == "__main__":
    main()
