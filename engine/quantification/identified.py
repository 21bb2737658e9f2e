"""Results of identifications to be quantified: peptidoforms, their spectra, files and proteins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import is_group_start, row_mask, segment_offsets
from proteoscope.engine.chemistry.isotopes import AVERAGINE, ELEMENTS, element_counts, sequence_elements
from proteoscope.engine.chemistry.modifications import unimod
from proteoscope.engine.errors import InputError
from proteoscope.engine.formats.protein_names import name_columns
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.matches.columns import EXPORTED_PSMS, PROTEINS
from proteoscope.engine.matches.site_columns import PSM_SITES
from proteoscope.engine.matches.source_run import EXPLAIN, EXPLAIN_AGAIN, SourceRun, explained_run, explained_spectra, identified_run_of
from proteoscope.engine.project import Project
from proteoscope.engine.project.digests import content_bytes, copied_files
from proteoscope.engine.quantification.labels import labels_of_peptides
from proteoscope.engine.results.arrow import in_one
from proteoscope.engine.results.reader import TableFile
from proteoscope.engine.spectra.tables import SPECTRA
from proteoscope.engine.statistics.target_decoy import q_values

__all__ = [
    "OTHER_QUANTIFIED_KINDS",
    "Forms",
    "Identified",
    "Matches",
    "Proteins",
    "SourceFile",
    "Sources",
    "files_of_run",
    "identified",
    "sources",
    "warn_of_identified",
]

_REMEDY = "Run the identification again"
_PSMS = (
    "spectrum",
    "spectrum_index",
    "spectrum_id",
    "retention_time",
    "charge",
    "peptide",
    "sequence",
    "proteins",
    "calculated_mass",
    "q_value",
    "peptide_q_value",
    "rank",
    "is_decoy",
    "modification_names",
    "modification_masses",
)
_GROUPS = ("accessions", "description", "length", "is_decoy", "q_value")
_SHIFTED = frozenset({"modified"})
"""Kinds of runs that identify peptides with modifications that are not listed beforehand."""
OTHER_QUANTIFIED_KINDS = _SHIFTED | {EXPLAIN}
"""Kinds of runs that can be quantified in addition to identifications."""
_EXPLAINED = ("spectrum", "peptide", "charge", "q_value", "kind")
_OF_SPECTRA = ("spectrum_index", "spectrum_id", "retention_time")
_OF_PEPTIDES = ("sequence", "proteins", "calculated_mass", "modification_names", "modification_masses")
_OF_MATCHES = ("file", "spectrum_index", "charge", "retention_time", "q_value", "peptide_q_value")
_FEWEST_MERGED = 1 << 16  # rows of peptidoforms that are collected before they are merged
_AVERAGINE_MASS = 111.1254


class SourceFile(NamedTuple):
    """Spectrum file of an identification: path, SHA-256, and size in bytes at the time of the identification."""

    path: str
    sha256: str
    size: int = -1

    @property
    def content(self) -> str:
        """Identity of the file's content, equal for copies of a file."""
        return self.sha256 or self.path


