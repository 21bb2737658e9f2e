"""A spectral library of the identified spectra of a run: one entry for each peptidoform, charge and ion series.

Its peaks are those of the best spectrum (the smallest q-value, then the highest score), or the mean of all, where peaks that less than half
of the spectra have are left out (Lam et al. 2008, Nat Methods 5:873). The m/z of its precursor is the peptide's; the retention time is the
median of the spectra's, the q-value the smallest. Peaks are named by the ions of the peptide, of
the series y, b, z and c for which the spectra were searched; spectra of other series are not alike, and have entries of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import run_offsets, take_runs
from proteoscope.engine.chemistry.series_choice import BY_ACTIVATION
from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.entry import ExportRequest
from proteoscope.engine.errors import InputError
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.execution.threads import available_threads, run_on_threads
from proteoscope.engine.formats.libraries.writing import write_library
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.matches.columns import EXPORTED_PSMS
from proteoscope.engine.matches.identified_spectra import Identified, read_identified
from proteoscope.engine.matches.source_run import SourceRun, identified_run
from proteoscope.engine.project import Project
from proteoscope.engine.results.reader import TableFile
from proteoscope.engine.spectra.columns import Spectra
from proteoscope.engine.spectra.ion_series import SpectrumSeries
from proteoscope.engine.spectra.library_entries import EntryModifications, LibraryEntries, Origin, PeakIons, rounded_peaks
from proteoscope.engine.spectra.spectral_library import PROTEIN_SEPARATOR
from proteoscope.engine.spectra.spectrum_index import absolute_and_relative
from proteoscope.engine.spectra.tables import read_spectra_table
from proteoscope.kernels.cpu.consensus import count_mean_peaks, mean_peaks
from proteoscope.kernels.cpu.library_entries import SERIES_OF_ENTRIES, EntryMasses, annotate_peaks
from proteoscope.kernels.layouts import PeakArrays
from proteoscope.kernels.partitions import Partition, equal_partitions

__all__ = ["Members", "consensus_entries", "export_library", "members_of_run", "read_members", "write_members"]

_MOST_PEAKS = 200
"""Maximum number of peaks of an entry; weaker ones in a crowded spectrum are noise."""
_SHARE = 0.5  # of the members that a peak of their mean is seen in
_USUAL_MZ = 1000.0  # at which a tolerance in ppm is converted for all m/z
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
    """Identified spectra with the information for their library entries.

    Attributes
    ----------
    identified
        The n spectra.
    q_value, score : (n,) float64
        Of each; score -inf if unknown.
    proteins
        n texts, accessions joined by `PROTEIN_SEPARATOR`.
    modifications
        Modifications of each peptidoform of `identified`.
    """

    identified: Identified
    q_value: NDArray[np.float64]
    score: NDArray[np.float64]
    proteins: pa.StringArray
    modifications: EntryModifications


def read_members(path: Path, identified: Identified, n_spectra: int) -> Members:
    """Return library information from the table of PSMs of spectra.

    Raises
    ------
    InputError
        The table does not contain PSMs.
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
    # Only the tables of a changed project hold control characters.
    proteins = pa.compute.replace_substring_regex(proteins, r"[\x00-\x08\x0a-\x1f\x7f]", " ")
    first = np.full(len(identified.peptides), -1, np.int64)
    first[identified.peptide[::-1]] = np.arange(len(identified))[::-1]
    forms = result.take(pa.array(first))
    return Members(identified, result["q_value"].to_numpy().astype(np.float64), score, proteins, _modifications(forms))


def _modifications(forms: pa.Table) -> EntryModifications:
    """Return the modifications of peptidoforms, one row each."""
    count = pa.compute.list_value_length(forms["modification_positions"]).to_numpy().astype(np.int64)
    position = pa.compute.list_flatten(forms["modification_positions"]).to_numpy().astype(np.int64)
    mass = pa.compute.list_flatten(forms["modification_masses"]).to_numpy().astype(np.float64)
    names = np.array(pa.compute.list_flatten(forms["modification_names"]).to_pylist(), dtype=object)
    offsets = run_offsets(count)
    order = np.lexsort((position, np.repeat(np.arange(len(count)), count)))
    known: dict[tuple[str, float], int] = {}
    kind = np.array([known.setdefault(one, len(known)) for one in zip(names[order].tolist(), mass[order].tolist(), strict=True)], np.int64)
    return EntryModifications(offsets, position[order], kind, tuple(name for name, _ in known), tuple(mass for _, mass in known))


