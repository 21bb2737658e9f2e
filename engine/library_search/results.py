"""Report: the table of library matches, and PSMs, peptides and protein groups of those that are peptides."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import offsets_of, take_runs
from proteoscope.engine.chemistry.enzymes import enzyme
from proteoscope.engine.chemistry.noted_peptides import NotedPeptide
from proteoscope.engine.formats.proteins import Proteins
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.library_search.decoys import LibraryPeptides, library_peptides
from proteoscope.engine.library_search.judging import JudgedMatches
from proteoscope.engine.library_search.parameters import LibrarySearchParameters
from proteoscope.engine.library_search.references import References
from proteoscope.engine.library_search.shifts import NamedShifts, carrying, name_differences
from proteoscope.engine.library_search.tables import MATCHES
from proteoscope.engine.matches.columns import LIBRARY_PSMS, PEPTIDES, PROTEINS
from proteoscope.engine.matches.listed.identifications import Identifications
from proteoscope.engine.matches.listed.judging import ErrorRates, JudgingSettings
from proteoscope.engine.matches.listed.matches import collect_matches
from proteoscope.engine.matches.listed.places import place_peptides
from proteoscope.engine.matches.listed.references import FoundSpectra
from proteoscope.engine.matches.listed.tables import JudgedMatches as JudgedList
from proteoscope.engine.matches.listed.tables import counted_ions, listed_tables
from proteoscope.engine.matches.tables import Counted, Tables
from proteoscope.engine.results.columns import Table
from proteoscope.engine.spectra.columns import Spectra

if TYPE_CHECKING:
    pass

__all__ = ["DECOY_PREFIX", "Reported", "matched_spectra", "report"]

DECOY_PREFIX = "DECOY_"
_NAMELESS = "unknown"
"""The protein of peptides of which neither the library nor a database tells one."""


@dataclass(frozen=True)
class Reported:
    """The tables; how many matches there are at the false discovery rate, how many of them shifted, and of how many names; and the entries
    that were matched."""

    matches: pa.Table
    identified: Tables
    settings: JudgingSettings
    counted: Counted
    n_shifted: int
    n_names: int
    entries: NDArray[np.int64]


def report(
    judged: JudgedMatches, references: References, spectra: Spectra, libraries: list[Path], database: Proteins | None,
    parameters: LibrarySearchParameters, progress: Progress,
) -> Reported:  # fmt: skip
    """The tables of some matches."""
    judged = judged.take(judged.found.similarity >= parameters.minimum_similarity)
    found = judged.found
    entry = references.entry[found.reference]
    peptides = library_peptides(_texts(references, "peptidoform", entry))
    rows = np.flatnonzero(found.is_shifted)
    count = np.maximum(np.abs(found.charge[rows]), 1)
    mass = count * spectra.precursor_mz[found.spectrum[rows]]
    shifts = name_differences(
        peptides.listed, peptides.peptide[rows], found.mass_difference[rows], mass, found.spectrum[rows], count, spectra,
        parameters.nearest_tolerance, parameters, progress,
    )  # fmt: skip
    settings = replace(JudgingSettings.of(parameters, (DECOY_PREFIX,)), is_by_group=True, decoy_ratio=max(references.decoy_ratio, 1e-9))
    if judged.unknown:
        settings = replace(settings, decoys="none")
    identified = _identified(judged, references, peptides, rows, shifts, spectra, database, settings, parameters, progress)
    is_target = ~judged.is_decoy
    accepted = is_target & (np.ones(len(found), np.bool_) if judged.unknown else judged.q_value <= parameters.fdr)
    counted = Counted.of(judged.q_value, judged.is_decoy, parameters.fdr, references.decoy_ratio)
    entries, table = _match_table(judged, references, spectra, libraries, rows, shifts)
    n_shifted = int(np.count_nonzero(accepted & found.is_shifted))
    n_names = len(_texts(references, "name", entry[accepted]).unique())
    return Reported(table, identified, settings, counted, n_shifted, n_names, entries)


def matched_spectra(references: References, entries: NDArray[np.int64], libraries: list[Path]) -> Spectra:
    """Entries of the libraries as spectra, to be kept with the run."""
    of, n = references.entries, len(entries)
    mz, offsets = take_runs(of.mz, of.offsets, entries)
    intensity, _ = take_runs(of.intensity, of.offsets, entries)
    charge = of.numbers["charge"][entries]
    mask = np.where(charge == 0, 0, 1 << np.abs(charge)) | (charge < 0)
    return Spectra(
        tuple(map(str, libraries)), of.numbers["source"][entries].astype(np.int32), _texts(references, "name", entries).to_pylist(),
        np.full(n, -1, np.int64), of.numbers["number"][entries] - 1, np.full(n, np.nan), of.numbers["precursor_mz"][entries],
        np.zeros(n, np.float32), mask.astype(np.uint32), offsets, mz, intensity,
    )  # fmt: skip


def _texts(references: References, name: str, entry: NDArray[np.int64]) -> pa.StringArray:
    return references.entries.texts[name].take(pa.array(entry)).cast(pa.string())


def _match_table(
    judged: JudgedMatches, references: References, spectra: Spectra, libraries: list[Path], shifted: NDArray[np.int64],
    shifts: NamedShifts,
) -> tuple[NDArray[np.int64], pa.Table]:  # fmt: skip
    """Entries that were matched, and the table of matches, the surest first."""
    found = judged.found
    is_unrated = np.isnan(judged.q_value)
    order = np.lexsort((found.spectrum, -found.similarity, np.where(is_unrated, 0.0, judged.q_value), is_unrated))
    order = order[~judged.is_decoy[order]]
    entry = references.entry[found.reference]
    entries, reference = np.unique(entry[order], return_inverse=True)
    own, of = found.take(order), references.entries
    names = {name: np.full(len(found), "", dtype=object) for name in ("modification", "possible_names")}
    names["modification"][shifted], names["possible_names"][shifted] = shifts.name, shifts.possible
    scan, retention_time = spectra.scan[own.spectrum], spectra.retention_time[own.spectrum]

    def known(values: NDArray[np.float64]) -> pa.Array:
        return pa.array(values, mask=np.isnan(values))

    columns = {
        "spectrum": own.spectrum, "reference": reference.astype(np.int64),
        "spectrum_file": pa.array(spectra.file_names, pa.string()).take(pa.array(spectra.file[own.spectrum])),
        "spectrum_id": [spectra.identifier[i] for i in own.spectrum.tolist()], "scan": pa.array(scan, mask=scan < 0),
        "library_spectrum": _texts(references, "name", entry[order]).fill_null(""),
        "peptide": _texts(references, "peptidoform", entry[order]),
        **{name: _texts(references, name, entry[order]) for name in ("formula", "inchikey", "adduct")},
        "charge": own.charge.astype(np.int32), "similarity": own.similarity, "matched_peaks": own.matched.astype(np.int32),
        "mass_difference": own.mass_difference, **{name: pa.array(texts[order].tolist(), pa.string()) for name, texts in names.items()},
        "q_value": known(judged.q_value[order]), "posterior_error_probability": known(judged.posterior_error[order]),
        "precursor_mz": spectra.precursor_mz[own.spectrum], "retention_time": known(retention_time),
        "kind": pa.array(np.where(own.is_shifted, "shifted", "same").tolist(), pa.string()),
        "library": pa.array([path.name for path in libraries], pa.string()).take(pa.array(of.numbers["source"][entry[order]])),
        "library_entry": of.numbers["number"][entry[order]],
    }  # fmt: skip
    return entries, MATCHES.arrow(columns)


def _identified(
    judged: JudgedMatches, references: References, peptides: LibraryPeptides, shifted: NDArray[np.int64], shifts: NamedShifts,
    spectra: Spectra, database: Proteins | None, settings: JudgingSettings, parameters: LibrarySearchParameters, progress: Progress,
) -> Tables:  # fmt: skip
    """PSMs, peptides and protein groups of the matches that are peptides."""
    rows = np.flatnonzero(peptides.peptide >= 0)
    listed = _as_list(judged, references, peptides, rows, shifted, shifts, database, progress)
    n = len(rows)
    of = FoundSpectra(judged.found.spectrum[rows], np.zeros(n, np.int8), False)
    matches = collect_matches(listed, of, spectra, database, enzyme(parameters.enzyme), (), progress)
    if not len(matches):
        nothing = {name: Counted(0, 0) for name in ("psms", "peptides", "proteins")}
        return Tables(_empty(LIBRARY_PSMS), _empty(PEPTIDES), _empty(PROTEINS), nothing, 0)
    kept = rows[matches.row]
    source: Literal["none", "decoys"] = "none" if judged.unknown else "decoys"
    rates = ErrorRates(judged.q_value[kept], judged.posterior_error[kept], source, source)
    is_decoy, ions = judged.is_decoy[kept], counted_ions(matches, spectra, parameters, progress)
    own = JudgedList(judged.found.similarity[kept], "similarity", np.ones(len(kept), np.int64), is_decoy, rates, *ions, settings)
    tables = listed_tables(listed, matches, own, spectra, database).tables
    of_spectrum = np.zeros(len(spectra), np.int64)
    of_spectrum[judged.found.spectrum] = np.arange(len(judged.found))
    row = of_spectrum[tables.psms["spectrum"].to_numpy()]
    entry = references.entry[judged.found.reference[row]]
    psms = tables.psms
    for name, values in (
        ("library_spectrum", _texts(references, "name", entry).fill_null("")), ("similarity", pa.array(judged.found.similarity[row])),
        ("mass_difference", pa.array(judged.found.mass_difference[row])),
    ):  # fmt: skip
        psms = psms.append_column(name, values)
    return replace(tables, psms=psms)


def _empty(table: Table) -> pa.Table:
    """A table without rows, of the columns that no run is without."""
    return table.schema(name for name, column in table.by_name.items() if not column.is_optional).empty_table()


def _as_list(
    judged: JudgedMatches, references: References, peptides: LibraryPeptides, rows: NDArray[np.int64], shifted: NDArray[np.int64],
    shifts: NamedShifts, database: Proteins | None, progress: Progress,
) -> Identifications:  # fmt: skip
    """Matches as a list of identifications: peptides with what the shift is, and proteins of the library, or of the database where that
    has the peptide."""
    found, n = judged.found, len(rows)
    at_shift = np.full(len(found), -1)
    at_shift[shifted] = np.arange(len(shifted))
    numbers: dict[tuple[int, str, int], int] = {}
    noted, own = list[NotedPeptide](), np.empty(n, np.int64)
    for k, (row, at) in enumerate(zip(rows.tolist(), at_shift[rows].tolist(), strict=True)):
        form = int(peptides.peptide[row])
        is_placed = at >= 0 and shifts.site[at] >= 0
        key = (form, shifts.name[at], int(shifts.site[at])) if is_placed else (form, "", -1)
        if key not in numbers:
            numbers[key] = len(noted)
            plain = peptides.noted[form]
            noted.append(carrying(plain, key[2], key[1], float(shifts.mass[at])) if is_placed else plain)
        own[k] = numbers[key]
    offsets, protein, accessions = _proteins(
        judged, references, rows, noted_sequences=[noted[i].sequence for i in own.tolist()], database=database, progress=progress
    )
    nothing, unknown = np.full(n, -1, np.int64), np.full(n, np.nan)
    empty = pa.array([""] * n, pa.string())
    return Identifications(
        format="spectral library", files=(Path("library"),), file=np.zeros(n, np.int64), place=np.arange(n) + 1, run=empty, native_id=empty,
        title=empty, scan=nothing, index=nothing, row=found.spectrum[rows], retention_time=unknown, precursor_mz=unknown,
        calculated_mass=unknown, charge=np.abs(found.charge[rows]), rank=np.ones(n, np.int64), peptide=own, peptides=tuple(noted),
        protein_offsets=offsets, protein=protein, accessions=accessions, is_decoy=judged.is_decoy[rows].astype(np.int8),
        q_value=judged.q_value[rows], posterior_error=judged.posterior_error[rows], scores={},
    )  # fmt: skip


def _proteins(
    judged: JudgedMatches, references: References, rows: NDArray[np.int64], *, noted_sequences: list[str], database: Proteins | None,
    progress: Progress,
) -> tuple[NDArray[np.int64], NDArray[np.int64], tuple[str, ...]]:  # fmt: skip
    """CSR of the proteins that are named of each match, into accessions: none of a target that the database holds."""
    texts = _texts(references, "proteins", references.entry[judged.found.reference[rows]]).to_pylist()
    is_placed = np.zeros(len(rows), np.bool_)
    if database is not None:
        distinct, code = np.unique(np.array(noted_sequences, dtype=object), return_inverse=True)
        none = np.zeros(len(distinct) + 1, np.int64)
        places = place_peptides(tuple(distinct.tolist()), none, none[:0], (), database, progress)
        is_placed = (np.diff(places.offsets) > 0)[code] & ~judged.is_decoy[rows]
    numbers: dict[str, int] = {}
    lists = []
    for text, placed, is_decoy in zip(texts, is_placed.tolist(), judged.is_decoy[rows].tolist(), strict=True):
        named = [] if placed else [one for one in (text or _NAMELESS).split(";") if one] or [_NAMELESS]
        prefix = DECOY_PREFIX if is_decoy else ""
        lists.append([numbers.setdefault(prefix + one, len(numbers)) for one in dict.fromkeys(named)])
    offsets = offsets_of(np.array([len(one) for one in lists], np.int64))
    return offsets, np.array([one for some in lists for one in some], np.int64), tuple(numbers)