class Sources(NamedTuple):
    """Identifications to be quantified.

    Attributes
    ----------
    runs : tuple of SourceRun
        Runs of the identifications.
    proteins : tuple of Path
        Protein table of each run.
    files_of_run : tuple of tuple of SourceFile
        Spectrum files of each run.
    files : tuple of SourceFile
        Spectrum files of all runs, without copies.
    explained : tuple of (Path or None)
        Table of explained spectra to add to each run.
    copies : mapping of str to str
        Paths of files with the same content as one of `files`, mapped to the path of that file.
    sites : tuple of (Path or None)
        Table of the sites of modifications in the matches of each run that localised them.
    """

    runs: tuple[SourceRun, ...]
    proteins: tuple[Path, ...]
    files_of_run: tuple[tuple[SourceFile, ...], ...]
    files: tuple[SourceFile, ...]
    explained: tuple[Path | None, ...]
    copies: Mapping[str, str]
    sites: tuple[Path | None, ...]

    def inputs(self, *, with_spectra: bool) -> dict[str, list[str | Path]]:
        """Return the files to read, by kind: tables of the identifications and, if `with_spectra`, spectra."""
        return {
            "project_psms": [run.psms for run in self.runs],
            "project_proteins": list(self.proteins),
            "project_sites": [path for path in self.sites if path is not None],
            "spectra": [file.path for file in self.files] if with_spectra else [],
        }

    def check_sizes(self) -> None:
        """Raise an error unless the spectrum files have the recorded sizes; a manipulated record could name any file.

        Raises
        ------
        InputError
            If a file is missing or has another size.
        """
        for file in self.files:
            try:
                size = content_bytes(Path(file.path))
            except (OSError, ValueError) as error:
                raise InputError(file.path, "cannot be read", remedy="Restore the file, or identify it again") from error
            if size != file.size:
                raise _changed(file)

    def check_digests(self, digests: Sequence[str]) -> None:
        """Raise an error if a spectrum file has changed since the identification; `digests` are SHA-256 values, or empty to skip the check.

        Raises
        ------
        InputError
            If a file has changed.
        """
        for file, digest in zip(self.files, digests, strict=False):
            if digest != file.sha256:
                raise _changed(file)


@dataclass(frozen=True)
class Forms:
    """Peptidoforms (m in total).

    Attributes
    ----------
    peptide : list of str, length m
        Peptidoforms in ProForma.
    sequence : ndarray of int64, shape (m,)
        Index into `Identified.sequences`.
    mass : ndarray of float64, shape (m,)
        Neutral monoisotopic mass, Da.
    elements : ndarray of float64, shape (m, elements)
        Number of atoms of each element in `proteoscope.engine.chemistry.isotopes.ELEMENTS`.
    """

    peptide: list[str]
    sequence: NDArray[np.int64]
    mass: NDArray[np.float64]
    elements: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.peptide)


