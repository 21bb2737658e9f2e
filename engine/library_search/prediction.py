"""Predicted spectra of the peptides of proteins, in several parts, so that memory does not depend on the size of the library.

Peptides come from the peptide index in order of mass, with peptidoforms as in a search. The shipped network
(`proteoscope.engine.matches.fragment_intensities`) predicts b and y ions for beam-type collisions (HCD) of tryptic peptides, and also
doubly charged ions for precursor charges of 3 and more. It ignores modifications: a modified residue is predicted as the unmodified
residue, with its modified mass. Neutral losses, other series and retention times are not predicted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import ranges, segment_offsets, take_segments
from proteoscope.engine.chemistry.masses import PROTON_MASS
from proteoscope.engine.chemistry.modifications import SearchModification, parse_modification, with_replaced_masses
from proteoscope.engine.errors import InputError
from proteoscope.engine.execution.precompile import compile_kernels
from proteoscope.engine.execution.resources import Resources, available_threads, run_on_threads
from proteoscope.engine.files import storage_errors, temporary_folder
from proteoscope.engine.formats.libraries.writing import library_format, write_library
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.library_search.prediction_parameters import PredictionParameters
from proteoscope.engine.matches.fragment_intensities import predicted_bonds
from proteoscope.engine.matches.psms import occupied_sites
from proteoscope.engine.matches.scoring_settings import modification_arrays
from proteoscope.engine.peptides.indexes import Databases, Indexes, build_indexes
from proteoscope.engine.project.outputs import check_outputs, refuse_packed
from proteoscope.engine.spectra.library_entries import EntryModifications, LibraryEntries, PeakIons, rounded_peaks
from proteoscope.engine.spectra.spectral_library import PROTEIN_SEPARATOR
from proteoscope.kernels.cpu.fragment_intensities import IONS
from proteoscope.kernels.cpu.library_entries import (
    NO_MODIFICATION,
    EntryMasses,
    EntryPeaks,
    PredictionRules,
    decode_peptidoforms,
    predicted_peaks,
)
from proteoscope.kernels.cpu.peptidoforms import count_peptidoforms, list_peptidoforms, peptidoform_code
from proteoscope.kernels.device import Partition, equal_partitions
from proteoscope.kernels.layouts import ModificationArrays, PeptideArrays

__all__ = ["LIMITS", "PredictedLibrary", "Prediction", "predict_library"]

_ENTRIES_AT_ONCE = 20_000
_PROTEINS_NAMED = 20  # maximum per peptide
_BUCKET = 1.0  # Da


class _Forms(NamedTuple):
    """Peptidoforms: `mass` (n,) float64, Da; `peptide` (n,) int64; `site`, `modification` (n, s) uint8, see `decode_peptidoforms`."""

    mass: NDArray[np.float64]
    peptide: NDArray[np.int64]
    site: NDArray[np.uint8]
    modification: NDArray[np.uint8]


class PredictedLibrary:
    """Library entries predicted from proteins and parameters.

    Attributes
    ----------
    n_peptides : int
        Number of distinct peptides.
    n_forms : int
        Upper limit of the number of peptidoforms, including peptidoforms with variable modifications.
    """

    def __init__(self, indexes: Indexes, parameters: PredictionParameters, resources: Resources) -> None:
        self._indexes, self._parameters, self._resources = indexes, parameters, resources
        variable = tuple(map(parse_modification, parameters.variable_modifications))
        self._variable = with_replaced_masses(variable, indexes.peptides.digestion.fixed)
        self._modifications: ModificationArrays = modification_arrays(self._variable, parameters)
        self._peptides: PeptideArrays = indexes.peptides.arrays(indexes.proteins, len(self._variable))
        heaviest = float(self._peptides.mass[-1]) + float(self._modifications.combination_mass.max(initial=0.0))
        self._counts = np.zeros(int(max(heaviest, 0.0)) + 2, np.int64)
        count_peptidoforms(
            self._peptides, self._modifications, 0, len(self._peptides.mass), _BUCKET, self._counts, np.zeros_like(self._counts)
        )
        self.n_peptides, self.n_forms = len(self._peptides.mass), int(self._counts.sum())

    def batches(self) -> Iterator[LibraryEntries]:
        """Yield the entries in batches, ordered by mass range."""
        charges = np.arange(self._parameters.minimum_charge, self._parameters.maximum_charge + 1)
        for low, high in self._ranges(max(1, _ENTRIES_AT_ONCE // len(charges))):
            forms = self._forms(low, high)
            for first in range(0, len(forms.mass), _ENTRIES_AT_ONCE):
                rows = slice(first, first + _ENTRIES_AT_ONCE)
                some = _Forms(forms.mass[rows], forms.peptide[rows], forms.site[rows], forms.modification[rows])
                self._resources.progress.check()
                form, at = np.divmod(np.arange(len(some.mass) * len(charges)), len(charges))
                charge = charges[at]
                mz = some.mass[form] / charge + PROTON_MASS
                retained = (mz >= self._parameters.minimum_precursor_mz) & (mz <= self._parameters.maximum_precursor_mz)
                if retained.any():
                    yield self._entries(some, form[retained], charge[retained])

    def _ranges(self, most: int) -> Iterator[tuple[float, float]]:
        """Yield consecutive mass ranges (Da) that cover all masses, with at most `most` peptidoforms each, or one mass bucket with more."""
        before, low = np.cumsum(self._counts), 0
        while low < len(before):
            done = int(before[low - 1]) if low else 0
            high = max(low + 1, int(np.searchsorted(before, done + most, side="right")))
            is_last = high >= len(before)
            yield (-np.inf if low == 0 else low * _BUCKET), (np.inf if is_last else high * _BUCKET)
            low = high

    def _forms(self, low: float, high: float) -> _Forms:
        mass, number = list_peptidoforms(self._peptides, self._modifications, low, high)
        n, slots = len(mass), max(1, self._parameters.maximum_modifications)
        peptide, site = np.empty(n, np.int64), np.zeros((n, slots), np.uint8)
        modification = np.full((n, slots), NO_MODIFICATION, np.uint8)
        code = peptidoform_code(self._peptides, self._modifications)
        self._on_threads(
            np.ones(n),
            lambda part: decode_peptidoforms(
                number, code, self._peptides, self._modifications, part.first, part.last, peptide, site, modification
            ),
        )
        return _Forms(mass, peptide, site, modification)

    def _entries(self, forms: _Forms, form: NDArray[np.int64], charge: NDArray[np.int64]) -> LibraryEntries:
        """Return the entries of `forms[form]` with these charges, without entries that have no peaks."""
        peptides, parameters = self._peptides, self._parameters
        peptide = forms.peptide[form]
        start = np.asarray(peptides.position)[peptide].astype(np.int64)
        offsets, at = ranges(start, start + np.asarray(peptides.length)[peptide])
        residues = np.asarray(peptides.residues)[at]
        site, modification = forms.site[form].astype(np.int64), forms.modification[form].astype(np.int64)
        masses, n_terminal = self._masses(offsets, residues, site, modification)
        entries = EntryMasses(offsets, masses, n_terminal, charge)
        logarithms, starts = predicted_bonds(residues, offsets, charge, self._resources)
        bonds = np.diff(offsets) - 1
        space, count = segment_offsets(IONS * bonds), np.zeros(len(form), np.int64)
        whole = EntryPeaks(np.empty(space[-1]), np.empty(space[-1], np.float32), *(np.zeros(space[-1], np.uint8) for _ in range(3)))
        rules = PredictionRules(
            parameters.minimum_fragment_mz,
            parameters.maximum_fragment_mz,
            parameters.minimum_share,
            parameters.maximum_peaks,
            parameters.maximum_fragment_charge,
        )
        self._on_threads(
            bonds,
            lambda part: predicted_peaks(entries, logarithms, starts, rules, part.first, part.last, space, count, whole),
        )
        rows = np.flatnonzero(count)
        peak_offsets, taken = ranges(space[rows], space[rows] + count[rows])
        peaks = EntryPeaks(whole.mz[taken], whole.intensity[taken], whole.series[taken], whole.number[taken], whole.charge[taken])
        residues, offsets = take_segments(residues, offsets, rows)
        texts = pa.StringArray.from_buffers(len(rows), pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(residues))
        return LibraryEntries(
            texts,
            self._placed(residues, offsets, site[rows], modification[rows]),
            self._proteins(peptide[rows]),
            charge[rows],
            forms.mass[form[rows]],
            np.full(len(rows), np.nan),
            np.full(len(rows), np.nan),
            np.ones(len(rows), np.int64),
            peak_offsets,
            *rounded_peaks(peaks.mz, peaks.intensity),
            PeakIons(peaks.series, peaks.number, peaks.charge, np.zeros(len(peaks.mz), np.float32)),
            "predicted",
        )

    def _masses(
        self, offsets: NDArray[np.int64], residues: NDArray[np.uint8], site: NDArray[np.int64], modification: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the masses of residues, and the mass of the N-terminal modifications of each peptide, Da.

        Masses of residues include their modifications; the mass of the last residue also includes C-terminal modifications.
        """
        peptides, length = self._peptides, np.diff(offsets)
        masses = np.asarray(peptides.residue_mass)[residues.astype(np.int64) - ord("A")]
        masses[offsets[1:] - 1] += peptides.c_term_mass
        n_terminal = np.full(len(length), peptides.n_term_mass)
        for slot in range(site.shape[1]):
            rows = np.flatnonzero(modification[:, slot] != NO_MODIFICATION)
            at, added = site[rows, slot], self._modifications.mass[modification[rows, slot]]
            is_first = at == 0
            n_terminal[rows[is_first]] += added[is_first]
            position = np.minimum(at, length[rows]) - 1
            masses[(offsets[rows] + position)[~is_first]] += added[~is_first]
        return masses, n_terminal

    def _placed(
        self, residues: NDArray[np.uint8], offsets: NDArray[np.int64], site: NDArray[np.int64], modification: NDArray[np.int64]
    ) -> EntryModifications:
        """Return the fixed and variable modifications of peptides, ordered by position."""
        length = np.diff(offsets)
        owner = np.repeat(np.arange(len(length)), length)
        parts = list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]]()  # rows, positions, kinds
        fixed: tuple[SearchModification, ...] = self._indexes.peptides.digestion.fixed
        carrier, at_slot = np.nonzero(modification != NO_MODIFICATION)
        variable = modification[carrier, at_slot].astype(np.int64)
        taken = occupied_sites(carrier, site[carrier, at_slot].astype(np.int64), variable, self._variable, len(self._variable), length)
        for number, fixed_modification in enumerate(fixed, len(self._variable)):
            if fixed_modification.position == "anywhere":
                at = np.flatnonzero(np.isin(residues, [ord(symbol) for symbol in fixed_modification.residues]))
                row, position = owner[at], at - offsets[owner[at]] + 1
            else:
                row = np.arange(len(length))
                position = np.zeros_like(length) if fixed_modification.position.endswith("N-term") else length + 1
            is_retained = ~np.isin(row << 8 | position, taken) | fixed_modification.is_isotopic
            parts.append((row[is_retained], position[is_retained], np.full(int(is_retained.sum()), number)))
        for slot in range(site.shape[1]):
            some = np.flatnonzero(modification[:, slot] != NO_MODIFICATION)
            parts.append((some, site[some, slot], modification[some, slot]))
        row, position, kind = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        order = np.lexsort((kind, position, row))
        every = (*self._variable, *fixed)
        return EntryModifications(
            segment_offsets(np.bincount(row, minlength=len(length))),
            position[order],
            kind[order],
            tuple(modification.name for modification in every),
            tuple(modification.mass for modification in every),
        )

    def _proteins(self, peptide: NDArray[np.int64]) -> pa.StringArray:
        """Return the accessions of up to 20 proteins of each peptide, joined by `PROTEIN_SEPARATOR`."""
        index, proteins, names = self._indexes.peptides, self._indexes.proteins, self._indexes.proteins.proteins
        distinct, index_of = np.unique(peptide, return_inverse=True)
        pointer = np.asarray(index.pointer)
        first = pointer[distinct]
        offsets, at = ranges(first, np.minimum(pointer[distinct + 1], first + _PROTEINS_NAMED))
        accessions = pa.LargeStringArray.from_buffers(
            len(names), pa.py_buffer(np.asarray(names.accession_offsets)), pa.py_buffer(np.asarray(names.accession_bytes))
        )
        held = accessions.take(pa.array(proteins.protein_of(np.asarray(index.occurrence)[at]))).cast(pa.string())
        joined = pa.compute.binary_join(pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), held), PROTEIN_SEPARATOR)
        return joined.take(pa.array(index_of))

    def _on_threads(self, costs: NDArray[np.number], work: Callable[[Partition], None]) -> None:
        threads, progress = self._resources.threads, self._resources.progress
        run_on_threads(work, equal_partitions(costs, threads), threads, progress, steps=lambda _: 0)


