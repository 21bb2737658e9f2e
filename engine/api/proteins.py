"""Protein sequences for scripts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import overload

from proteoscope.engine import formats, views
from proteoscope.engine.api.arguments import OnProgress, progress_of
from proteoscope.engine.arrays import ProteinRow
from proteoscope.engine.errors import ParameterError
from proteoscope.engine.formats.proteins import Proteins
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.searches import Files, paths_of

__all__ = ["Protein", "ProteinList", "read_fasta"]


@dataclass(frozen=True)
class Protein:
    """A protein: the first word of its header, the rest of the header, and its sequence."""

    accession: str
    description: str
    sequence: str

    def __len__(self) -> int:
        return len(self.sequence)

    def __repr__(self) -> str:
        return f"Protein({self.accession}: {len(self):,} residues)"


class ProteinList:
    """Proteins of files, which `read_fasta` returns.

    Attributes
    ----------
    columns : Proteins
        All sequences and headers as arrays.
    """

    def __init__(self, columns: Proteins, rows: range | None = None) -> None:
        self.columns, self._rows = columns, range(len(columns)) if rows is None else rows

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, number: int) -> Protein: ...

    @overload
    def __getitem__(self, number: slice) -> ProteinList: ...

    def __getitem__(self, number: int | slice) -> Protein | ProteinList:
        if isinstance(number, slice):
            return ProteinList(self.columns, self._rows[number])
        row = ProteinRow(self._rows[number])
        return Protein(self.columns.accession(row), self.columns.description(row), self.columns.sequence(row))

    def __iter__(self) -> Iterator[Protein]:
        return (self[number] for number in range(len(self)))

    def find(self, accession: str) -> Protein:
        """Return the first protein with the given accession.

        Raises
        ------
        ParameterError
            If there is no such protein.
        """
        wanted = next((protein for protein in self if protein.accession == accession), None)
        if wanted is None:
            raise ParameterError(f"no protein has the accession {accession!r:.100}")
        return wanted

    def to_arrow(self) -> pa.Table:
        """Return a table with the columns ``accession``, ``description`` and ``sequence``."""
        names = ("accession", "description", "sequence")
        return pa.table({name: [getattr(protein, name) for protein in self] for name in names})

    def __repr__(self) -> str:
        return f"ProteinList({len(self):,} proteins)"

    def _repr_html_(self) -> str:
        rows = [(protein.accession, protein.description, f"{len(protein):,}") for protein in self[:10]]
        return f"<p><b>{self!r}</b></p>{views.html_pages.rows_table(('Accession', 'Description', 'Residues'), rows)}"


def read_fasta(files: Files, *, progress: OnProgress = None) -> ProteinList:
    """Read protein sequences from FASTA, or from another format with proteins.

    Parameters
    ----------
    files : str, Path or iterable of these
        FASTA, UniProt (text or XML), GenBank or EMBL files, also gzipped.
    progress : callable or Progress, optional
        Receives each `ProgressEvent`.

    Returns
    -------
    ProteinList
        Proteins in the order of the files, without repeated records.

    Raises
    ------
    InputError
        If a file cannot be used; the message gives the line.

    Examples
    --------
    >>> import proteoscope
    >>> from proteoscope.resources import path
    >>> proteins = proteoscope.read_fasta(path("samples", "protein_queries.fasta"))
    >>> proteins[0].accession, len(proteins[0])
    ('1AO6_A', 578)
    """
    return ProteinList(formats.read_proteins(paths_of("files", files), progress=progress_of(progress)))
