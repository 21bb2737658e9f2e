"""Results of a library search: the library matches, and the PSMs, peptides and protein groups of matched peptides."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import ranges, segment_offsets, take_segments
from proteoscope.engine.chemistry.enzymes import enzyme
from proteoscope.engine.chemistry.modifications import write_mass
from proteoscope.engine.chemistry.noted_peptides import NotedModification, NotedPeptide
from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.entry import ExportRequest
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.formats.proteins import Proteins
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.library_search.decoys import LibraryPeptides, library_peptides
from proteoscope.engine.library_search.error_rates import RatedMatches, missing_fdr_reason
from proteoscope.engine.library_search.parameters import LibrarySearchParameters
from proteoscope.engine.library_search.references import References
from proteoscope.engine.library_search.tables import MATCHES, REFERENCES
from proteoscope.engine.matches.columns import LIBRARY_PSMS, PEPTIDES, PROTEINS
from proteoscope.engine.matches.match_lists.error_rates import ErrorRates, ErrorRateSettings, ListParameters
from proteoscope.engine.matches.match_lists.identifications import Identifications
from proteoscope.engine.matches.match_lists.matches import ListedPeptides, collect_matches
from proteoscope.engine.matches.match_lists.protein_positions import place_peptides
from proteoscope.engine.matches.match_lists.references import FoundSpectra
from proteoscope.engine.matches.match_lists.site_localisation import localise_list
from proteoscope.engine.matches.match_lists.tables import RankedMatches, count_ions, counted_ions, listed_tables
from proteoscope.engine.matches.run_tables import RunTables, export_matches, export_sites
from proteoscope.engine.matches.shift_names import ShiftPositions, name_shifts
from proteoscope.engine.matches.site_tables import SiteTables, write_site_tables
from proteoscope.engine.matches.tables import AcceptanceCounts, Tables
from proteoscope.engine.matches.writers.tables import write_tables
from proteoscope.engine.project import Project
from proteoscope.engine.project.paths import EXPORTS
from proteoscope.engine.project.run import Run
from proteoscope.engine.results.arrow import or_null
from proteoscope.engine.results.columns import Table
from proteoscope.engine.results.reader import read_stored
from proteoscope.engine.results.separated import ROUNDED, report_rated, write_separated
from proteoscope.engine.search_run import SearchRun
from proteoscope.engine.spectra.columns import Spectra
from proteoscope.engine.spectra.spectral_library import PROTEIN_SEPARATOR
from proteoscope.engine.spectra.tables import spectrum_columns, write_spectra

__all__ = ["MATCHES_FILE", "LibraryReport", "NamedShifts", "carrying", "export_library_tables", "name_differences", "report"]

_PLACES = 64  # maximum number of residues for naming
_PER_ION = 2.0  # score per ion: naming accepts residues up to 1.5 below the best, so none with fewer ions


@dataclass(frozen=True)
class NamedShifts:
    """Names and positions of n mass shifts.

    Attributes
    ----------
    name : list of str, length n
        Name of each mass shift, or its mass as text.
    possible : list of str, length n
        All matching names, as one text.
    mass : ndarray of float64, shape (n,)
        Mass of the named modification in dalton.
    site : ndarray of int64, shape (n,)
        Residue number from 1, 0 for the N-terminus, length + 1 for the C-terminus, -1 without a peptide.
    """

    name: list[str]
    possible: list[str]
    mass: NDArray[np.float64]
    site: NDArray[np.int64]


def name_differences(
    peptides: ListedPeptides,
    peptide: NDArray[np.int64],
    shift: NDArray[np.float64],
    mass: NDArray[np.float64],
    spectrum: NDArray[np.int64],
    charge: NDArray[np.int64],
    spectra: Spectra,
    tolerance: Tolerance,
    parameters: ListParameters,
    progress: Progress,
) -> NamedShifts:
    """Return the names and positions of mass shifts.

    The position of a shift is the residue at which most fragment ions match; if several residues are equal, the first.

    Parameters
    ----------
    peptides : ListedPeptides
        Peptides of the library.
    peptide : ndarray of int64, shape (n,)
        Index of the peptide in `peptides`; -1 for a match without a peptide, whose shift has its mass as name.
    shift : ndarray of float64, shape (n,)
        Mass difference in dalton.
    mass : ndarray of float64, shape (n,)
        Measured mass in dalton.
    spectrum, charge : ndarray of int64, shape (n,)
        Spectrum and charge of each match.
    spectra : Spectra
        Spectra of the run.
    tolerance : Tolerance
        Mass tolerance of names.
    parameters : ListParameters
        Parameters of the list of matches.
    progress : Progress
        Progress of the run.

    Returns
    -------
    NamedShifts
    """
    n = len(peptide)
    lengths = np.diff(peptides.residue_offsets)
    name, possible = [write_mass(round(mass, 4)) for mass in shift.tolist()], [""] * n
    named_mass, site = shift.copy(), np.full(n, -1)
    rows = np.flatnonzero((peptide >= 0) & (lengths[np.maximum(peptide, 0)] < _PLACES) if len(lengths) else np.zeros(n, np.bool_))
    if not len(rows):
        return NamedShifts(name, possible, named_mass, site)
    peptide_of_row = peptide[rows]
    score = _residue_scores(peptides, peptide_of_row, shift[rows], spectrum[rows], charge[rows], spectra, parameters, progress)
    begin = peptides.residue_offsets[peptide_of_row]
    # Flanking residues are unknown: use the peptide as its own protein.
    positions = ShiftPositions(
        shift[rows],
        tolerance.width(mass[rows]),
        score,
        begin,
        lengths[peptide_of_row],
        begin,
        begin + lengths[peptide_of_row],
        peptides.residues,
        1,
    )
    named = name_shifts(positions, (), enzyme("Trypsin"))
    for k, row in enumerate(rows.tolist()):
        which = int(named.modification[k])
        site[row], possible[row] = named.site[k], named.possible[k]
        if which >= 0:
            name[row], named_mass[row] = named.modifications[which].name, named.modifications[which].mass
    return NamedShifts(name, possible, named_mass, site)


def _residue_scores(
    peptides: ListedPeptides,
    peptide: NDArray[np.int64],
    shift: NDArray[np.float64],
    spectrum: NDArray[np.int64],
    charge: NDArray[np.int64],
    spectra: Spectra,
    parameters: ListParameters,
    progress: Progress,
) -> NDArray[np.float32]:
    """Return the score of each match with the shift at each residue, (n, 64); -inf after the last residue.

    A score is the number of matched ions times `_PER_ION`. This factor makes a difference of one ion so large that the shift is never
    placed at a residue with fewer matched ions.
    """
    lengths = np.diff(peptides.residue_offsets)[peptide]
    row = np.repeat(np.arange(len(peptide)), lengths)  # one candidate per residue with the shift
    _, position = ranges(np.zeros_like(lengths), lengths)
    offsets, at = ranges(peptides.residue_offsets[peptide[row]], peptides.residue_offsets[peptide[row] + 1])
    masses = peptides.residue_masses[at]
    masses[offsets[:-1] + position] += shift[row]
    matched, _ = count_ions(
        offsets,
        masses,
        peptides.residues[at],
        spectrum[row],
        charge[row],
        spectra,
        parameters.fragment_tolerance,
        parameters.ion_series,
        parameters.maximum_fragment_charge,
        progress,
    )
    score = np.full((len(peptide), _PLACES), -np.inf, np.float32)
    score[row, position] = matched * _PER_ION
    return score


def carrying(peptide: NotedPeptide, site: int, name: str, mass: float) -> NotedPeptide:
    """Return a copy of `peptide` with an additional modification; `site` is 0 to length + 1, `mass` in Da."""
    more = NotedModification(site, "" if name[:1] in "+-" else name, mass)
    return NotedPeptide(peptide.sequence, tuple(sorted((*peptide.modifications, more), key=lambda modification: modification.position)))


DECOY_PREFIX = "DECOY_"
_NAMELESS = "unknown"
"""Accession of the protein of a peptide if neither the library nor a database contains its protein."""
MATCHES_FILE = "matches.tsv"
"""Name of the matches file in the project folder."""


@dataclass(frozen=True)
class LibraryReport:
    """Numbers of reported results.

    Attributes
    ----------
    counts : dict of str to int
        Numbers of accepted library matches (key ``matches``), PSMs, peptides and protein groups; without error rates, of all of them.
    certainty : dict
        Certainty of each number in `counts`, by the same keys.
    n_shifted : int
        Number of accepted matches with another mass.
    n_compounds : int
        Number of distinct entry names among the accepted matches.
    n_unrated : int
        Number of matches of entries without decoys.
    localised : list of dict
        Record of the localised modifications.
    """

    counts: dict[str, int]
    certainty: dict[str, dict[str, float]]
    n_shifted: int
    n_compounds: int
    n_unrated: int
    localised: list[dict[str, Any]]


def report(
    run: SearchRun[Any],
    results: Run,
    matches: RatedMatches,
    references: References,
    spectra: Spectra,
    database: Proteins | None,
    parameters: LibrarySearchParameters,
) -> LibraryReport:
    """Write the library matches, and the PSMs, peptides and protein groups of matched peptides; return their numbers."""
    spectra_written = run.begin(lambda progress: write_spectra(results, spectra, progress))
    libraries, progress, has_rates = run.paths("library"), run.progress, not missing_fdr_reason(references)
    matches = matches.take(matches.similarity >= parameters.minimum_similarity)
    peptides = library_peptides(_texts(references, "peptidoform", references.entry[matches.reference]))
    shifts = _named_shifts(matches, peptides, spectra, parameters, progress)
    settings = replace(
        ErrorRateSettings.from_parameters(parameters, (DECOY_PREFIX,)),
        is_by_group=True,
        decoy_ratio=max(references.decoy_ratio, 1e-9),
        decoys="existing" if has_rates else "none",
    )
    resources = Resources(run.threads, progress=progress, clock=run.clock)
    identified, sites = _identified(matches, references, peptides, shifts, spectra, database, settings, parameters, resources)
    tables = RunTables(identified, settings)
    entries, table = _match_table(matches, references, spectra, libraries, shifts)
    progress.stage("Writing results")
    results.write_table(MATCHES.name, table)
    write_spectra(results, _matched_spectra(references, entries, libraries), progress, REFERENCES.name)
    tables.write(results, progress, run.begin)
    localised = write_site_tables(results, sites, progress)
    write_separated(results.folder / EXPORTS / MATCHES_FILE, table, MATCHES.saved_columns, progress, ROUNDED)
    spectra_written()
    progress.check()
    accepted = matches.take(~matches.is_decoy & ((matches.q_value <= parameters.fdr) | (not has_rates)))
    n_shifted = int(np.count_nonzero(accepted.is_shifted))
    n_compounds = len(_texts(references, "name", references.entry[accepted.reference]).unique())
    counted = AcceptanceCounts.from_q_values(matches.q_value, matches.is_decoy, parameters.fdr, references.decoy_ratio)
    certainty = {"matches": counted.certainty(), **tables.certainty} if has_rates else {}
    counts, n_unrated = {"matches": len(accepted), **tables.counts}, table["q_value"].null_count if has_rates else 0
    return LibraryReport(counts, certainty, n_shifted, n_compounds, n_unrated, localised)


def _matched_spectra(references: References, entries: NDArray[np.int64], libraries: list[Path]) -> Spectra:
    """Return library entries as spectra, to be stored with the run."""
    of, n = references.entries, len(entries)
    mz, offsets = take_segments(of.mz, of.offsets, entries)
    intensity, _ = take_segments(of.intensity, of.offsets, entries)
    charge = of.numbers["charge"][entries]
    mask = np.where(charge == 0, 0, 1 << np.abs(charge)) | (charge < 0)
    return Spectra(
        tuple(map(str, libraries)),
        of.numbers["source"][entries].astype(np.int32),
        _texts(references, "name", entries).to_pylist(),
        np.full(n, -1, np.int64),
        of.numbers["number"][entries] - 1,
        np.full(n, np.nan),
        of.numbers["precursor_mz"][entries],
        np.zeros(n, np.float32),
        mask.astype(np.uint32),
        offsets,
        mz,
        intensity,
    )


def _named_shifts(
    matches: RatedMatches, peptides: LibraryPeptides, spectra: Spectra, parameters: LibrarySearchParameters, progress: Progress
) -> NamedShifts:
    """Return the names of the mass differences of all matches with an entry of another mass."""
    rows = np.flatnonzero(matches.is_shifted)
    spectrum, count = matches.spectrum[rows], np.maximum(np.abs(matches.charge[rows]), 1)
    return name_differences(
        peptides.listed,
        peptides.peptide[rows],
        matches.mass_difference[rows],
        count * spectra.precursor_mz[spectrum],
        spectrum,
        count,
        spectra,
        parameters.nearest_tolerance,
        parameters,
        progress,
    )


def _texts(references: References, name: str, entry: NDArray[np.int64]) -> pa.StringArray:
    return references.entries.texts[name].take(pa.array(entry)).cast(pa.string())


def _match_table(
    matches: RatedMatches, references: References, spectra: Spectra, libraries: list[Path], shifts: NamedShifts
) -> tuple[NDArray[np.int64], pa.Table]:
    """Return the distinct matched entries, ascending, and the table of target matches, most certain first."""
    is_unrated = np.isnan(matches.q_value)
    order = np.lexsort((matches.spectrum, -matches.similarity, np.where(is_unrated, 0.0, matches.q_value), is_unrated))
    order = order[~matches.is_decoy[order]]
    names = {name: np.full(len(matches), "", dtype=object) for name in ("modification", "possible_names")}
    names["modification"][matches.is_shifted], names["possible_names"][matches.is_shifted] = shifts.name, shifts.possible
    matches = matches.take(order)
    entry, spectrum, numbers = references.entry[matches.reference], matches.spectrum, references.entries.numbers
    entries, reference = np.unique(entry, return_inverse=True)
    columns = {
        **spectrum_columns(spectra, spectrum, ("spectrum", "spectrum_file", "spectrum_id", "scan", "precursor_mz", "retention_time")),
        "reference": reference.astype(np.int64),
        "library_spectrum": _texts(references, "name", entry).fill_null(""),
        "peptide": _texts(references, "peptidoform", entry),
        **{name: _texts(references, name, entry) for name in ("formula", "inchikey", "adduct")},
        "charge": matches.charge.astype(np.int32),
        "similarity": matches.similarity,
        "matched_peaks": matches.matched.astype(np.int32),
        "mass_difference": matches.mass_difference,
        **{name: pa.array(texts[order].tolist(), pa.string()) for name, texts in names.items()},
        "q_value": or_null(matches.q_value),
        "posterior_error_probability": or_null(matches.posterior_error),
        "kind": pa.array(np.where(matches.is_shifted, "shifted", "same").tolist(), pa.string()),
        "library": pa.array([path.name for path in libraries], pa.string()).take(pa.array(numbers["source"][entry])),
        "library_entry": numbers["number"][entry],
    }
    return entries, MATCHES.arrow(columns)


def _identified(
    matches: RatedMatches,
    references: References,
    peptides: LibraryPeptides,
    shifts: NamedShifts,
    spectra: Spectra,
    database: Proteins | None,
    settings: ErrorRateSettings,
    parameters: LibrarySearchParameters,
    resources: Resources,
) -> tuple[Tables, SiteTables | None]:
    """Return the tables of PSMs, peptides and protein groups of matched peptides, and the tables of sites of their modifications."""
    progress = resources.progress
    rows = np.flatnonzero(peptides.peptide >= 0)
    listed = _as_list(matches, references, peptides, rows, shifts, database, progress)
    in_spectra = FoundSpectra(matches.spectrum[rows], np.zeros(len(rows), np.int8), False)
    psms = collect_matches(listed, in_spectra, spectra, database, enzyme(parameters.enzyme), (), progress)
    if not len(psms):
        nothing = {name: AcceptanceCounts(0, 0) for name in ("psms", "peptides", "proteins")}
        return Tables(_empty(LIBRARY_PSMS), _empty(PEPTIDES), _empty(PROTEINS), nothing, 0), None
    some = matches.take(rows[psms.row])
    source: Literal["none", "decoys"] = "none" if settings.decoys == "none" else "decoys"
    rates, ions = ErrorRates(some.q_value, some.posterior_error, source, source), counted_ions(psms, spectra, parameters, progress)
    ranked = RankedMatches(some.similarity, "similarity", np.ones(len(some), np.int64), some.is_decoy, rates, *ions, settings)
    tables = listed_tables(listed, psms, ranked, spectra, database).tables
    of_rows = matches.take(np.searchsorted(matches.spectrum, tables.psms["spectrum"].to_numpy()))
    table = tables.psms.append_column("library_spectrum", _texts(references, "name", references.entry[of_rows.reference]).fill_null(""))
    for name in ("similarity", "mass_difference"):
        table = table.append_column(name, pa.array(getattr(of_rows, name)))
    return replace(tables, psms=table), localise_list(psms, ranked, spectra, database, parameters, resources)


def _empty(table: Table) -> pa.Table:
    """Return a table without rows, with all columns that are not optional."""
    return table.schema(name for name, column in table.by_name.items() if not column.is_optional).empty_table()


def _as_list(
    matches: RatedMatches,
    references: References,
    peptides: LibraryPeptides,
    rows: NDArray[np.int64],
    shifts: NamedShifts,
    database: Proteins | None,
    progress: Progress,
) -> Identifications:
    """Return the matches `rows` as identifications, with mass differences as modifications.

    Proteins come from the library. Targets whose peptide is in the database have no proteins, since these are found in the database later.
    """
    n, some = len(rows), matches.take(rows)
    at_shift = np.where(matches.is_shifted, np.cumsum(matches.is_shifted) - 1, -1)[rows]
    numbers: dict[tuple[int, str, int], int] = {}
    noted, peptide = list[NotedPeptide](), np.empty(n, np.int64)
    for k, (form, at) in enumerate(zip(peptides.peptide[rows].tolist(), at_shift.tolist(), strict=True)):
        is_placed = at >= 0 and shifts.site[at] >= 0
        key = (form, shifts.name[at], int(shifts.site[at])) if is_placed else (form, "", -1)
        if key not in numbers:
            plain = peptides.noted[form]
            noted.append(carrying(plain, key[2], key[1], float(shifts.mass[at])) if is_placed else plain)
        peptide[k] = numbers.setdefault(key, len(numbers))
    offsets, protein, accessions = _proteins(some, references, [noted[i].sequence for i in peptide.tolist()], database, progress)
    nothing, unknown = np.full(n, -1, np.int64), np.full(n, np.nan)
    empty = pa.array([""] * n, pa.string())
    return Identifications(
        format="spectral library",
        files=(Path("library"),),
        file=np.zeros(n, np.int64),
        place=np.arange(n) + 1,
        run=empty,
        native_id=empty,
        title=empty,
        scan=nothing,
        index=nothing,
        row=some.spectrum,
        retention_time=unknown,
        precursor_mz=unknown,
        calculated_mass=unknown,
        charge=np.abs(some.charge),
        rank=np.ones(n, np.int64),
        peptide=peptide,
        peptides=tuple(noted),
        protein_offsets=offsets,
        protein=protein,
        accessions=accessions,
        is_decoy=some.is_decoy.astype(np.int8),
        q_value=some.q_value,
        posterior_error=some.posterior_error,
        scores={},
    )


def _proteins(
    matches: RatedMatches, references: References, sequences: list[str], database: Proteins | None, progress: Progress
) -> tuple[NDArray[np.int64], NDArray[np.int64], tuple[str, ...]]:
    """Return the proteins of each match as offsets and indices, and their accessions.

    Proteins come from the library. Targets whose peptide is in the database have no proteins, since these are found in the database later.
    """
    texts = _texts(references, "proteins", references.entry[matches.reference]).to_pylist()
    is_placed = np.zeros(len(matches), np.bool_)
    if database is not None:
        distinct, code = np.unique(np.array(sequences, dtype=object), return_inverse=True)
        none = np.zeros(len(distinct) + 1, np.int64)
        positions = place_peptides(tuple(distinct.tolist()), none, none[:0], (), database, progress)
        is_placed = (np.diff(positions.offsets) > 0)[code] & ~matches.is_decoy
    numbers: dict[str, int] = {}
    lists = []
    for text, placed, is_decoy in zip(texts, is_placed.tolist(), matches.is_decoy.tolist(), strict=True):
        named = [] if placed else [name for name in (text or "").split(PROTEIN_SEPARATOR) if name] or [_NAMELESS]
        prefix = DECOY_PREFIX if is_decoy else ""
        lists.append([numbers.setdefault(prefix + name, len(numbers)) for name in dict.fromkeys(named)])
    offsets = segment_offsets(np.array([len(proteins) for proteins in lists], np.int64))
    return offsets, np.array([number for proteins in lists for number in proteins], np.int64), tuple(numbers)


def export_library_tables(project: Project, request: ExportRequest, progress: Progress) -> list[Path]:
    """Write PSMs, peptides, protein groups, all library matches and sites (see `proteoscope.engine.entry.Search.export`)."""
    written = export_matches(write_tables, project, request, progress)
    out = request.target / f"{MATCHES.name}.tsv"
    result = read_stored(project, request.run_id, MATCHES, MATCHES.saved)
    write_separated(out, result, MATCHES.saved_columns, progress, ROUNDED, spreadsheet_safe=request.spreadsheet_safe)
    run = next(run for run in project.runs() if run.id == request.run_id)
    report_rated(progress, out, result["q_value"], float(run.parameters["fdr"]))
    return [*written, out, *export_sites(project, request, progress)]