def consensus_entries(
    members: Members, spectra: Spectra, series: SpectrumSeries, tolerance: Tolerance, origin: Origin, resources: Resources
) -> tuple[int, Iterator[LibraryEntries]]:
    """Return the number of entries, and an iterator over batches of them by peptide mass and charge.

    Parameters
    ----------
    spectra
        With the rows that the members are.
    series
        Of the spectra.
    tolerance
        Of fragments.
    origin
        ``best`` or ``merged``.
    """
    own = members.identified
    number = series.number[own.spectrum]
    order = np.lexsort((own.spectrum, -members.score, members.q_value, number, own.charge, own.peptide))
    kind = np.stack((own.peptide[order], own.charge[order], number[order]))
    begins = np.flatnonzero(np.concatenate(([True], (np.diff(kind) != 0).any(axis=0)))) if len(order) else order
    offsets = np.append(begins, len(order))
    mass, charge = own.mass[order[begins]], own.charge[order[begins]]
    groups = np.lexsort((number[order[begins]], own.peptide[order[begins]], charge, mass))

    def batch_runs() -> Iterator[LibraryEntries]:
        for first in range(0, len(groups), _ENTRIES_AT_ONCE):
            rows, member_offsets = take_runs(order, offsets, groups[first : first + _ENTRIES_AT_ONCE])
            yield _entries(members, spectra, series, rows, member_offsets, tolerance, origin, resources)

    return len(groups), batch_runs()


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
    """Entries of the members `rows`, CSR, the best of each first."""
    own, best = members.identified, rows[offsets[:-1]]
    if origin == "merged":
        peaks = _merged(spectra, own.spectrum[rows], offsets, tolerance, resources)
    else:
        mz, peak_offsets = take_runs(spectra.mz, spectra.offsets, own.spectrum[best])
        peaks = PeakArrays(peak_offsets, mz, take_runs(spectra.intensity, spectra.offsets, own.spectrum[best])[0])
    peaks = _highest(peaks)
    peptide = own.peptide[best]
    of = members.modifications
    position, placed = take_runs(of.position, of.offsets, peptide)
    sequences = pa.array(own.sequences, pa.string()).take(pa.array(own.sequence[peptide]))
    return LibraryEntries(
        sequences,
        EntryModifications(placed, position, take_runs(of.kind, of.offsets, peptide)[0], of.names, of.masses),
        members.proteins.take(pa.array(best)),
        own.charge[best],
        own.mass[best],
        _medians(spectra.retention_time[own.spectrum[rows]], offsets),
        members.q_value[best],
        np.diff(offsets),
        *peaks,
        _annotated(own, best, peaks, series, tolerance, resources),
        origin,
        spectra.file_names,
        spectra.file[own.spectrum[best]].astype(np.int64),
    )


def _merged(
    spectra: Spectra, rows: NDArray[np.int64], offsets: NDArray[np.int64], tolerance: Tolerance, resources: Resources
) -> PeakArrays:
    """Return mean spectra."""
    width = 2.0 * float(tolerance.width(_USUAL_MZ))
    settings = spectra.peak_arrays, offsets, rows, width, _SHARE
    count = np.zeros(len(offsets) - 1, np.int64)
    parts = equal_partitions(np.diff(offsets), resources.threads)

    def on_threads(work: object) -> None:
        run_on_threads(work, parts, resources.threads, resources.progress, steps=lambda _: 0)  # type: ignore[arg-type]

    on_threads(lambda part: count_mean_peaks(*settings, part.first, part.last, count))
    peak_offsets = run_offsets(count)
    means = PeakArrays(peak_offsets, np.empty(peak_offsets[-1]), np.empty(peak_offsets[-1]))
    on_threads(lambda part: mean_peaks(*settings, part.first, part.last, means))
    return means


