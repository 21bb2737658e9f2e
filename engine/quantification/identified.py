"""Results of identifications to be quantified: peptidoforms, their spectra, files and proteins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import is_group_start, row_mask
from proteoscope.engine.chemistry.isotopes import AVERAGINE, ELEMENTS, element_counts, sequence_elements
from proteoscope.engine.chemistry.modifications import unimod
from proteoscope.engine.errors import InputError
from proteoscope.engine.formats.protein_names import name_columns
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.matches.columns import EXPORTED_PSMS, PROTEINS
from proteoscope.engine.matches.site_columns import PSM_SITES
from proteoscope.engine.matches.source_run import EXPLAIN, EXPLAIN_AGAIN, SourceRun, explained_run, explained_spectra, identified_run
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
    "scan",
    "retention_time",
    "precursor_mz",
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
_OF_SPECTRA = ("spectrum_index", "spectrum_id", "scan", "retention_time", "precursor_mz")
_OF_PEPTIDES = ("sequence", "proteins", "calculated_mass", "modification_names", "modification_masses")
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
    run : ndarray of int64, shape (n,)
        Index of the run.
    retention_time : ndarray of float64, shape (n,)
        Retention time in seconds, NaN if unknown.
    precursor_mz : ndarray of float64, shape (n,)
        Measured m/z of the precursor, Th.
    row : ndarray of int64, shape (n,)
        Row in the table of spectra of the run.
    index : ndarray of int64, shape (n,)
        Index of the spectrum in its file, from 0.
    scan : ndarray of int64, shape (n,)
        Scan number, -1 if unknown.
    spectrum_id : pyarrow.Array of str, length n
        Identifier of each spectrum in its file.
    """

    form: NDArray[np.int64]
    charge: NDArray[np.int64]
    file: NDArray[np.int64]
    run: NDArray[np.int64]
    retention_time: NDArray[np.float64]
    precursor_mz: NDArray[np.float64]
    row: NDArray[np.int64]
    index: NDArray[np.int64]
    scan: NDArray[np.int64]
    spectrum_id: pa.Array

    def __len__(self) -> int:
        return len(self.form)


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
    meant = [explained_run(project, name) for name in runs or ("",)]
    result = [identified_run(folder, name, _SHIFTED) for name, _ in meant]
    lacking = next((run for run in result if run.proteins is None), None)
    if lacking is not None:
        raise InputError(folder, f"run '{lacking.run}' has no protein table", remedy=_REMEDY)
    proteins = tuple(run.proteins for run in result if run.proteins is not None)
    files = tuple(files_of_run(project, run.run) for run in result)
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


def identified(sources: Sources, psm_fdr: float, protein_fdr: float, *, uses_razor: bool) -> Identified:
    """Return the peptidoforms of rank 1 target matches, with the accepted protein groups.

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

    Returns
    -------
    Identified

    Raises
    ------
    InputError
        If a table is invalid, or nothing is identified.
    """
    numbers = {file.content: number for number, file in enumerate(sources.files)}
    tables, decoys, matched = list[pa.Table](), list[pa.Table](), list[set[str]]()
    for number, (run, files, explained) in enumerate(zip(sources.runs, sources.files_of_run, sources.explained, strict=True)):
        file_of_row = _file_of_rows(run, [numbers[file.content] for file in files])
        with TableFile(run.psms, EXPORTED_PSMS, _PSMS, n_rows_of={"spectra": len(file_of_row)}, remedy=_REMEDY) as source:
            parts = [part.filter(pa.compute.equal(part["rank"], 1)) for part in source.batches(_PSMS)]
            table = pa.concat_tables(parts) if parts else source.read(_PSMS)
        accepted = table.filter(pa.compute.fill_null(pa.compute.less_equal(table["q_value"], psm_fdr), False))
        more = None if explained is None else _explained_rows(explained, run, table, psm_fdr)
        targets = accepted.filter(pa.compute.invert(accepted["is_decoy"]))
        targets = targets if more is None else pa.concat_tables([targets, more])
        matched.append(set(in_one(targets["proteins"]).flatten().to_pylist()))
        for rows, lists in ((targets, tables), (accepted.filter(accepted["is_decoy"]), decoys)):
            part = rows.combine_chunks().append_column("run", pa.array(np.full(len(rows), number, np.int64)))
            lists.append(part.append_column("file", pa.array(file_of_row[part["spectrum"].to_numpy()])))
    table, decoy_table = (every.take(pa.array(_first_of_spectra(every))) for every in map(pa.concat_tables, (tables, decoys)))
    if not len(table):
        raise InputError(sources.runs[0].psms, "contains no match up to psm_fdr", remedy="Raise psm_fdr, or use another run")
    of_peptides = _experiment_q_values(pa.concat_tables(tables), pa.concat_tables(decoys), len(sources.runs))
    groups = _protein_groups(sources, protein_fdr, matched)
    result = [
        _columns(sources.files, rows, groups, q_value, uses_razor=uses_razor)
        for rows, q_value in zip((table, decoy_table), of_peptides, strict=True)
        if len(rows)
    ]
    if len(result) == 1:
        return result[0]
    # Wrong peptides of accepted proteins are at most as frequent as decoy peptides, but decoy proteins are hardly ever accepted.
    return replace(result[0], decoys=replace(result[1], has_protein=np.ones(len(result[1].sequences), np.bool_)))


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


