"""Peptides identified by a run of any search, and their proteins."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from proteoscope.engine.arrays import Texts, segment_offsets
from proteoscope.engine.chemistry.peptidoforms import Peptidoform, parse
from proteoscope.engine.errors import InputError, ParameterError
from proteoscope.engine.evidence.localised_sites import LocalisedSites
from proteoscope.engine.evidence.parameters import EvidenceParameters
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.matches.columns import EXPORTED_PSMS, PROTEINS
from proteoscope.engine.matches.fixed_modifications import NONE_FIXED, FixedModifications, fixed_of_parameters, on_all_residues
from proteoscope.engine.matches.site_columns import PSM_SITES
from proteoscope.engine.matches.source_run import EXPLAIN_AGAIN, accepted_targets, explained_run, explained_spectra, identified_run
from proteoscope.engine.peptides.database_decoys import find_database_decoys
from proteoscope.engine.project import Project
from proteoscope.engine.results.arrow import in_one
from proteoscope.engine.results.reader import TableFile
from proteoscope.engine.spectra.tables import SPECTRA

__all__ = [
    "OTHER_SHOWN_KINDS",
    "IdentifiedPeptides",
    "Modifications",
    "ProteinEntry",
    "SourceTables",
    "fixed_modifications",
    "identified_peptides",
    "known_sums",
    "protein_entries",
    "source_tables",
]

_REMEDY = "Run the identification again"
_MODIFICATIONS = ("modification_positions", "modification_names", "modification_masses")
_PSMS = ("peptide", "sequence", "q_value", "rank", "is_decoy", "spectrum", *_MODIFICATIONS)
_SHIFTS = ("shift_position", "site_probability")
_EXPLAINED = ("peptide", "q_value", "spectrum")
_GROUPS = ("accessions", "description", "sequence", "is_decoy", "q_value")
OTHER_SHOWN_KINDS = ("modified",)
"""Kinds of runs whose peptides can be shown although the runs are not identifications."""
_POSITIONS = 1 << 20  # above the length of any peptide


class SourceTables(NamedTuple):
    """Tables of the identification `run` and, if requested, of a later search that explains its unidentified spectra.

    `fixed` contains the fixed modifications in the parameters of the run. `sites` is the table of PSM sites, if the run has one.
    """

    run: str
    psms: Path
    proteins: Path
    spectra: Path
    fixed: FixedModifications
    explained: Path | None = None
    sites: Path | None = None


@dataclass(frozen=True, eq=False)
class Modifications:
    """Modifications of n peptidoforms, m in total.

    Attributes
    ----------
    offsets : ndarray of int64, shape (n + 1,)
        Start of the modifications of each peptidoform in the other columns, followed by m.
    position : ndarray of int64, shape (m,)
        Residue number from 1; 0 for the N-terminus, length + 1 for the C-terminus.
    name : ndarray of int64, shape (m,)
        Index of the name in `names`.
    mass : ndarray of float64, shape (m,)
        Mass in dalton.
    probability : ndarray of float64, shape (m,)
        Highest localisation probability over the spectra of the peptidoform; for an alternative site, the lowest; NaN if not computed.
    is_alternative : ndarray of bool, shape (m,)
        True if the peptidoform has the modification at another, more likely site.
    names : tuple of str
        Names of the modifications, sorted.
    """

    offsets: NDArray[np.int64]
    position: NDArray[np.int64]
    name: NDArray[np.int64]
    mass: NDArray[np.float64]
    probability: NDArray[np.float64]
    is_alternative: NDArray[np.bool_]
    names: tuple[str, ...]

    @classmethod
    def from_columns(
        cls,
        lengths: NDArray[np.int64],
        position: ArrayLike,
        names: Sequence[str],
        mass: ArrayLike,
        probability: ArrayLike | None = None,
        is_alternative: ArrayLike | None = None,
    ) -> Modifications:
        """Return modifications from the number of modifications of each peptidoform, (n,), and concatenated columns, (m,) each."""
        unique, codes = np.unique(np.array(names, np.str_), return_inverse=True)
        unknown = np.full(len(names), np.nan)
        return cls(
            segment_offsets(lengths),
            np.asarray(position, np.int64),
            codes.astype(np.int64).reshape(-1),
            np.asarray(mass, np.float64),
            unknown if probability is None else np.asarray(probability, np.float64),
            np.zeros(len(names), np.bool_) if is_alternative is None else np.asarray(is_alternative, np.bool_),
            tuple(unique.tolist()),
        )

    def followed_by(self, other: Modifications) -> Modifications:
        """Return these modifications followed by those of the peptidoforms in `other`."""
        names = [source.names[code] for source in (self, other) for code in source.name.tolist()]
        pairs = ((getattr(self, name), getattr(other, name)) for name in ("position", "mass", "probability", "is_alternative"))
        position, mass, probability, is_alternative = (np.concatenate(pair) for pair in pairs)
        return Modifications.from_columns(
            np.concatenate((np.diff(self.offsets), np.diff(other.offsets))), position, names, mass, probability, is_alternative
        )


@dataclass(frozen=True, eq=False)
class IdentifiedPeptides:
    """Identified peptidoforms, n of them.

    Attributes
    ----------
    peptides : tuple of str, length n
        Peptidoforms in ProForma 2.0.
    sequences : tuple of str, length n
        Sequences without modifications.
    modifications : Modifications
        Modifications of the peptidoforms.
    n_psms : ndarray of int64, shape (n,)
        Number of spectra of each peptidoform.
    q_value : ndarray of float64, shape (n,)
        Minimum q-value of the spectra.
    intensity : ndarray of float64, shape (n,)
        Sum of the known precursor intensities, NaN if all are unknown.
    are_localised : bool
        True if the run localised modifications.
    """

    peptides: tuple[str, ...]
    sequences: tuple[str, ...]
    modifications: Modifications
    n_psms: NDArray[np.int64]
    q_value: NDArray[np.float64]
    intensity: NDArray[np.float64]
    are_localised: bool = False

    def __len__(self) -> int:
        return len(self.peptides)

    def carried_by_all(self) -> FixedModifications:
        """Return the modifications that are on every residue of their type in all peptides, as from sample preparation (alkylated C)."""
        carried = self.modifications
        chosen = ~carried.is_alternative
        lengths = np.diff(np.concatenate(([0], np.cumsum(chosen)))[carried.offsets])
        names = [carried.names[code] for code in carried.name[chosen].tolist()]
        return on_all_residues(self.sequences, lengths, carried.position[chosen], names)


class ProteinEntry(NamedTuple):
    """First protein of a protein group, with the accessions of the other members (`others`) and the q-value of the group."""

    accession: str
    others: tuple[str, ...]
    description: str
    sequence: str
    q_value: float


def source_tables(folder: Path, run: str) -> SourceTables:
    """Return the tables of a run.

    The run is an identification, an open modification search, or a search that explains spectra of an identification.

    Raises
    ------
    InputError
        If there is no project or no such run, or the run has no protein table.
    ParameterError
        If the run is of another kind.
    """
    project = Project.open(folder)
    run, explained = explained_run(project, run)
    result = identified_run(folder, run, OTHER_SHOWN_KINDS)
    if result.proteins is None:
        raise InputError(folder, f"run '{result.run}' has no protein table", remedy=_REMEDY)
    has_sites = any(stored.name == PSM_SITES.name for stored in project.results(result.run))
    sites = project.table(PSM_SITES.name, result.run) if has_sites else None
    return SourceTables(result.run, result.psms, result.proteins, result.spectra, fixed_of_parameters(result.parameters), explained, sites)


def identified_peptides(tables: SourceTables, maximum_q_value: float) -> IdentifiedPeptides:
    """Return the peptidoforms of target matches with rank 1 and a q-value of at most `maximum_q_value`.

    If the run localised modifications, each modification is at its most likely site instead of the site that the search reported.

    Raises
    ------
    InputError
        If a table is damaged.
    """
    intensities = _precursor_intensities(tables.spectra)
    with TableFile(tables.psms, EXPORTED_PSMS, _PSMS, n_rows_of={"spectra": len(intensities)}, remedy=_REMEDY) as source:
        shifts = [name for name in _SHIFTS if name in source.columns]
        table = source.read([*_PSMS, *shifts])
    n_psms = len(table)
    table = accepted_targets(table.append_column("row", pa.array(np.arange(n_psms))), maximum_q_value)
    row, localised = table["row"].to_numpy(), None
    if tables.sites is not None:
        localised = LocalisedSites.read(tables.sites, n_psms)
        table = table.set_column(table.column_names.index("peptide"), "peptide", localised.peptides(row, table["peptide"]))
    encoded = in_one(table["peptide"]).dictionary_encode()
    # Peptidoforms are numbered by first occurrence.
    form = encoded.indices.to_numpy().astype(np.int64)
    first = np.unique(form, return_index=True)[1]
    some = table.take(first).combine_chunks()
    lengths = pa.compute.list_value_length(some[_MODIFICATIONS[0]]).to_numpy().astype(np.int64)
    position, names, mass = (in_one(pa.compute.list_flatten(some[name])) for name in _MODIFICATIONS)
    position, mass, names = position.to_numpy().astype(np.int64), mass.to_numpy(), names.to_pylist()
    owner = np.repeat(np.arange(len(first)), lengths)
    probability = is_alternative = None
    if localised is not None:
        owner, position, names, mass, probability, is_alternative = localised.place(row, form, owner, position, names, mass)
        lengths = np.bincount(owner, minlength=len(first))
    elif len(shifts) == len(_SHIFTS):
        probability = _best_probabilities(owner, position, form, *(_numbers(table[name]) for name in _SHIFTS))
    result = IdentifiedPeptides(
        tuple(encoded.dictionary.to_pylist()),
        tuple(some["sequence"].to_pylist()),
        Modifications.from_columns(lengths, position, names, mass, probability, is_alternative),
        *_summarise_forms(form, len(first), _numbers(table["q_value"]), intensities[table["spectrum"].to_numpy()]),
        are_localised=localised is not None,
    )
    return result if tables.explained is None else _with_explained(result, tables.explained, intensities, maximum_q_value)


def fixed_modifications(
    peptides: IdentifiedPeptides, tables: SourceTables, parameters: EvidenceParameters, progress: Progress
) -> FixedModifications:
    """Return the fixed modifications, whose residues are not reported as modified sites.

    If the run does not record its fixed modifications, as for an import, modifications of all residues of a type count as fixed. With the
    parameter `fixed_sites`, no modification is fixed.
    """
    if parameters.fixed_sites:
        return NONE_FIXED
    result = tables.fixed or peptides.carried_by_all()
    if result and not tables.fixed:
        names = ", ".join(f"{name} ({where})" for name, where in sorted(result))
        progress.message(
            f"All residues of a type carry {names}, which therefore does not count as a site; fixed_sites shows such modifications"
        )
    return result


def _numbers(column: pa.ChunkedArray) -> NDArray[np.float64]:
    """Return a column as float64, NaN for null."""
    values: NDArray[np.float64] = column.cast("float64").to_numpy()
    return values


def _precursor_intensities(path: Path) -> NDArray[np.float64]:
    """Return the precursor intensity of each spectrum of a run; NaN if unknown."""
    with TableFile(path, SPECTRA, ("precursor_intensity",), remedy=_REMEDY) as source:
        result = _numbers(source.read(("precursor_intensity",))["precursor_intensity"])
    # MGF files write 0 for unknown values.
    return np.where(result > 0, result, np.nan)


def _summarise_forms(
    form: NDArray[np.int64], n: int, q_value: NDArray[np.float64], intensity: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Return for each of n peptidoforms the number of spectra, the minimum q-value and the sum of the intensities."""
    least = np.full(n, np.inf)
    np.minimum.at(least, form, q_value)
    return np.bincount(form, minlength=n), least, known_sums(form, intensity, n)


