"""Reader of libraries from tables of transitions, one row per fragment: DIA-NN, Spectronaut, OpenSWATH (with DIA-NN's columns)."""

import re
from functools import lru_cache

import numpy as np

from proteoscope.engine.chemistry.noted_peptides import NotedPeptide, parse_peptide
from proteoscope.engine.formats.libraries.entries import Entry, LibraryCollector
from proteoscope.engine.formats.separated_cells import read_cells
from proteoscope.engine.formats.sources import ByteSource
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.unfolding import ENTRIES

__all__ = ["read_transitions"]

_PEPTIDE = ("FullUniModPeptideName", "ModifiedPeptideSequence", "ModifiedPeptide", "Modified.Sequence")
_SEQUENCE = ("PeptideSequence", "StrippedPeptide", "Stripped.Sequence")
_CHARGE, _PRECURSOR_MZ = ("PrecursorCharge", "Precursor.Charge"), ("PrecursorMz", "Precursor.Mz")
_MZ, _INTENSITY = ("ProductMz", "FragmentMz", "Product.Mz"), ("LibraryIntensity", "RelativeIntensity", "Relative.Intensity")
_PROTEINS = ("UniprotID", "UniProtIds", "ProteinGroup", "ProteinGroups", "Protein.Group", "ProteinId", "ProteinName")
_DECOY = ("decoy",)
_BATCH = 10_000


def read_transitions(source: ByteSource, library: LibraryCollector, progress: Progress) -> None:
    """Add the entries of a table of transitions to a library, one entry for each modified peptide and charge.

    The rows of an entry need not be adjacent. Normalised retention times (``iRT``, ``Tr_recalibrated``) are not times and are
    not read.

    Parameters
    ----------
    source : ByteSource
        Open file.
    library : LibraryCollector
        Collector that receives the entries.
    progress : Progress
        Progress, which is checked for cancellation.

    Raises
    ------
    InputError
        If the table is invalid or lacks the required columns.
    Cancelled
        If the user cancels.
    """
    names = (*_PEPTIDE, *_SEQUENCE, *_CHARGE, *_PRECURSOR_MZ, *_MZ, *_INTENSITY, *_PROTEINS, *_DECOY)
    cells = read_cells(source, progress, columns=names)
    text = cells.required(*_PEPTIDE, *_SEQUENCE)
    cells.required(*_CHARGE)
    charge = cells.whole(*_CHARGE, missing=0)
    precursor_mz, mz, intensity = (cells.numbers(*names) for names in (_PRECURSOR_MZ, _MZ, _INTENSITY))
    is_decoy = _truths(cells.text(*_DECOY))
    proteins = cells.text(*_PROTEINS)
    if not len(cells):
        return
    coded = text.dictionary_encode()
    peptide = coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    key = (peptide * 4096 + np.clip(charge, -1000, 1000) + 1000) * 2 + is_decoy
    _, first, group = np.unique(key, return_index=True, return_inverse=True)
    # Entries are ordered by their first rows in the file.
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    owner = rank[group]
    order = np.argsort(owner, kind="stable")
    bounds = np.append(np.searchsorted(owner[order], np.arange(len(first))), len(order))
    rows = np.sort(first)
    is_broken = np.bincount(owner[cells.is_broken], minlength=len(first)) > 0
    noted = _peptides(coded.dictionary.to_pylist())
    for begin in range(0, len(rows), _BATCH):
        progress.check()
        batch = rows[begin : begin + _BATCH]
        entries = []
        batch_proteins = proteins.take(pa.array(batch)).to_pylist()
        for row, accessions, broken in zip(batch.tolist(), batch_proteins, is_broken[begin : begin + _BATCH].tolist(), strict=True):
            name, parsed = noted[peptide[row]]
            entry = Entry(int(cells.line[row]), f"{name}/{charge[row]}", parsed, _split(accessions))
            entry.charge, entry.precursor_mz, entry.is_decoy = int(charge[row]), float(precursor_mz[row]), bool(is_decoy[row])
            entry.issue = "its peptide cannot be read" if parsed is None else "one of its numbers or rows cannot be read" if broken else ""
            entries.append(entry)
        positions = bounds[begin : begin + _BATCH + 1]
        fragments = order[positions[0] : positions[-1]]
        source.unfolding.add(ENTRIES, len(entries))
        library.add(entries, positions - positions[0], mz[fragments], intensity[fragments])


def _peptides(texts: list[str]) -> list[tuple[str, NotedPeptide | None]]:
    """Return a tuple for each text: name of the peptide, and the parsed peptide (None if the text cannot be parsed)."""
    peptides: list[tuple[str, NotedPeptide | None]] = []
    for text in texts:
        try:
            peptides.append((text.strip("_"), parse_peptide(text)))
        except ValueError:
            peptides.append((text, None))
    return peptides


@lru_cache(1 << 12)
def _split(accessions: str) -> tuple[str, ...]:
    """Return the accessions in a cell."""
    return tuple(filter(None, re.split("[;,]", accessions)))


def _truths(texts: object) -> np.ndarray:
    is_true = pa.compute.is_in(pa.compute.utf8_lower(texts), value_set=pa.array(["1", "true", "decoy"]))
    return np.asarray(is_true.to_numpy(zero_copy_only=False), np.bool_)