def _highest(peaks: PeakArrays) -> PeakArrays:
    """Return the most intense peaks of each spectrum, the highest scaled to 10,000."""
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
    return PeakArrays(run_offsets(np.bincount(owner[retained], minlength=len(count))), mz[retained], intensity[retained])


def _medians(values: NDArray[np.float64], offsets: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the lower median of each run of values, NaN without a known one."""
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
    own: Identified, rows: NDArray[np.int64], peaks: PeakArrays, series: SpectrumSeries, tolerance: Tolerance, resources: Resources
) -> PeakIons:
    """Annotate peaks with the ions of their peptides."""
    peptide = own.peptide[rows]
    masses, offsets = take_runs(own.residues, own.offsets, peptide)
    masses[offsets[1:] - 1] += own.c_terminal[peptide]
    n = len(peaks.mz)
    ions = PeakIons(np.zeros(n, np.uint8), np.zeros(n, np.uint8), np.zeros(n, np.uint8), np.zeros(n, np.float32))
    rules = _HIGHEST_ION_CHARGE, *absolute_and_relative(tolerance)

    entries = EntryMasses(offsets, masses, own.n_terminal[peptide], own.charge[rows])
    has_series = np.column_stack([series.have(frozenset(series_of_entry))[own.spectrum[rows]] for series_of_entry in SERIES_OF_ENTRIES])
    residues = np.frombuffer("".join(own.sequences[one] for one in own.sequence[peptide].tolist()).encode(), np.uint8)
    is_closed = np.append(residues[1:] == ord("P"), False)

    def annotate(part: Partition) -> None:
        annotate_peaks(peaks.offsets, peaks.mz, entries, has_series, is_closed, rules, part.first, part.last, tuple(ions))

    run_on_threads(
        annotate, equal_partitions(np.diff(peaks.offsets) + 1, resources.threads), resources.threads, resources.progress, steps=lambda _: 0
    )
    return ions


def export_library(project: Project, request: ExportRequest, progress: Progress) -> list[Path]:
    """Write the spectra identified by a run at its false discovery rate as a library; return the path.

    Raises
    ------
    ParameterError
        Something that is needed would be written over.
    InputError
        The run has no stored peaks, or identified nothing.
    StorageError
        The disk refused, or a table is damaged.
    Cancelled
        The user cancelled.
    """
    source, spectra, members = members_of_run(project, request.run_id, progress)
    if not len(members.identified):
        raise InputError(
            source.psms,
            f"run {source.run} has no PSM up to a q-value of {_rate(source):g}",
            remedy="Export a run that identified something, or search again with another fdr",
        )
    return write_members(request, members, spectra, source, progress)


def members_of_run(project: Project, run: str, progress: Progress) -> tuple[SourceRun, Spectra, Members]:
    """Return a run, its spectra, and those identified at its false discovery rate."""
    # It is this run that is meant, also where others do not go on from runs of its kind.
    source = identified_run(project.folder, run, {one.kind for one in project.runs() if one.id == run})
    progress.stage("Reading the spectra of the run")
    spectra = read_spectra_table(source.spectra)
    progress.check()
    identified = read_identified(source.psms, len(spectra), _rate(source))
    return source, spectra, read_members(source.psms, identified, len(spectra))


def _rate(source: SourceRun) -> float:
    return float(source.parameters.get("fdr", _USUAL_FDR))


def write_members(request: ExportRequest, members: Members, spectra: Spectra, source: SourceRun, progress: Progress) -> list[Path]:
    """Write identified spectra as a library; return the path."""
    resources = Resources(available_threads(), progress=progress)
    series = SpectrumSeries.of(str(source.parameters.get("ion_series", BY_ACTIVATION)), spectra.activation)
    n, chunks = consensus_entries(members, spectra, series, source.fragment_tolerance, request.consensus, resources)
    write_library(request.target, chunks, request.format, progress, total=n, threads=resources.threads)
    return [request.target]
