"""Positions of peptides in the proteins that results name or, without these, in those of the database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import run_offsets
from proteoscope.engine.errors import shortened
from proteoscope.engine.formats.proteins import Proteins
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.matches.match_lists.identifications import Identifications
from proteoscope.engine.peptides.occurrences import find_occurrences
from proteoscope.engine.row_numbers import ProteinRow, row_range

__all__ = ["PlacedPeptides", "cut_off_proteins", "place_peptides"]


class PlacedPeptides(NamedTuple):
    """Places of m pairs of a peptide and a protein.

    Attributes
    ----------
    offsets, protein
        CSR over p peptides, int64: numbers of proteins, into `accessions`, ascending as the results name them.
    accessions
        Of the proteins.
    row : (proteins,) int64
        In the database, -1 where that has not the protein.
    start : (m,) int64
        First residue in the sequence, from 0; -1 where the sequence is not known, or does not hold the peptide.
    from_database
        Peptides whose proteins the results do not name, and that the database holds.
    """

    offsets: NDArray[np.int64]
    protein: NDArray[np.int64]
    accessions: tuple[str, ...]
    row: NDArray[np.int64]
    start: NDArray[np.int64]
    from_database: int


def place_peptides(
    sequences: Sequence[str],
    offsets: NDArray[np.int64],
    protein: NDArray[np.int64],
    accessions: Sequence[str],
    database: Proteins | None,
    progress: Progress,
) -> PlacedPeptides:
    """Find peptides in their proteins; leucine and isoleucine, of equal mass, match.

    Parameters
    ----------
    sequences
        P peptides.
    offsets, protein
        CSR, the proteins that results name of each, into `accessions`.
    """
    if database is None:
        unknown = np.full(len(protein), -1, np.int64)
        return PlacedPeptides(offsets, protein, tuple(accessions), np.full(len(accessions), -1, np.int64), unknown, 0)
    row = _rows(accessions, database)
    alike = bytes(database.residues).replace(b"I", b"L")
    wanted = [sequence.replace("I", "L").encode() for sequence in sequences]
    bounds = database.offsets
    owner = np.repeat(np.arange(len(sequences)), np.diff(offsets)).tolist()
    start = np.full(len(protein), -1, np.int64)
    progress.stage("Placing peptides in proteins", len(protein))
    begins, ends = bounds[:-1].tolist(), bounds[1:].tolist()
    # One search in one sequence for each pair of a peptide and its protein; no pair repeats.
    for pair, (peptide, number) in enumerate(zip(owner, row[protein].tolist(), strict=True)):
        if number >= 0:
            at = alike.find(wanted[peptide], begins[number], ends[number])
            if at >= 0:
                start[pair] = at - begins[number]
        if pair % 8192 == 8191:
            progress.advance(8192)
    named = PlacedPeptides(offsets, protein, tuple(accessions), row, start, 0)
    nameless = np.flatnonzero(np.diff(offsets) == 0)
    if not len(nameless):
        return named
    codes: dict[bytes, int] = {}
    code = np.array([codes.setdefault(wanted[i], len(codes)) for i in nameless.tolist()], np.int64)
    of_code, rows, starts = _found_anywhere(list(codes), alike, bounds, progress)
    # Peptides that differ by leucine and isoleucine alone have the same places.
    begin, end = (np.searchsorted(of_code, code, side) for side in ("left", "right"))
    counts = end - begin
    at = np.arange(counts.sum()) + np.repeat(begin - (np.cumsum(counts) - counts), counts)
    return _with_found(named, np.repeat(nameless, counts), rows[at], starts[at], database)


def cut_off_proteins(identifications: Identifications, database: Proteins) -> list[str]:
    """Return a sentence for each file that ends in a protein name missing from the database without a line end, a sign of truncation.

    Nothing is returned if no other name is in the database either, nor for decoys, which it does not contain.
    """
    if not identifications.unended:
        return []
    whole = [database.accession(i) for i in row_range(ProteinRow, len(database))]
    accessions = {*whole, *(part for name in whole for part in name.split("|"))}
    last = {
        row: int(identifications.protein[identifications.protein_offsets[row + 1] - 1])
        for row in identifications.unended
        if _n_proteins(identifications, row)
    }
    if not any(name in accessions for number, name in enumerate(identifications.accessions) if number not in last.values()):
        return []
    return [
        f"{identifications.files[identifications.file[row]]}: line {identifications.place[row]}, the last, has no end, and its protein"
        f" {shortened(identifications.accessions[number])} is not in the database: the file may be cut off"
        for row, number in last.items()
        if identifications.accessions[number] not in accessions and identifications.is_decoy[row] != 1
    ]


def _n_proteins(identifications: Identifications, row: int) -> int:
    return int(identifications.protein_offsets[row + 1] - identifications.protein_offsets[row])


def _rows(accessions: Sequence[str], database: Proteins) -> NDArray[np.int64]:
    """Row of each protein in the database, by its accession, or the part of it between bars (``P02769`` of ``sp|P02769|ALBU_BOVIN``)."""
    whole = {database.accession(i): i for i in row_range(ProteinRow, len(database))}
    parts: dict[str, int] = {}
    for name, i in whole.items():
        for part in name.split("|")[1:] if "|" in name else ():
            parts[part] = i if part not in parts or not part else -1
    result = []
    for accession in accessions:
        number = whole.get(accession, whole.get(accession.split()[0] if accession.split() else "", -1))
        if number < 0:
            number = parts.get(accession, -1)
        if number < 0 and accession.count("|") >= 2:
            number = whole.get(accession.split("|")[1], -1)
        result.append(number)
    return np.array(result, np.int64)


def _found_anywhere(
    peptides: list[bytes], residues: bytes, bounds: NDArray[np.int64], progress: Progress
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return all first positions of peptides in each protein: peptide number, protein row, start."""
    peptide, protein, start = find_occurrences(peptides, residues, bounds, progress)
    is_first = np.append(True, (np.diff(peptide) != 0) | (np.diff(protein) != 0))[: len(peptide)]
    return peptide[is_first], protein[is_first], start[is_first]


def _with_found(
    named: PlacedPeptides, peptide: NDArray[np.int64], row: NDArray[np.int64], start: NDArray[np.int64], database: Proteins
) -> PlacedPeptides:
    """Add positions found in the database."""
    number_of = {int(number): i for i, number in enumerate(named.row.tolist()) if number >= 0}
    accessions, rows = list(named.accessions), named.row.tolist()
    numbers = []
    for result in row.tolist():
        if result not in number_of:
            number_of[result] = len(accessions)
            accessions.append(database.accession(result))
            rows.append(result)
        numbers.append(number_of[result])
    n = len(named.offsets) - 1
    owner = np.concatenate((np.repeat(np.arange(n), np.diff(named.offsets)), peptide))
    protein = np.concatenate((named.protein, np.array(numbers, np.int64)))
    order = np.argsort(owner, kind="stable")
    return PlacedPeptides(
        run_offsets(np.bincount(owner, minlength=n)),
        protein[order],
        tuple(accessions),
        np.array(rows, np.int64),
        np.concatenate((named.start, start))[order],
        len(np.unique(peptide)),
    )
