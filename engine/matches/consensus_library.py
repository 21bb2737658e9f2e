"""Spectral library of the identified spectra of a run: one entry per peptidoform, charge and set of ion series.

An entry contains the peaks of its best spectrum (smallest q-value, then highest score), or the mean of all its spectra. The mean has no
peaks that occur in less than half of the spectra (Lam et al. 2008, Nat Methods 5:873). The precursor m/z is calculated from the peptide.
The retention time is the median, and the q-value the minimum, over the spectra. Peaks are annotated with y, b, z and c ions, if the series
was searched. Spectra searched with different series have separate entries.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import segment_offsets, take_segments
from proteoscope.engine.chemistry.series_choice import BY_ACTIVATION
from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.entry import ExportRequest
from proteoscope.engine.errors import InputError
from proteoscope.engine.execution.resources import Resources, available_threads, run_on_threads
from proteoscope.engine.formats.libraries.writing import write_library
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.matches.columns import EXPORTED_PSMS
from proteoscope.engine.matches.identified_spectra import Identified, read_identified
from proteoscope.engine.matches.source_run import SourceRun, identified_run
from proteoscope.engine.project import Project
from proteoscope.engine.results.reader import TableFile
from proteoscope.engine.spectra.columns import Spectra, SpectrumSeries
from proteoscope.engine.spectra.library_entries import EntryModifications, LibraryEntries, Origin, PeakIons, rounded_peaks
from proteoscope.engine.spectra.spectral_library import PROTEIN_SEPARATOR
from proteoscope.engine.spectra.spectrum_index import absolute_and_relative
from proteoscope.engine.spectra.tables import read_spectra_table
from proteoscope.kernels.cpu.consensus import count_mean_peaks, mean_peaks
from proteoscope.kernels.cpu.library_entries import SERIES_OF_ENTRIES, EntryMasses, annotate_peaks
from proteoscope.kernels.device import Partition, equal_partitions
from proteoscope.kernels.layouts import PeakArrays

__all__ = ["Members", "consensus_entries", "export_library", "members_of_run", "read_members", "write_members"]

_MOST_PEAKS = 200
"""Maximum number of peaks per entry; weaker peaks beyond this number are considered noise."""
_SHARE = 0.5  # minimum fraction of the spectra that contain a peak of their mean spectrum
_USUAL_MZ = 1000.0  # a tolerance in ppm is converted to Th at this m/z
_HIGHEST_ION_CHARGE = 3
_ENTRIES_AT_ONCE = 5_000
_COLUMNS = (
    "spectrum",
    "peptide",
    "sequence",
    "q_value",
    "score",
    "proteins",
    "rank",
    "is_decoy",
    "modification_positions",
    "modification_names",
    "modification_masses",
)
_USUAL_FDR = 0.01


@dataclass(frozen=True)
class Members:
    """Identified spectra, with the information that their library entries contain.

    Attributes
    ----------
    identified : Identified
        The n spectra.
    q_value : ndarray of float64, shape (n,)
        q-value of each spectrum.
    score : ndarray of float64, shape (n,)
        Score of each spectrum; -inf if unknown.
    proteins : pyarrow.StringArray, length n
        Accessions of each spectrum's proteins, joined by `PROTEIN_SEPARATOR`.
    modifications : EntryModifications
        Modifications of each peptidoform of `identified`.
    """

    identified: Identified
    q_value: NDArray[np.float64]
    score: NDArray[np.float64]
    proteins: pa.StringArray
    modifications: EntryModifications


def read_members(path: Path, identified: Identified, n_spectra: int) -> Members:
    """Read the library information of identified spectra from a PSM table.

    Parameters
    ----------
    path : Path
        Table of PSMs.
    identified : Identified
        Spectra that the table identifies.
    n_spectra : int
        Number of spectra of the run.

    Returns
    -------
    Members

    Raises
    ------
    InputError
        If the table does not contain PSMs.
    """
    with TableFile(path, EXPORTED_PSMS, _COLUMNS, n_rows_of={"spectra": n_spectra}, remedy="Run the search again") as source:
        table = source.read(_COLUMNS)
    table = table.filter(pa.compute.and_(pa.compute.equal(table["rank"], 1), pa.compute.invert(table["is_decoy"])))
    row_of = np.full(n_spectra, -1, np.int64)
    row_of[table["spectrum"].to_numpy()] = np.arange(len(table))
    rows = pa.array(row_of[identified.spectrum])
    result = table.take(rows)
    score = result["score"].fill_null(-np.inf).to_numpy().astype(np.float64)
    proteins = pa.compute.binary_join(result["proteins"].combine_chunks(), PROTEIN_SEPARATOR).cast(pa.string())
    # Control characters occur only in tables that were edited outside the program.
    proteins = pa.compute.replace_substring_regex(proteins, r"[\x00-\x08\x0a-\x1f\x7f]", " ")
    first = np.full(len(identified.peptides), -1, np.int64)
    first[identified.peptide[::-1]] = np.arange(len(identified))[::-1]
    forms = result.take(pa.array(first))
    return Members(identified, result["q_value"].to_numpy().astype(np.float64), score, proteins, _modifications(forms))


def _modifications(forms: pa.Table) -> EntryModifications:
    """Return the modifications of peptidoforms, in order of position; `forms` has one row per peptidoform."""
    count = pa.compute.list_value_length(forms["modification_positions"]).to_numpy().astype(np.int64)
    position = pa.compute.list_flatten(forms["modification_positions"]).to_numpy().astype(np.int64)
    mass = pa.compute.list_flatten(forms["modification_masses"]).to_numpy().astype(np.float64)
    names = np.array(pa.compute.list_flatten(forms["modification_names"]).to_pylist(), dtype=object)
    offsets = segment_offsets(count)
    order = np.lexsort((position, np.repeat(np.arange(len(count)), count)))
    peptidoforms: dict[tuple[str, float], int] = {}
    kind = np.array(
        [
            peptidoforms.setdefault(peptidoform, len(peptidoforms))
            for peptidoform in zip(names[order].tolist(), mass[order].tolist(), strict=True)
        ],
        np.int64,
    )
    return EntryModifications(
        offsets, position[order], kind, tuple(name for name, _ in peptidoforms), tuple(mass for _, mass in peptidoforms)
    )


def consensus_entries(
    members: Members, spectra: Spectra, series: SpectrumSeries, tolerance: Tolerance, origin: Origin, resources: Resources
) -> tuple[int, Iterator[LibraryEntries]]:
    """Return the number of entries, and an iterator over batches of entries ordered by peptide mass and charge.

    Parameters
    ----------
    members : Members
        Identified spectra.
    spectra : Spectra
        All spectra of the run; `members` contains their indices.
    series : SpectrumSeries
        Ion series of each spectrum.
    tolerance : Tolerance
        Fragment tolerance.
    origin : Origin
        Peaks of an entry: ``best`` uses its best spectrum, ``merged`` the mean of its spectra.
    resources : Resources
        Threads and progress.

    Returns
    -------
    int
        Number of entries.
    Iterator of LibraryEntries
        Batches of at most 5,000 entries.
    """
    identified = members.identified
    number = series.number[identified.spectrum]
    order = np.lexsort((identified.spectrum, -members.score, members.q_value, number, identified.charge, identified.peptide))
    kind = np.stack((identified.peptide[order], identified.charge[order], number[order]))
    begins = np.flatnonzero(np.concatenate(([True], (np.diff(kind) != 0).any(axis=0)))) if len(order) else order
    offsets = np.append(begins, len(order))
    mass, charge = identified.mass[order[begins]], identified.charge[order[begins]]
    groups = np.lexsort((number[order[begins]], identified.peptide[order[begins]], charge, mass))

    def batch_segments() -> Iterator[LibraryEntries]:
        for first in range(0, len(groups), _ENTRIES_AT_ONCE):
            rows, member_offsets = take_segments(order, offsets, groups[first : first + _ENTRIES_AT_ONCE])
            yield _entries(members, spectra, series, rows, member_offsets, tolerance, origin, resources)

    return len(groups), batch_segments()


def _entries(
    members: Members,
    spectra: Spectra,
    series: SpectrumSeries,
    rows: NDArray[np.int64],
    offsets: NDArray[np.int64],
    tolerance: Tolerance,
    origin: Origin,
    resources: Resources,
) -> LibraryEntries:
    """Return the entries of groups of members.

    `rows` are indices of members, with the best member of each group first; `offsets` (CSR) delimit the groups.
    """
    identified, best = members.identified, rows[offsets[:-1]]
    if origin == "merged":
        peaks = _merge_spectra(spectra, identified.spectrum[rows], offsets, tolerance, resources)
    else:
        mz, peak_offsets = take_segments(spectra.mz, spectra.offsets, identified.spectrum[best])
        peaks = PeakArrays(peak_offsets, mz, take_segments(spectra.intensity, spectra.offsets, identified.spectrum[best])[0])
    peaks = _select_most_intense(peaks)
    peptide = identified.peptide[best]
    carried = members.modifications
    position, placed = take_segments(carried.position, carried.offsets, peptide)
    sequences = pa.array(identified.sequences, pa.string()).take(pa.array(identified.sequence[peptide]))
    return LibraryEntries(
        sequences,
        EntryModifications(placed, position, take_segments(carried.kind, carried.offsets, peptide)[0], carried.names, carried.masses),
        members.proteins.take(pa.array(best)),
        identified.charge[best],
        identified.mass[best],
        _medians(spectra.retention_time[identified.spectrum[rows]], offsets),
        members.q_value[best],
        np.diff(offsets),
        *peaks,
        _annotated(identified, best, peaks, series, tolerance, resources),
        origin,
        spectra.file_names,
        spectra.file[identified.spectrum[best]].astype(np.int64),
    )


def _merge_spectra(
    spectra: Spectra, rows: NDArray[np.int64], offsets: NDArray[np.int64], tolerance: Tolerance, resources: Resources
) -> PeakArrays:
    """Return the mean spectrum of each group of spectra: `rows` are their indices, and `offsets` (CSR) delimit the groups."""
    width = 2.0 * float(tolerance.width(_USUAL_MZ))
    settings = spectra.peak_arrays, offsets, rows, width, _SHARE
    count = np.zeros(len(offsets) - 1, np.int64)
    parts = equal_partitions(np.diff(offsets), resources.threads)

    def on_threads(work: object) -> None:
        run_on_threads(work, parts, resources.threads, resources.progress, steps=lambda _: 0)  # type: ignore[arg-type]

    on_threads(lambda part: count_mean_peaks(*settings, part.first, part.last, count))
    peak_offsets = segment_offsets(count)
    means = PeakArrays(peak_offsets, np.empty(peak_offsets[-1]), np.empty(peak_offsets[-1]))
    on_threads(lambda part: mean_peaks(*settings, part.first, part.last, means))
    return means


def _select_most_intense(peaks: PeakArrays) -> PeakArrays:
    """Return the most intense peaks of each spectrum, with the base peak scaled to 10,000."""
    count = np.diff(peaks.offsets)
    owner = np.repeat(np.arange(len(count)), count)
    order = np.lexsort((-peaks.intensity, owner))
    top = np.ones(len(count))
    some = count > 0
    top[some] = peaks.intensity[order[peaks.offsets[:-1][some]]]
    mz, intensity = rounded_peaks(peaks.mz, (peaks.intensity / top[owner] * 10_000.0).astype(np.float32))
    rank = np.empty(len(owner), np.int64)
    rank[order] = np.arange(len(owner)) - np.repeat(peaks.offsets[:-1], count)
    retained = (rank < _MOST_PEAKS) & (intensity > 0)
    return PeakArrays(segment_offsets(np.bincount(owner[retained], minlength=len(count))), mz[retained], intensity[retained])


def _medians(values: NDArray[np.float64], offsets: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the lower median of each segment of `values`, ignoring NaN; NaN if all values of a segment are NaN."""
    owner = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    is_known = ~np.isnan(values)
    owner, values = owner[is_known], values[is_known]
    order = np.lexsort((values, owner))
    count = np.bincount(owner, minlength=len(offsets) - 1)
    starts, some = np.cumsum(count) - count, count > 0
    result = np.full(len(count), np.nan)
    result[some] = values[order][starts[some] + (count[some] - 1) // 2]
    return result


def _annotated(
    identified: Identified, rows: NDArray[np.int64], peaks: PeakArrays, series: SpectrumSeries, tolerance: Tolerance, resources: Resources
) -> PeakIons:
    """Annotate peaks with the fragment ions of their peptides."""
    peptide = identified.peptide[rows]
    masses, offsets = take_segments(identified.residues, identified.offsets, peptide)
    masses[offsets[1:] - 1] += identified.c_terminal[peptide]
    n = len(peaks.mz)
    ions = PeakIons(np.zeros(n, np.uint8), np.zeros(n, np.uint8), np.zeros(n, np.uint8), np.zeros(n, np.float32))
    rules = _HIGHEST_ION_CHARGE, *absolute_and_relative(tolerance)

    entries = EntryMasses(offsets, masses, identified.n_terminal[peptide], identified.charge[rows])
    has_series = np.column_stack(
        [series.have(frozenset(series_of_entry))[identified.spectrum[rows]] for series_of_entry in SERIES_OF_ENTRIES]
    )
    residues = np.frombuffer("".join(identified.sequences[number] for number in identified.sequence[peptide].tolist()).encode(), np.uint8)
    is_closed = np.append(residues[1:] == ord("P"), False)

    def annotate(part: Partition) -> None:
        annotate_peaks(peaks.offsets, peaks.mz, entries, has_series, is_closed, rules, part.first, part.last, tuple(ions))

    run_on_threads(
        annotate, equal_partitions(np.diff(peaks.offsets) + 1, resources.threads), resources.threads, resources.progress, steps=lambda _: 0
    )
    return ions


def export_library(project: Project, request: ExportRequest, progress: Progress) -> list[Path]:
    """Write the spectra identified at a run's false discovery rate as a spectral library.

    Parameters
    ----------
    project : Project
        Project of the run.
    request : ExportRequest
        Run, target file, format and origin of the peaks.
    progress : Progress
        Progress of the run.

    Returns
    -------
    list of Path
        The written file.

    Raises
    ------
    ParameterError
        If a file that the program needs would be overwritten.
    InputError
        If the run has no stored peaks, or no identified spectra.
    StorageError
        If writing fails or a table is damaged.
    Cancelled
        If the user cancelled.
    """
    source, spectra, members = members_of_run(project, request.run_id, progress)
    if not len(members.identified):
        raise InputError(
            source.psms,
            f"run '{source.run}' has no PSM up to a q-value of {_rate(source):g}",
            remedy="Export a run that identified something, or search again with another fdr",
        )
    return write_members(request, members, spectra, source, progress)


def members_of_run(project: Project, run: str, progress: Progress) -> tuple[SourceRun, Spectra, Members]:
    """Return the requested run, all its spectra, and the spectra identified at the run's false discovery rate."""
    # The user chose this run, so every kind of run is accepted, even kinds on which other searches cannot build.
    source = identified_run(project.folder, run, {finished.kind for finished in project.runs() if finished.id == run})
    progress.stage("Reading the spectra of the run")
    spectra = read_spectra_table(source.spectra)
    progress.check()
    identified = read_identified(source.psms, len(spectra), _rate(source))
    return source, spectra, read_members(source.psms, identified, len(spectra))


def _rate(source: SourceRun) -> float:
    return float(source.parameters.get("fdr", _USUAL_FDR))


def write_members(request: ExportRequest, members: Members, spectra: Spectra, source: SourceRun, progress: Progress) -> list[Path]:
    """Write identified spectra as a spectral library; return the path of the file as the only item of a list."""
    resources = Resources(available_threads(), progress=progress)
    series = SpectrumSeries.for_spectra(str(source.parameters.get("ion_series", BY_ACTIVATION)), spectra.activation)
    n, chunks = consensus_entries(members, spectra, series, source.fragment_tolerance, request.consensus, resources)
    write_library(request.target, chunks, request.format, progress, total=n, threads=resources.threads)
    return [request.target]
