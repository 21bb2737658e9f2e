"""Decoys for a spectral library: spectra of shuffled peptides.

The residues of a peptide are shuffled, and the peaks explained by its fragments are moved to the fragments of the shuffled peptide (Lam,
Deutsch & Aebersold 2010, J Proteome Res 9:605). If the library contains decoys, these are used instead. No decoys are created for small
molecules, since no tested method counted their false matches correctly; without decoys, they have no error rate.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import take_segments
from proteoscope.engine.chemistry.enzymes import enzyme
from proteoscope.engine.chemistry.noted_peptides import NotedPeptide, parse_peptide
from proteoscope.engine.chemistry.series_choice import BY_ACTIVATION
from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.matches.identified_spectra import Identified, shuffled_spectra
from proteoscope.engine.matches.match_lists.matches import ListedPeptides, listed_peptides
from proteoscope.engine.spectra.columns import Spectra
from proteoscope.engine.spectra.spectral_library import SpectralLibrary

__all__ = ["LibraryPeptides", "decoys_per_peptide", "library_peptides", "shuffled_references"]

_SHORTEST = 4  # residues: shorter peptides cannot be shuffled
_ENTRIES_AT_ONCE = 20_000
_MOST, _ENOUGH = 40, 500
_SEVERAL, _ENOUGH_OF_MANY = 10, 20_000
_MOST_IN_ALL = 1_000_000  # so that an index of many spectra of few peptides stays small


def decoys_per_peptide(n_peptides: int, n_entries: int) -> int:
    """Return the number of decoys to create for each peptide of a library.

    With d decoys per peptide, the lowest false discovery rate of n accepted peptides is 1 / (d n), so 1 % needs n = 100 / d peptides. The
    returned d makes this n at most a fifth of a library of 13 to 50 peptides, and ten for a library of 50 to 2,000 peptides. Libraries of
    20,000 peptides or more, or of more than 500,000 entries, have one decoy per peptide.

    At most 40 decoys are created, since further decoys detect few additional false matches: if an unrelated peptide resembles a spectrum,
    it scores higher than all of 40 shuffled peptides nearly as often as it scores higher than 4.

    Parameters
    ----------
    n_peptides : int
        Number of distinct peptides.
    n_entries : int
        Number of entries.

    Examples
    --------
    >>> [decoys_per_peptide(n, 2 * n) for n in (1, 25, 50, 2_000, 5_000, 20_000)]
    [40, 20, 10, 10, 4, 1]
    >>> decoys_per_peptide(25, 100_000)
    10
    """
    n = max(1, n_peptides)
    wanted = max(min(_MOST, -(-_ENOUGH // n)), min(_SEVERAL, -(-_ENOUGH_OF_MANY // n)))
    return max(1, min(wanted, _MOST_IN_ALL // max(1, n_entries)))


class LibraryPeptides(NamedTuple):
    """Distinct peptidoforms of a library with n entries.

    Attributes
    ----------
    peptide : ndarray of int64, shape (n,)
        Index of each entry's peptidoform, or -1 if the entry is not a peptide or has no mass.
    noted : tuple of NotedPeptide
        Peptidoforms as written in the library.
    listed : ListedPeptides
        Residues and masses of the peptidoforms.
    """

    peptide: NDArray[np.int64]
    noted: tuple[NotedPeptide, ...]
    listed: ListedPeptides


def library_peptides(texts: pa.StringArray) -> LibraryPeptides:
    """Return the distinct peptidoforms in a column of peptide texts; null marks entries that are not peptides."""
    coded = texts.dictionary_encode()
    noted: list[NotedPeptide] = []
    number = np.full(len(coded.dictionary), -1, np.int64)
    for position, text in enumerate(coded.dictionary.to_pylist()):
        with suppress(ValueError):
            noted.append(parse_peptide(text))
            number[position] = len(noted) - 1
    listed = listed_peptides(noted, (), enzyme("Trypsin")).peptides
    number[np.isin(number, np.flatnonzero(~np.isfinite(listed.mass)))] = -1
    codes = coded.indices.fill_null(len(number)).to_numpy(zero_copy_only=False).astype(np.int64)
    return LibraryPeptides(np.append(number, -1)[codes], tuple(noted), listed)


def shuffled_references(
    library: SpectralLibrary, rows: NDArray[np.int64], peptides: LibraryPeptides, seed: int, tolerance: Tolerance, resources: Resources
) -> Iterator[tuple[NDArray[np.int64], Spectra]]:
    """Yield batches of spectra of shuffled peptides, each with the library entries whose peptides were shuffled.

    Parameters
    ----------
    library : SpectralLibrary
        Library of the entries.
    rows : ndarray of int64
        Entries to shuffle.
    peptides : LibraryPeptides
        Peptides of all entries.
    seed : int
        Random seed.
    tolerance : Tolerance
        Fragment tolerance.
    resources : Resources
        Devices, threads and progress of the run.

    Yields
    ------
    rows : ndarray of int64, shape (k,)
    spectra : Spectra
        The k shuffled spectra.
    """
    listed = peptides.listed
    length = np.diff(listed.residue_offsets)
    peptide = peptides.peptide[rows]
    rows = rows[(peptide >= 0) & (length[np.maximum(peptide, 0)] >= _SHORTEST) & (library.charge[rows] > 0)] if len(length) else rows[:0]
    numbers: dict[str, int] = {}
    sequence = np.array([numbers.setdefault(sequence, len(numbers)) for sequence in listed.sequences] or [0], np.int64)
    for first in range(0, len(rows), _ENTRIES_AT_ONCE):
        some = rows[first : first + _ENTRIES_AT_ONCE]
        form, own_form = np.unique(peptides.peptide[some], return_inverse=True)
        residues, offsets = take_segments(listed.residue_masses, listed.residue_offsets, form)
        none = np.zeros(len(form))
        # Each batch has all sequences, so that all batches shuffle a sequence in the same way.
        identified = Identified(
            np.arange(len(some)),
            library.charge[some],
            listed.mass[peptides.peptide[some]],
            own_form.astype(np.int64),
            tuple(listed.texts[i] for i in form.tolist()),
            sequence[form],
            tuple(numbers),
            offsets,
            residues,
            none,
            none,
        )
        yield some, shuffled_spectra(library.take(some).spectra(), identified, BY_ACTIVATION, seed, tolerance, resources)
