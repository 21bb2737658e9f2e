"""Homologues of each protein by exhaustive Smith-Waterman search in given sequences, and the conservation of its residues."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import ProteinRow, segment_offsets
from proteoscope.engine.evidence.identified_peptides import ProteinEntry
from proteoscope.engine.evidence.nearest_chains import align_proteins
from proteoscope.engine.evidence.parameters import EvidenceParameters
from proteoscope.engine.evidence.tables import HOMOLOGUES
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.project.run import Run
from proteoscope.engine.sequences.conservation import conservation
from proteoscope.engine.sequences.database import SequenceDatabase
from proteoscope.engine.sequences.hits import Hits, QueryHits
from proteoscope.engine.sequences.matrices import SYMBOLS, encode
from proteoscope.engine.sequences.stack import OUTSIDE, Stack

__all__ = ["FEWEST_HOMOLOGUES", "Conservation", "write_homologues"]

FEWEST_HOMOLOGUES = 3
"""Minimum number of homologues of a protein for which the conservation of its residues is computed."""
_GAP = ord("-")


@dataclass(frozen=True, eq=False)
class Conservation:
    """Conservation of residues among homologues; r is the number of residues of all proteins.

    Attributes
    ----------
    n_of_protein : ndarray of int64, shape (proteins,)
        Number of homologues of each protein.
    n_of_residue : ndarray of int64, shape (r,)
        Number of homologues that have a residue at each position, not a gap.
    of_residue : ndarray of float64, shape (r,)
        Jensen-Shannon divergence (`proteoscope.engine.sequences.conservation`), 0 to 1; NaN with fewer than `FEWEST_HOMOLOGUES`.
    """

    n_of_protein: NDArray[np.int64]
    n_of_residue: NDArray[np.int64]
    of_residue: NDArray[np.float64]


def write_homologues(
    proteins: Sequence[ProteinEntry], subjects: SequenceDatabase | None, parameters: EvidenceParameters, run: Run, resources: Resources
) -> Conservation:
    """Write the best homologues of each protein as they are found, and return the conservation of its residues.

    Sequences identical to the protein are excluded. Without sequences to search, the table is empty.

    Raises
    ------
    Cancelled
        If the user cancelled.
    StorageError
        If writing fails.
    """
    offsets = segment_offsets(np.array([len(protein.sequence) for protein in proteins], np.int64))
    result = Conservation(np.zeros(len(proteins), np.int64), np.zeros(offsets[-1], np.int64), np.full(offsets[-1], np.nan))
    with run.table_writer(HOMOLOGUES.name, HOMOLOGUES.schema()) as writer:
        if subjects is None:
            return result
        position = np.argsort(subjects.file_index)

        def take(batch: QueryHits) -> None:
            hits = _without_itself(batch.hits, proteins, subjects, position)
            writer.write(_rows(hits, proteins))
            for protein, of_protein in _hits_by_query(hits):
                resources.progress.check()
                rows, symbols = slice(int(offsets[protein]), int(offsets[protein + 1])), _stacked(proteins[protein], of_protein)
                result.n_of_protein[protein] = len(of_protein)
                result.n_of_residue[rows] = ((symbols[1:] != _GAP) & (symbols[1:] != OUTSIDE)).sum(axis=0)
                result.of_residue[rows] = conservation(symbols) if len(of_protein) >= FEWEST_HOMOLOGUES else np.nan

        align_proteins(proteins, subjects, parameters.homologues_per_protein, parameters.maximum_e_value, resources, take)
    if not result.n_of_protein.any():
        resources.progress.message("No protein has a homologue among the sequences given: conservation is not shown", "warning")
    return result


def _without_itself(hits: Hits, proteins: Sequence[ProteinEntry], subjects: SequenceDatabase, position: NDArray[np.int64]) -> Hits:
    """Return the hits except those of sequences that equal the protein, regardless of their names.

    Parameters
    ----------
    hits : Hits
        Hits of the proteins.
    proteins : sequence of ProteinEntry
        Proteins of the run.
    subjects : SequenceDatabase
        Sequences to align with.
    position : ndarray of int64
        Index in `subjects` of each sequence; `hits.subject_index` numbers the sequences as in the files.
    """
    # The alignment cannot decide this: unknown residues match nothing and are omitted at the ends.
    is_itself = hits.query_length == hits.subject_length
    rows = np.flatnonzero(is_itself)
    numbers: list[ProteinRow] = position[hits.subject_index[rows]].tolist()
    for row, number in zip(rows.tolist(), numbers, strict=True):
        query = np.frombuffer(proteins[int(hits.query_index[row])].sequence.encode(), np.uint8)
        is_itself[row] = np.array_equal(_replace_unknown(encode(query)), _replace_unknown(subjects.codes(number)))
    return hits.taken(np.flatnonzero(~is_itself)) if is_itself.any() else hits


def _replace_unknown(codes: NDArray[np.int8]) -> NDArray[np.int8]:
    """Return residue codes with the code of ``*`` replaced by that of X, since the sequences of `ProteinEntry` have X."""
    return np.where(codes == SYMBOLS.index("*"), SYMBOLS.index("X"), codes).astype(np.int8)


def _hits_by_query(hits: Hits) -> Iterator[tuple[int, Hits]]:
    """Yield the hits of each query with its index; hits of a query are consecutive."""
    cuts = [0, *(np.flatnonzero(np.diff(hits.query_index)) + 1).tolist(), len(hits)]
    for first, last in pairwise(cuts):
        if first < last:
            yield int(hits.query_index[first]), hits.part(slice(first, last))


def _stacked(entry: ProteinEntry, hits: Hits) -> NDArray[np.uint8]:
    """Return the residues of a protein and the aligned residues of its homologues, (1 + homologues, residues) uint8."""
    stack = Stack.from_subjects(entry.accession, entry.description, entry.sequence, hits.aligned)
    return stack.symbols[:, ~stack.is_opened]


def _rows(hits: Hits, proteins: Sequence[ProteinEntry]) -> pa.Table:
    columns = {name: getattr(hits, name) for name in HOMOLOGUES.by_name if hasattr(hits, name)}
    for name in ("subject", "description", "aligned_query", "aligned_subject"):
        columns[name] = columns[name].arrow()
    accessions = [proteins[number].accession for number in hits.query_index.tolist()]
    return HOMOLOGUES.arrow({"protein": hits.query_index, "accession": accessions, **columns})
