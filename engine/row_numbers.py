"""Types of row indices, with which mypy reports a row of peptides that is used as a row of spectra. At run time each index is an int.

Arrays of row indices are arrays of plain integers; an index taken from such an array is converted to its type. Row indices of other tables
(matches, hits, members of clusters) are plain ints.
"""

from collections.abc import Callable, Sequence
from typing import NewType, TypeVar, cast

__all__ = ["ChainRow", "PeptideRow", "ProteinRow", "SpectrumRow", "row_range"]

PeptideRow = NewType("PeptideRow", int)
"""Row of a peptide, from 0: in a `PeptideIndex`, in `Identifications.peptides`, or in a run's table ``peptides``."""

SpectrumRow = NewType("SpectrumRow", int)
"""Row of a spectrum, from 0: in `Spectra`, in the `SpectrumTable` of a block, or in a run's table ``spectra``."""

ProteinRow = NewType("ProteinRow", int)
"""Row of a protein, from 0: in `Proteins`, in a `SequenceDatabase`, or in the table ``proteins`` of mapped evidence."""

ChainRow = NewType("ChainRow", int)
"""Row of a protein chain, from 0: in the `Chains` of structure files or of a structure database."""

Row = TypeVar("Row", PeptideRow, SpectrumRow, ProteinRow, ChainRow)


def row_range(kind: Callable[[int], Row], n: int) -> Sequence[Row]:
    """Return the row indices 0 to n - 1 with the type `kind`, without converting each index.

    Parameters
    ----------
    kind : type
        Type of the row indices, such as `PeptideRow`.
    n : int
        Number of rows of the table.

    Examples
    --------
    >>> list(row_range(ProteinRow, 3))
    [0, 1, 2]
    """
    return cast("Sequence[Row]", range(n))