@dataclass(frozen=True)
class Matches:
    """Identified spectra (n), without duplicates.

    Attributes
    ----------
    form : ndarray of int64, shape (n,)
        Index of the peptidoform.
    charge : ndarray of int64, shape (n,)
        Charge of each precursor.
    file : ndarray of int64, shape (n,)
        Index of the file in `Identified.files`.
    retention_time : ndarray of float64, shape (n,)
        Retention time in seconds, NaN if unknown.
    index : ndarray of int64, shape (n,)
        Index of the spectrum in its file, from 0.
    spectrum_id : pyarrow.Array of str, length n or 0
        Identifier of each spectrum in its file, if it was read.
    """

    form: NDArray[np.int64]
    charge: NDArray[np.int64]
    file: NDArray[np.int64]
    retention_time: NDArray[np.float64]
    index: NDArray[np.int64]
    spectrum_id: pa.Array

    def __len__(self) -> int:
        return len(self.form)

    @cached_property
    def _by_file(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Indices of the spectra sorted by file, and the offset of each file in them."""
        return np.argsort(self.file, kind="stable"), segment_offsets(np.bincount(self.file))

    def rows_of_file(self, file: int) -> NDArray[np.int64]:
        """Return the indices of the spectra of a file, ascending; all files together take time in proportion to the spectra."""
        order, offsets = self._by_file
        return order[offsets[file] : offsets[file + 1]] if file + 1 < len(offsets) else order[:0]


@dataclass(frozen=True)
class Proteins:
    """Protein groups (p), named by their first member.

    Attributes
    ----------
    accession : list of str, length p
        Accession of the first member.
    others : list of list of str, length p
        Accessions of the further members.
    description : list of str, length p
        Description of the first member.
    length : ndarray of int64, shape (p,)
        Number of residues of the first member, 0 if unknown.
    """

    accession: list[str]
    others: list[list[str]]
    description: list[str]
    length: NDArray[np.int64]

    @cached_property
    def names(self) -> dict[str, pa.Array]:
        """Columns of genes and organisms."""
        return name_columns(self.description)

    def __len__(self) -> int:
        return len(self.accession)


@dataclass(frozen=True)
class Identified:
    """Peptides to quantify, with their spectra and proteins.

    Attributes
    ----------
    files : tuple of SourceFile
        Spectrum files.
    forms : Forms
        Peptidoforms.
    matches : Matches
        Identified spectra.
    sequences : list of str, length s
        Sequences without modifications.
    proteins : Proteins
        Protein groups.
    protein : ndarray of int64, shape (s,)
        Index of the protein group to which each sequence is assigned, or -1.
    peptide_q_value : ndarray of float64, shape (forms,)
        q-value of each peptidoform over all runs (see `_experiment_q_values`), NaN if unknown.
    has_protein : ndarray of bool, shape (s,)
        True for sequences of an accepted protein group, even if several groups share the sequence.
    unrated : tuple of str
        Runs without protein error rates; all their proteins with accepted matches are used.
    decoys : Identified or None
        Decoy peptidoforms of all proteins and their spectra, accepted by the same rules; None without decoys.
    """

    files: tuple[SourceFile, ...]
    forms: Forms
    matches: Matches
    sequences: list[str]
    proteins: Proteins
    protein: NDArray[np.int64]
    peptide_q_value: NDArray[np.float64]
    has_protein: NDArray[np.bool_]
    unrated: tuple[str, ...]
    decoys: Identified | None = None


def sources(folder: Path, runs: Sequence[str]) -> Sources:
    """Return the requested identifications (the newest if `runs` is empty) and their files.

    Raises
    ------
    InputError
        If there is no project or no such run, or a run has no proteins or spectrum files.
    ParameterError
        If a run is not an identification.
    """
    project = Project.open(folder)
    # The runs are listed once, since a list takes time in proportion to their number.
    records = project.runs()
    explaining = {record.id for record in records if record.kind == EXPLAIN}
    meant = [explained_run(project, name) if name in explaining else (name, None) for name in runs or ("",)]
    result = [identified_run_of(project, records, name, _SHIFTED) for name, _ in meant]
    lacking = next((run for run in result if run.proteins is None), None)
    if lacking is not None:
        raise InputError(folder, f"run '{lacking.run}' has no protein table", remedy=_REMEDY)
    proteins = tuple(run.proteins for run in result if run.proteins is not None)
    all_inputs, files_of = project.inputs_of_runs(), dict[str, tuple[SourceFile, ...]]()
    for run in result:
        here = tuple(SourceFile(str(file.path), file.sha256, file.size) for file in all_inputs.get(run.run, ()) if file.kind == "spectra")
        files_of[run.run] = here or files_of_run(project, run.run)
    files = tuple(files_of[run.run] for run in result)
    if not all(files):
        raise InputError(
            folder,
            f"the record of run '{result[files.index(())].run}' contains no spectrum file",
            remedy="Use the run that it is based on, or search again",
        )
    every = tuple({file.content: file for of_run in reversed(files) for file in reversed(of_run)}.values())[::-1]
    copies = copied_files((file.path, file.sha256) for of_run in files for file in of_run)
    stored = [{table.name for table in project.results(run.run)} for run in result]
    sites = tuple(
        project.table(PSM_SITES.name, run.run) if PSM_SITES.name in names else None for run, names in zip(result, stored, strict=True)
    )
    return Sources(tuple(result), proteins, files, every, tuple(path for _, path in meant), copies, sites)


def files_of_run(project: Project, run: str) -> tuple[SourceFile, ...]:
    """Return the spectrum files recorded by a run, or else those recorded by the run that it builds on; empty if there are none."""
    left = {run.id for run in project.runs()}
    # An explanation reads the spectrum table of an identification, so start from that.
    before: object = explained_run(project, run)[0]
    files: tuple[SourceFile, ...] = ()
    # Manipulated records may form a cycle.
    while not files and isinstance(before, str) and before in left:
        left.remove(before)
        files = tuple(
            SourceFile(str(source.path), source.sha256, source.size) for source in project.inputs(before) if source.kind == "spectra"
        )
        before = project.record(before).get("source_run")
    return files


def _changed(file: SourceFile) -> InputError:
    return InputError(file.path, "has changed since it was identified", remedy="Restore the original file, or identify it again")


def identified(sources: Sources, psm_fdr: float, protein_fdr: float, *, uses_razor: bool, has_ids: bool = True) -> Identified:
    """Return the peptidoforms of rank 1 target matches, with the accepted protein groups.

    The runs are read one after the other. Only numbers of each accepted match, and a row for each peptidoform, are in memory.

    Parameters
    ----------
    sources : Sources
        Identifications and their files.
    psm_fdr : float
        Maximum q-value of PSMs.
    protein_fdr : float
        Maximum q-value of protein groups.
    uses_razor : bool
        True assigns a shared peptide to the protein group with most peptides; False assigns it to none.
    has_ids : bool
        True to read the identifiers of the spectra.

    Returns
    -------
    Identified

    Raises
    ------
    InputError
        If a table is invalid, or nothing is identified.
    """
    numbers = {file.content: number for number, file in enumerate(sources.files)}
    targets, decoys, groups = _Collected(has_ids=has_ids), _Collected(has_ids=has_ids), _Groups([], {}, [], [], [], set())
    for run, path, files, explained in zip(sources.runs, sources.proteins, sources.files_of_run, sources.explained, strict=True):
        file_of_row = _file_of_rows(run, [numbers[file.content] for file in files])
        with TableFile(run.psms, EXPORTED_PSMS, _PSMS, n_rows_of={"spectra": len(file_of_row)}, remedy=_REMEDY) as source:
            parts = [part.filter(pa.compute.equal(part["rank"], 1)) for part in source.batches(_PSMS)]
            table = pa.concat_tables(parts) if parts else source.read(_PSMS)
        accepted = table.filter(pa.compute.fill_null(pa.compute.less_equal(table["q_value"], psm_fdr), False))
        of_targets = accepted.filter(pa.compute.invert(accepted["is_decoy"]))
        if explained is not None:
            of_targets = pa.concat_tables([of_targets, _explained_rows(explained, run, table, psm_fdr)])
        groups.add(run.run, path, protein_fdr, in_one(of_targets["proteins"]))
        targets.add(of_targets, file_of_row)
        decoys.add(accepted.filter(accepted["is_decoy"]), file_of_row)
    collected, of_decoys = targets.finish(), decoys.finish()
    pa.default_memory_pool().release_unused()  # Arrow otherwise retains the memory of the tables that were read
    if not len(collected.form):
        raise InputError(sources.runs[0].psms, "contains no match up to psm_fdr", remedy="Raise psm_fdr, or use another run")
    rated = _experiment_q_values(collected, of_decoys, len(sources.runs))
    result = [
        _columns(sources.files, part, groups, q_value, uses_razor=uses_razor)
        for part, q_value in zip((collected, of_decoys), rated, strict=True)
        if len(part.form)
    ]
    if len(result) == 1:
        return result[0]
    # Wrong peptides of accepted proteins are at most as frequent as decoy peptides, but decoy proteins are hardly ever accepted.
    return replace(result[0], decoys=replace(result[1], has_protein=np.ones(len(result[1].sequences), np.bool_)))


class _Accepted(NamedTuple):
    """Accepted matches (n) of all runs in the order of reading, before duplicates are removed.

    Attributes
    ----------
    form : ndarray of int64, shape (n,)
        Row in `forms`.
    numbers : dict of str to ndarray
        Columns `_OF_MATCHES`.
    spectrum_id : pyarrow.Array
        Identifiers of spectra, n or none.
    forms : pyarrow.Table
        Columns of peptidoforms.
    """

    form: NDArray[np.int64]
    numbers: dict[str, NDArray[Any]]
    spectrum_id: pa.Array
    forms: pa.Table


class _Collected:
    """Collector of the accepted matches of one run after the other."""

    def __init__(self, *, has_ids: bool) -> None:
        self._has_ids = has_ids
        self._numbers: dict[str, list[NDArray[Any]]] = {name: [] for name in _OF_MATCHES}
        self._peptides: list[pa.DictionaryArray] = []
        self._ids: list[pa.Array] = [pa.array([], pa.string())]
        self._forms: list[pa.Table] = []

    def add(self, rows: pa.Table, file_of_row: NDArray[np.int64]) -> None:
        """Add the accepted matches of a run; `file_of_row` is the index of the file of each spectrum."""
        file = file_of_row[rows["spectrum"].to_numpy()]
        numbers = {"file": file.astype(np.int32), "charge": rows["charge"].to_numpy(), "spectrum_index": rows["spectrum_index"].to_numpy()}
        for name in ("retention_time", "q_value", "peptide_q_value"):
            numbers[name] = pa.compute.fill_null(rows[name].cast(pa.float64()), float("nan")).to_numpy()
        for name, values in numbers.items():
            self._numbers[name].append(values)
        self._peptides.append(in_one(rows["peptide"]).dictionary_encode())
        if self._has_ids:
            self._ids.append(in_one(rows["spectrum_id"]))
        forms = rows.select(["peptide", *_OF_PEPTIDES])
        forms = forms.append_column("file", pa.array(file)).append_column("spectrum_index", rows["spectrum_index"])
        self._forms.append(_first_of_peptides(forms))
        if sum(map(len, self._forms[1:])) > max(_FEWEST_MERGED, len(self._forms[0])):
            self._forms = [_first_of_peptides(pa.concat_tables(self._forms))]

    def finish(self) -> _Accepted:
        """Return all matches."""
        forms = _first_of_peptides(pa.concat_tables(self._forms))
        names = in_one(forms["peptide"])
        codes = [
            pa.compute.index_in(part.dictionary, value_set=names).to_numpy().astype(np.int64)[part.indices.to_numpy()]
            for part in self._peptides
        ]
        numbers = {}
        for name in _OF_MATCHES:
            numbers[name] = np.concatenate(self._numbers.pop(name))
        return _Accepted(np.concatenate(codes), numbers, in_one(pa.chunked_array(self._ids)), forms)


def _first_of_peptides(table: pa.Table) -> pa.Table:
    """Return one row of each peptidoform: the first by file and spectrum."""
    table = table.combine_chunks()
    code = in_one(table["peptide"]).dictionary_encode().indices.to_numpy()
    order = np.lexsort((table["spectrum_index"].to_numpy(), table["file"].to_numpy(), code))
    return table.take(pa.array(order[is_group_start(code[order])]))


def warn_of_identified(quantified: Identified, method: str, progress: Progress) -> None:
    """Warn about isobaric labels that are not quantified, and about runs without protein error rates."""
    labelled = None if method == "tmt" else labels_of_peptides(quantified.forms.peptide)
    if labelled is not None:
        name, kits, n_forms = labelled
        progress.message(
            f"{n_forms:,} of {len(quantified.forms):,} peptidoforms carry {name}: the samples of each file are in its reporter ions, which"
            f" --method {method} does not read; quantify with --method tmt and --label {' or '.join(kits)}",
            "warning",
        )
    if quantified.unrated:
        progress.message(
            f"{', '.join(quantified.unrated)}: no error rate of proteins is known; all proteins of accepted matches are quantified",
            "warning",
        )


def _experiment_q_values(targets: _Accepted, decoys: _Accepted, n_runs: int) -> list[NDArray[np.float64]]:
    """Return the q-value of each peptidoform over all files, of targets and of decoys; NaN if unknown.

    The q-value is the larger of two values. The first is the lowest q-value in the runs times the number of runs, since correct
    peptidoforms are mostly the same in all runs, but false peptidoforms differ and add up. For the second, peptidoforms are divided into
    those found in one file and those found in several files, and q-values are estimated in each group: the first group contains most false
    peptidoforms, which would then be searched in all other files. Without decoys, only the first value is used.
    """
    best, n_files = (np.concatenate(parts) for parts in zip(*map(_by_peptide, (targets, decoys)), strict=True))
    is_decoy = np.arange(len(best)) >= len(targets.forms)
    q_value = np.minimum(best * n_runs, 1.0)
    for is_group in (n_files == 1, n_files > 1):
        rows = np.flatnonzero(is_group & ~np.isnan(best))
        if is_decoy.any() and len(rows):
            q_value[rows] = np.maximum(q_value[rows], q_values(-best[rows], is_decoy[rows]))
    return [q_value[rows] for rows in (~is_decoy, is_decoy)]


def _by_peptide(collected: _Accepted) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the lowest peptide q-value of each peptidoform, and the number of files with matches of the peptidoform."""
    order = np.lexsort((collected.numbers["file"], collected.form))
    form, file = collected.form[order], collected.numbers["file"][order]
    best = np.full(len(collected.forms), np.nan)
    if len(order):
        best = np.fmin.reduceat(collected.numbers["peptide_q_value"][order], np.flatnonzero(is_group_start(form)))
    return best, np.bincount(form[is_group_start(form, file)], minlength=len(collected.forms))


def _explained_rows(path: Path, run: SourceRun, psms: pa.Table, maximum_q_value: float) -> pa.Table:
    """Return explained spectra that resemble an identified peptide of the same mass, as rows with the columns of `psms`.

    Spectra that resemble a peptide of another mass belong to a peptidoform with an unknown modification and are not quantified.
    """
    with TableFile(run.spectra, SPECTRA, _OF_SPECTRA, remedy=_REMEDY) as source:
        spectra = source.read(_OF_SPECTRA)
    table = explained_spectra(path, _EXPLAINED, maximum_q_value, len(spectra))
    table = table.filter(pa.compute.fill_null(pa.compute.equal(table["kind"], "same"), False))
    targets = psms.filter(pa.compute.and_(pa.compute.equal(psms["rank"], 1), pa.compute.invert(psms["is_decoy"])))
    row_of = {name: row for row, name in reversed(list(enumerate(targets["peptide"].to_pylist())))}
    names = table["peptide"].to_pylist()
    if lacking := next((name for name in names if name not in row_of), None):
        raise InputError(path, f"contains peptide {lacking:.60}, which the identification does not have", remedy=EXPLAIN_AGAIN)
    peaks, peptides = spectra.take(table["spectrum"]), targets.take(pa.array([row_of[name] for name in names], pa.int64()))
    n = len(table)
    columns = {name: peaks[name] for name in _OF_SPECTRA} | {name: peptides[name] for name in _OF_PEPTIDES}
    columns |= {name: table[name] for name in ("spectrum", "peptide", "charge", "q_value")}
    columns |= {"rank": pa.chunked_array([np.ones(n, np.int64)]), "is_decoy": pa.chunked_array([np.zeros(n, np.bool_)])}
    columns["peptide_q_value"] = pa.chunked_array([pa.nulls(n, pa.float64())])
    return pa.table({field.name: in_one(columns[field.name]).cast(field.type) for field in psms.schema}, schema=psms.schema)


def _file_of_rows(run: SourceRun, numbers: Sequence[int]) -> NDArray[np.int64]:
    """Return the index of the spectrum file of each row of a run's table of spectra."""
    with TableFile(run.spectra, SPECTRA, ("spectrum_file",), remedy=_REMEDY) as source:
        table = source.read(("spectrum_file",))
        # Spectra are ordered by file. Recorded file names may be relative to another folder, so compare by order instead of by name.
        file = in_one(table["spectrum_file"]).dictionary_encode().indices.to_numpy().astype(np.int64)
        if int(file.max(initial=-1)) + 1 != len(numbers):
            raise source.damaged("contains spectra of files that the run did not read", "spectrum_file")
    numbered: NDArray[np.int64] = np.array(numbers, np.int64)[file]
    return numbered


def _first_of_spectra(collected: _Accepted) -> NDArray[np.int64]:
    """Return the row of the match with the lowest q-value of each spectrum, since several runs may have identified a spectrum."""
    file, index = collected.numbers["file"], collected.numbers["spectrum_index"]
    order = np.lexsort((collected.numbers["q_value"], index, file))
    return order[is_group_start(file[order], index[order])]


class _Groups(NamedTuple):
    """Protein groups of several runs (groups with a common protein are merged), and the runs without protein error rates.

    `number_of` is the index of the group by accession; `length` is the number of residues of the first protein, 0 if unknown; `seen` are
    the lists of accessions that were added.
    """

    unrated: list[str]
    number_of: dict[str, int]
    accessions: list[list[str]]
    descriptions: list[str]
    length: list[int]
    seen: set[str]

    def add(self, run: str, path: Path, maximum_q_value: float, of_matches: pa.Array) -> None:
        """Add the groups of a run that have at most the given q-value.

        If the groups have no q-values, add those with an accepted match; `of_matches` lists the proteins of each accepted match.
        """
        with TableFile(path, PROTEINS, _GROUPS, remedy=_REMEDY) as source:
            table = source.read(_GROUPS)
            table = table.filter(pa.compute.invert(table["is_decoy"]))
            is_rated = table["q_value"].null_count < len(table)
            matched: Set[str] = frozenset()
            if is_rated:
                table = table.filter(pa.compute.fill_null(pa.compute.less_equal(table["q_value"], maximum_q_value), False))
            elif len(table):
                self.unrated.append(run)
                matched = frozenset(pa.compute.unique(of_matches.flatten()).to_pylist())
            # Most groups are the same in all runs, and adding one again has no effect.
            keys = pa.compute.binary_join(in_one(table["accessions"]), "\n").to_pylist()
            new = [row for row, key in enumerate(keys) if key not in self.seen]
            for position, row in zip(new, table.take(pa.array(new, pa.int64())).to_pylist(), strict=True):
                names = [name for name in row["accessions"] if name]
                if not is_rated and matched.isdisjoint(names):
                    continue
                if not names:
                    raise source.damaged("contains a protein without a name", "accessions")
                self.seen.add(keys[position])
                self._add(names, row)

    def _add(self, names: list[str], row: Mapping[str, Any]) -> None:
        number = next((self.number_of[name] for name in names if name in self.number_of), len(self.accessions))
        if number == len(self.accessions):
            self.accessions.append([])
            self.descriptions.append(row["description"] or "")
            self.length.append(row["length"] or 0)
        for name in names:
            if self.number_of.setdefault(name, number) == number and name not in self.accessions[number]:
                self.accessions[number].append(name)


def _columns(
    files: tuple[SourceFile, ...], collected: _Accepted, groups: _Groups, q_value: NDArray[np.float64], *, uses_razor: bool
) -> Identified:
    chosen = _first_of_spectra(collected)
    form = collected.form[chosen]
    rows, first = np.unique(form, return_index=True)
    rows = rows[np.argsort(first)]  # peptidoforms are numbered in the order of the matches
    number = np.full(len(collected.forms), -1, np.int64)
    number[rows] = np.arange(len(rows))
    some = collected.forms.take(pa.array(rows))
    sequence = in_one(some["sequence"]).dictionary_encode()
    of_form = sequence.indices.to_numpy().astype(np.int64)
    sequences = sequence.dictionary.to_pylist()
    elements = sequence_elements(sequences)[of_form] + _modification_elements(some)
    forms = Forms(some["peptide"].to_pylist(), of_form, some["calculated_mass"].to_numpy().astype(np.float64), elements)
    charge, file, index = (collected.numbers[name][chosen].astype(np.int64) for name in ("charge", "file", "spectrum_index"))
    ids = collected.spectrum_id.take(pa.array(chosen)) if len(collected.spectrum_id) else collected.spectrum_id
    matches = Matches(number[form], charge, file, collected.numbers["retention_time"][chosen], index, ids)
    _, first_of_sequence = np.unique(of_form, return_index=True)
    owner, has_protein = _owners(some.take(pa.array(first_of_sequence)), groups, uses_razor=uses_razor)
    proteins = Proteins(
        [accession[0] for accession in groups.accessions],
        [accession[1:] for accession in groups.accessions],
        groups.descriptions,
        np.array(groups.length, np.int64),
    )
    return Identified(files, forms, matches, sequences, proteins, owner, q_value[rows], has_protein, tuple(groups.unrated))


def _modification_elements(table: pa.Table) -> NDArray[np.float64]:
    """Return the atoms that the modifications of each row add: from Unimod, or those of average residues of the same mass."""
    names, masses = in_one(table["modification_names"]), in_one(table["modification_masses"])
    counts = np.diff(names.offsets.to_numpy())
    owner = np.repeat(np.arange(len(table)), counts)
    text = names.flatten().dictionary_encode()
    mass = masses.flatten().to_numpy(zero_copy_only=False)
    compositions: Mapping[str, NDArray[np.float64]] = {
        name: element_counts(unimod().by_name(name).composition) for name in text.dictionary.to_pylist() if name in unimod()
    }
    average = np.array([AVERAGINE.get(element, 0.0) for element in ELEMENTS]) / _AVERAGINE_MASS
    of_name = np.array([compositions.get(name, np.full(len(ELEMENTS), np.nan)) for name in text.dictionary.to_pylist()]).reshape(
        -1, len(ELEMENTS)
    )
    added = of_name[text.indices.to_numpy()] if len(mass) else np.zeros((0, len(ELEMENTS)))
    added = np.where(np.isnan(added), mass[:, None] * average, added)
    result = np.zeros((len(table), len(ELEMENTS)))
    np.add.at(result, owner, added)
    return result


def _owners(table: pa.Table, groups: _Groups, *, uses_razor: bool) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the protein group to which each row of `table` is assigned (-1 for none), and True for rows that have an accepted protein."""
    lists = in_one(table["proteins"])
    text = lists.flatten().dictionary_encode()
    number = np.array([groups.number_of.get(name, -1) for name in text.dictionary.to_pylist()], np.int64)
    row = np.repeat(np.arange(len(table)), np.diff(lists.offsets.to_numpy()))
    pairs = np.stack([row, number[text.indices.to_numpy()]]) if len(row) else np.zeros((2, 0), np.int64)
    pairs = np.unique(pairs[:, pairs[1] >= 0], axis=1)
    n_peptides = np.bincount(pairs[1], minlength=max(1, len(groups.accessions)))
    order = np.lexsort((pairs[1], -n_peptides[pairs[1]], pairs[0]))
    pairs = pairs[:, order]
    rows, first, count = np.unique(pairs[0], return_index=True, return_counts=True)
    result = np.full(len(table), -1, np.int64)
    retained = np.ones(len(rows), np.bool_) if uses_razor else count == 1
    result[rows[retained]] = pairs[1, first[retained]]
    has_protein = row_mask(len(table), rows)
    return result, has_protein
