"""Positions of peptides in the proteins that the result file names, or, if it names none, in proteins of the database."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import ProteinRow, is_group_start, ranges, row_range, segment_offsets
from proteoscope.engine.errors import shortened
from proteoscope.engine.formats.proteins import Proteins
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.matches.match_lists.identifications import Identifications
from proteoscope.engine.peptides.occurrences import find_occurrences

__all__ = ["PlacedPeptides", "cut_off_proteins", "place_peptides"]


class PlacedPeptides(NamedTuple):
    """Positions of p peptides in proteins, with one position for each of m pairs of a peptide and a protein.

    Attributes
    ----------
    offsets : ndarray of int64, shape (p + 1,)
        Start of each peptide's pairs, followed by m.
    protein : ndarray of int64, shape (m,)
        Index of each pair's protein in `accessions`; ascending within a peptide for proteins that the results name.
    accessions : tuple of str
        Accessions of the proteins.
    row : ndarray of int64, shape (accessions,)
        Database row, or -1 if the database does not contain the protein.
    start : ndarray of int64, shape (m,)
        First residue of the peptide in the protein, from 0; -1 if the sequence is unknown or does not contain the peptide.
    from_database : int
        Number of peptides without proteins in the results whose proteins were found in the database.
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
    """Find the positions of peptides in their proteins; leucine and isoleucine are considered equal.

    Parameters
    ----------
    sequences : sequence of str, length p
        Distinct peptide sequences.
    offsets : ndarray of int64, shape (p + 1,)
        Start of each peptide's proteins in `protein`, followed by the length of `protein`.
    protein : ndarray of int64
        Proteins given in the results, as indices into `accessions`.
    accessions : sequence of str
        Accessions of the proteins.
    database : Proteins or None
        None leaves all positions unknown.
    progress : Progress
        Progress of the run.

    Returns
    -------
    PlacedPeptides
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
    # Search each distinct pair of a peptide and a protein once.
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
    # Peptides that differ only by leucine and isoleucine have the same positions.
    begin, end = (np.searchsorted(of_code, code, side) for side in ("left", "right"))
    indices = ranges(begin, end)[1]
    return _with_found(named, np.repeat(nameless, end - begin), rows[indices], starts[indices], database)


def cut_off_proteins(identifications: Identifications, database: Proteins) -> list[str]:
    """Return a warning for each file whose last accession seems to be truncated.

    There is a warning if the final line break is missing and the last accession is not in the database. There is no warning if the last
    match is a decoy, since databases usually lack decoys, or if the database contains no other accession of the files.
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
        f"{identifications.files[identifications.file[row]]}: line {identifications.place[row]}, the last, has no line end, and its protein"
        f" {shortened(identifications.accessions[number])} is not in the database: the file may be cut off"
        for row, number in last.items()
        if identifications.accessions[number] not in accessions and identifications.is_decoy[row] != 1
    ]


def _n_proteins(identifications: Identifications, row: int) -> int:
    return int(identifications.protein_offsets[row + 1] - identifications.protein_offsets[row])


def _rows(accessions: Sequence[str], database: Proteins) -> NDArray[np.int64]:
    """Return the database row of each accession; -1 if the accession is missing or ambiguous.

    Accessions are compared as a whole or by the components between bars (``P02769`` of ``sp|P02769|ALBU_BOVIN``).
    """
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
    """Return the first occurrence of each peptide in each protein that contains it, as arrays: peptide index, protein row and start."""
    peptide, protein, start = find_occurrences(peptides, residues, bounds, progress)
    is_first = is_group_start(peptide, protein)
    return peptide[is_first], protein[is_first], start[is_first]


def _with_found(
    named: PlacedPeptides, peptide: NDArray[np.int64], row: NDArray[np.int64], start: NDArray[np.int64], database: Proteins
) -> PlacedPeptides:
    """Return the positions `named` and the positions found in the database (`peptide`, `row`, `start`) together."""
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
        segment_offsets(np.bincount(owner, minlength=n)),
        protein[order],
        tuple(accessions),
        np.array(rows, np.int64),
        np.concatenate((named.start, start))[order],
        len(np.unique(peptide)),
    )