def _experiment_q_values(targets: pa.Table, decoys: pa.Table, n_runs: int) -> list[dict[str, float]]:
    """Return the q-value of each peptidoform over all files, of targets and of decoys; NaN if unknown.

    The q-value is the larger of two values. The first is the lowest q-value in the runs times the number of runs, since correct
    peptidoforms are mostly the same in all runs, but false ones add up. The second is the q-value among the peptidoforms found in one file,
    or among those found in several files: false peptidoforms accumulate among those in one file, and would then be searched in all others.
    Without decoys, only the first is used.
    """
    parts = [_by_peptide(table) for table in (targets, decoys)]
    names, best, n_files = (np.concatenate([part[k] for part in parts]) for k in range(3))
    is_decoy = np.arange(len(names)) >= len(parts[0][0])
    q_value = np.minimum(best * n_runs, 1.0)
    for is_group in (n_files == 1, n_files > 1):
        rows = np.flatnonzero(is_group & ~np.isnan(best))
        if is_decoy.any() and len(rows):
            q_value[rows] = np.maximum(q_value[rows], q_values(-best[rows], is_decoy[rows]))
    return [dict(zip(names[rows].tolist(), q_value[rows].tolist(), strict=True)) for rows in (~is_decoy, is_decoy)]


def _by_peptide(table: pa.Table) -> tuple[NDArray[np.object_], NDArray[np.float64], NDArray[np.int64]]:
    """Return the distinct peptidoforms, the lowest peptide q-value of each, and the number of files with each."""
    result = table.group_by("peptide").aggregate([("peptide_q_value", "min"), ("file", "count_distinct")])
    best = pa.compute.fill_null(result["peptide_q_value_min"].cast(pa.float64()), float("nan")).to_numpy()
    return np.array(result["peptide"].to_pylist(), np.object_), best, result["file_count_distinct"].to_numpy().astype(np.int64)


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


def _first_of_spectra(table: pa.Table) -> NDArray[np.int64]:
    """Return the row of the best match of each spectrum; several runs may have identified a spectrum."""
    file, index = table["file"].to_numpy(), table["spectrum_index"].to_numpy()
    order = np.lexsort((table["q_value"].to_numpy(), index, file))
    return order[is_group_start(file[order], index[order])]


class _Groups(NamedTuple):
    """Protein groups of several runs (groups with a common protein are merged), and the runs without protein error rates.

    `number_of` is the index of the group by accession; `length` is the number of residues of the first protein, 0 if unknown.
    """

    number_of: dict[str, int]
    accessions: list[list[str]]
    descriptions: list[str]
    length: list[int]
    unrated: list[str]


def _protein_groups(sources: Sources, maximum_q_value: float, matched: Sequence[Set[str]]) -> _Groups:
    """Return the protein groups up to a q-value, or, for runs without q-values, those with an accepted match.

    `matched` contains the proteins of accepted matches by run.
    """
    groups = _Groups({}, [], [], [], [])
    for run, path, of_matches in zip(sources.runs, sources.proteins, matched, strict=True):
        with TableFile(path, PROTEINS, _GROUPS, remedy=_REMEDY) as source:
            rows: list[dict[str, Any]] = [row for row in source.read(_GROUPS).to_pylist() if not row["is_decoy"]]
            is_rated = any(row["q_value"] is not None for row in rows)
            groups.unrated.extend([run.run] if rows and not is_rated else [])
            for row in rows:
                names = [name for name in row["accessions"] if name]
                is_accepted = row["q_value"] is not None and row["q_value"] <= maximum_q_value
                if not is_accepted and (is_rated or of_matches.isdisjoint(names)):
                    continue
                if not names:
                    raise source.damaged("contains a protein without a name", "accessions")
                number = next((groups.number_of[name] for name in names if name in groups.number_of), len(groups.accessions))
                if number == len(groups.accessions):
                    groups.accessions.append([])
                    groups.descriptions.append(row["description"] or "")
                    groups.length.append(row["length"] or 0)
                for name in names:
                    if groups.number_of.setdefault(name, number) == number and name not in groups.accessions[number]:
                        groups.accessions[number].append(name)
    return groups


def _columns(
    files: tuple[SourceFile, ...], table: pa.Table, groups: _Groups, of_peptides: Mapping[str, float], *, uses_razor: bool
) -> Identified:
    peptide = in_one(table["peptide"]).dictionary_encode()
    form = peptide.indices.to_numpy().astype(np.int64)
    _, first = np.unique(form, return_index=True)
    some = table.take(pa.array(first))
    sequence = in_one(some["sequence"]).dictionary_encode()
    of_form = sequence.indices.to_numpy().astype(np.int64)
    sequences = sequence.dictionary.to_pylist()
    elements = sequence_elements(sequences)[of_form] + _modification_elements(some)
    forms = Forms(peptide.dictionary.to_pylist(), of_form, some["calculated_mass"].to_numpy().astype(np.float64), elements)
    matches = Matches(
        form,
        table["charge"].to_numpy().astype(np.int64),
        table["file"].to_numpy().astype(np.int64),
        table["run"].to_numpy(),
        pa.compute.fill_null(table["retention_time"], float("nan")).to_numpy(),
        table["precursor_mz"].to_numpy(),
        table["spectrum"].to_numpy(),
        table["spectrum_index"].to_numpy(),
        pa.compute.fill_null(table["scan"], -1).to_numpy(),
        in_one(table["spectrum_id"]),
    )
    _, first_of_sequence = np.unique(of_form, return_index=True)
    owner, has_protein = _owners(some.take(pa.array(first_of_sequence)), groups, uses_razor=uses_razor)
    proteins = Proteins(
        [accession[0] for accession in groups.accessions],
        [accession[1:] for accession in groups.accessions],
        groups.descriptions,
        np.array(groups.length, np.int64),
    )
    peptide_q_value = np.array([of_peptides[name] for name in forms.peptide])
    return Identified(files, forms, matches, sequences, proteins, owner, peptide_q_value, has_protein, tuple(groups.unrated))


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
    """Return the protein group to which the sequence of each row is assigned (-1 for none), and True for rows with an accepted protein."""
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