LIMITS = (
    "Intensities are those of b and y ions in beam-type collisions (HCD) of tryptic peptides, for all collision energies; spectra of ion "
    "traps differ. Modifications change only the predicted masses, not the intensities. Neutral losses and retention times are not "
    "predicted."
)
"""Limitations of predicted spectra, shown to users."""


class Prediction(NamedTuple):
    """Path of a written library, and the numbers of its peptides and entries."""

    out: Path
    n_peptides: int
    n_entries: int


def predict_library(
    proteins: Sequence[str | Path],
    out: str | Path,
    parameters: PredictionParameters | None = None,
    progress: Progress | None = None,
    *,
    format: str = "",
    threads: int | None = None,
) -> Prediction:
    """Predict the spectra of the peptides of proteins, and write them as a library; the file appears only when it is complete.

    Parameters
    ----------
    proteins : sequence of str or Path
        Protein files.
    out : str or Path
        Path of the library.
    parameters : PredictionParameters, optional
        Parameters of the prediction.
    progress : Progress, optional
        Progress of the prediction.
    format : str
        ``msp``, ``mzspeclib`` or ``blib``; '' selects the format by the suffix of `out`.
    threads : int, optional
        Number of CPU threads; None for all.

    Returns
    -------
    Prediction
        Path of the library and its numbers of peptides and entries.

    Raises
    ------
    ParameterError
        If the format is unknown.
    InputError
        If a file has no proteins, or no peptide is within the limits.
    StorageError
        If the library cannot be written.
    Cancelled
        If the user cancels.
    """
    parameters, progress, path = parameters or PredictionParameters(), progress or Progress(), Path(out)
    files = [Path(protein) for protein in proteins]
    chosen = library_format(format or path.name)
    if chosen == "blib":
        refuse_packed(path, chosen)
    check_outputs([path], files, None)
    compile_kernels(["predict"], progress)
    resources = Resources(threads or available_threads(), progress=progress)
    with ExitStack() as stack:
        with storage_errors(path):
            index = stack.enter_context(temporary_folder(path))
        indexes = build_indexes(Databases(files, [], {}), index, parameters, resources)
        library, written = PredictedLibrary(indexes, parameters, resources), 0

        def counted() -> Iterator[LibraryEntries]:
            nonlocal written
            for chunk in library.batches():
                written += len(chunk)
                yield chunk
            if not written:
                raise InputError(files[0], "none of its peptides has an m/z within the limits", remedy="Check limits and charges")

        total = (parameters.maximum_charge - parameters.minimum_charge + 1) * library.n_forms
        write_library(path, counted(), chosen, progress, total=total, threads=resources.threads)
        progress.message(LIMITS)
        return Prediction(path, library.n_peptides, written)