def known_sums(group: NDArray[np.int64], values: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """Return the sum of the known values in each of n groups, (n,); NaN for groups without known values.

    Examples
    --------
    >>> known_sums(np.array([0, 0, 1]), np.array([2.0, np.nan, np.nan]), 2).tolist()
    [2.0, nan]
    """
    is_known = np.isfinite(values)
    sums = np.full(n, np.nan)
    sums[group[is_known]] = 0.0
    np.add.at(sums, group[is_known], values[is_known])
    return sums


def _best_probabilities(
    owner: NDArray[np.int64],
    position: NDArray[np.int64],
    form: NDArray[np.int64],
    index: NDArray[np.float64],
    probability: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the localisation probability of each modification: the highest over the spectra of its peptidoform; NaN if unknown.

    Parameters
    ----------
    owner, position : ndarray of int64, shape (m,)
        Peptidoform and residue number of each modification.
    form : ndarray of int64, shape (spectra,)
        Peptidoform of each spectrum.
    index, probability : ndarray of float64, shape (spectra,)
        Residue number and probability of the mass difference of each spectrum, NaN without a mass difference.
    """
    is_known = np.isfinite(index) & np.isfinite(probability)
    keys, at = np.unique(form[is_known] * _POSITIONS + index[is_known].astype(np.int64), return_inverse=True)
    best = np.zeros(len(keys) + 1)
    np.maximum.at(best, at.reshape(-1), probability[is_known])
    best[-1] = np.nan
    wanted = owner * _POSITIONS + position
    result = np.searchsorted(keys, wanted)
    is_there = np.append(keys, -1)[result] == wanted
    return best[np.where(is_there, result, len(keys))]


def _with_explained(
    identified: IdentifiedPeptides, path: Path, intensities: NDArray[np.float64], maximum_q_value: float
) -> IdentifiedPeptides:
    """Return the identified peptides and the peptides of explained spectra. Mass differences of explained spectra have no site."""
    table = explained_spectra(path, _EXPLAINED, maximum_q_value, len(intensities))
    spectrum = table["spectrum"].to_numpy()
    # New peptidoforms follow the existing ones.
    names = pa.concat_arrays([pa.array(identified.peptides, pa.string()), in_one(table["peptide"]).cast("string")]).dictionary_encode()
    n, n_known = len(names.dictionary), len(identified)
    more = names.dictionary[n_known:].to_pylist()
    parsed = [_parsed(name, path) for name in more]
    carried = [modification for form in parsed for modification in form.modifications]
    changes = Modifications.from_columns(
        np.array([len(form.modifications) for form in parsed], np.int64),
        [modification[0] for modification in carried],
        [modification[1] for modification in carried],
        [modification[2] for modification in carried],
    )
    form = names.indices.to_numpy().astype(np.int64)[n_known:]
    n_psms, q_value, intensity = _summarise_forms(form, n, _numbers(table["q_value"]), intensities[spectrum])
    n_psms[:n_known] += identified.n_psms
    q_value[:n_known] = np.minimum(q_value[:n_known], identified.q_value)
    before = np.append(identified.intensity, np.full(n - n_known, np.nan))
    return IdentifiedPeptides(
        (*identified.peptides, *more),
        (*identified.sequences, *(form.sequence for form in parsed)),
        identified.modifications.followed_by(changes),
        n_psms,
        q_value,
        np.where(np.isnan(before), intensity, before + np.nan_to_num(intensity)),
        identified.are_localised,
    )


def _parsed(name: str, path: Path) -> Peptidoform:
    try:
        return parse(name)
    except ParameterError as error:
        raise InputError(path, f"contains an invalid peptide ({error})", remedy=EXPLAIN_AGAIN) from None


def _check_for_decoys(path: Path, rows: list[dict[str, Any]]) -> None:
    """Raise InputError if targets in a protein table are decoys of the database, which the run searched as targets.

    Raises
    ------
    InputError
        If the table has such decoys.
    """
    proteins = [
        (row["accessions"][0] or "", row["sequence"]) for row in rows if not row["is_decoy"] and row["accessions"] and row["sequence"]
    ]
    if not proteins:
        return
    sequences = Texts.from_strings(sequence for _, sequence in proteins)
    result = find_database_decoys(sequences.characters, sequences.offsets, Texts.from_strings(accession for accession, _ in proteins))
    if result is not None:
        raise InputError(
            path,
            f"{len(result):,} of {len(proteins):,} protein groups are decoys that the run searched as target proteins "
            f"(the first is {proteins[result.example][0]}), so that its error rates are wrong",
            remedy="Search the spectra again, with decoys=existing or decoys_in_database=leave-out",
        )


def protein_entries(path: Path, parameters: EvidenceParameters) -> list[ProteinEntry]:
    """Return the first protein of each protein group to show.

    These are the groups with a protein that the parameters name; without names, the groups up to the maximum q-value. If the run has no
    error rates of proteins, as a library search, all groups are shown.

    Raises
    ------
    InputError
        If the table does not contain protein groups, or has decoys as targets.
    ParameterError
        If a requested protein is in no group.
    """
    with TableFile(path, PROTEINS, _GROUPS, remedy=_REMEDY) as source:
        rows: list[dict[str, Any]] = source.read(_GROUPS).to_pylist()
        _check_for_decoys(path, rows)
        wanted = dict.fromkeys(parameters.proteins)
        result, seen = [], set[str]()
        have_error_rates = any(row["q_value"] is not None for row in rows)
        for row in rows:
            q_value = float("nan") if row["q_value"] is None else row["q_value"]
            if row["is_decoy"] or not row["sequence"]:
                continue
            names = [name for name in row["accessions"] if name]
            if not names:
                raise source.damaged("contains a protein without a name", "accessions")
            seen.update(names)
            if any(name in wanted for name in names) if wanted else q_value <= parameters.protein_fdr or not have_error_rates:
                symbols = re.sub("[^A-Z]", "X", row["sequence"])
                result.append(ProteinEntry(names[0], tuple(names[1:]), row["description"] or "", symbols, q_value))
    missing = [name for name in wanted if name not in seen]
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise ParameterError(
            f"proteins = '{missing[0]:.60}'{more}: no protein group of the run has it; use accessions of the proteins table"
        )
    return result
