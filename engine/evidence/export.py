"""Exports of evidence on structures: tables, GFF3 of peptides and sites, and structures coloured by coverage for other viewers.

A project, including its record of input files, may be untrusted. The export of structures therefore opens no path from the project: the
user names files or folders, in which the program looks for a file with the recorded path or name.
"""

from __future__ import annotations

import re
import shlex
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import ChainRow
from proteoscope.engine.entry import ExportRequest
from proteoscope.engine.errors import InputError, ParameterError
from proteoscope.engine.evidence.tables import CHAINS, MAPPED_RESIDUES, PEPTIDE_PLACES, PROTEINS, RESIDUES, SITES, TABLES, text_file_name
from proteoscope.engine.files import atomic_file, storage_errors
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.project import Project
from proteoscope.engine.results.counts import counted
from proteoscope.engine.results.reader import read_stored, stored_table
from proteoscope.engine.results.separated import DIGITS, write_separated
from proteoscope.engine.structures.building import structure_files
from proteoscope.engine.structures.chains import Chains
from proteoscope.engine.structures.colouring import FOREIGN, MODIFIED, NOT_OBSERVED, scale_colours
from proteoscope.engine.structures.outputs import PictureChain, chain_atoms, write_picture
from proteoscope.engine.structures.reading import read_structure
from proteoscope.engine.structures.scripts import ScriptedChain
from proteoscope.engine.structures.sources import DATABASE_FILE

if TYPE_CHECKING:
    import gemmi

__all__ = ["NamedStructures", "export_gff3", "export_structures", "export_tables", "recorded_folders"]

_IN_NAMES, _IN_ATTRIBUTES = "!$*+-.:?@^_|~", " !\"#$'()*+-./:<>?@[]^_`{|}~\\"
_UNKNOWN_B = -1.0
_REMEDY = "Restore the original file, or search again"
_MAXIMUM_CHARACTERS = 40
_REASONS_SHOWN, _NAMES_SHOWN, _FOLDERS_SHOWN = 10, 10, 3
_PLAIN_NAME = re.compile("(?!(com|lpt)[0-9]$)(?=.*[0-9])(?=.*[a-z])[a-z0-9_]+", re.IGNORECASE)
"""Pattern of names that are not PyMOL keywords (no digit), numbers (digits only) or names that Windows reserves (``com1``)."""
_OF_SITES = (
    "accession",
    "position",
    "modification",
    "q_value",
    "n_psms",
    "site_probability",
    "is_alternative",
    "place",
    "chain",
    "chain_kind",
)


def export_tables(project: Project, request: ExportRequest, progress: Progress) -> list[Path]:
    """Export the tables of a run (see `proteoscope.engine.entry.Search.export`)."""
    written = []
    for table in TABLES:
        with stored_table(project, request.run_id, table, table.saved) as source:
            columns = [column for column in table.saved_columns if column.name in source.columns]
            result = source.read([column.name for column in columns])
        progress.stage(f"Exporting {table.title.lower()}", len(result))
        written.append(request.target / text_file_name(table))
        write_separated(written[-1], result, columns, progress, DIGITS, spreadsheet_safe=request.spreadsheet_safe)
    return written


def export_gff3(project: Project, request: ExportRequest, progress: Progress) -> list[Path]:
    """Write peptides and modified residues with protein positions (from 1) as GFF3 (see `proteoscope.engine.entry.Search.export`)."""
    proteins = read_stored(project, request.run_id, PROTEINS, ("accession", "length")).to_pylist()
    peptides = read_stored(project, request.run_id, PEPTIDE_PLACES, ("accession", "peptide", "first", "last", "q_value", "n_psms"))
    sites = read_stored(project, request.run_id, SITES, _OF_SITES)
    progress.stage("Exporting GFF3", len(peptides) + len(sites))
    with atomic_file(request.target) as file:
        file.write(b"##gff-version 3\n")
        for protein in proteins:
            file.write(f"##sequence-region {quote(protein['accession'], safe=_IN_NAMES)} 1 {protein['length']}\n".encode())
        for number, peptide in enumerate(peptides.to_pylist(), 1):
            reported = f"ID=peptide{number};Name={quote(peptide['peptide'], safe=_IN_ATTRIBUTES)};psms={peptide['n_psms']}"
            _write_line(file.write, peptide["accession"], "peptide", peptide["first"], peptide["last"], peptide["q_value"], reported)
            progress.advance(1)
        for number, site in enumerate(sites.to_pylist(), 1):
            reported = (
                f"ID=site{number};Name={quote(site['modification'], safe=_IN_ATTRIBUTES)};psms={site['n_psms']};place={site['place']}"
            )
            if site["site_probability"] is not None:
                reported += f";site_probability={site['site_probability']:.4f}"
            if site["is_alternative"]:
                reported += ";alternative=true"
            if site["chain"] is not None:
                reported += f";structure={quote(site['chain'], safe=_IN_ATTRIBUTES)};structure_kind={site['chain_kind']}"
            _write_line(file.write, site["accession"], "modified_residue", site["position"], site["position"], site["q_value"], reported)
            progress.advance(1)
    return [request.target]


def _write_line(write: Any, accession: str, kind: str, first: int, last: int, q_value: float | None, note: str) -> None:
    cells = (
        quote(accession, safe=_IN_NAMES),
        "Proteoscope",
        kind,
        first,
        last,
        "." if q_value is None else f"{q_value:.4g}",
        ".",
        ".",
        note,
    )
    write(("\t".join(map(str, cells)) + "\n").encode())


def export_structures(project: Project, request: ExportRequest, progress: Progress) -> list[Path]:
    """Export a folder for each protein with a similar chain (see `proteoscope.engine.entry.Search.export`).

    The folder contains the coordinates of the chain, with the number of spectra per residue in the B-factor column (-1 for residues that
    are not aligned with the protein), and scripts for PyMOL and ChimeraX. Only structure files named in the request are read.

    Raises
    ------
    ParameterError
        If no structures are named.
    InputError
        If none of the structures can be written.
    """
    chains = read_stored(project, request.run_id, CHAINS, ("protein", "accession", "rank", "chain", "path")).to_pylist()
    residues = read_stored(project, request.run_id, RESIDUES, ("protein", "position", "n_psms", "modifications"))
    mapped = read_stored(project, request.run_id, MAPPED_RESIDUES, ("chain_row", "position", "chain_residue", "chain_letter"))
    evidence = _Evidence(residues, mapped)
    nearest = [(number, chain) for number, chain in enumerate(chains) if chain["rank"] == 1]
    if not nearest:
        raise InputError(
            project.folder, f"{request.run_id} has no structure similar to a protein", remedy="Run evidence with other structures"
        )
    if not request.structures:
        raise ParameterError(_name_them(request.run_id, recorded_folders(project, request.run_id)))
    named = NamedStructures(request.structures, progress)
    progress.stage("Exporting structures", len(nearest))
    written: list[Path] = []
    names, left_out = set[str](), list[str]()
    for number, nearest_chain in nearest:
        progress.check()
        rows = evidence.of_chain(number, nearest_chain["protein"])
        name = _name(nearest_chain["accession"])
        folder = request.target / _unused(name, names)
        try:
            chain, atoms = _chain(named.find(nearest_chain["path"]), nearest_chain["chain"], *evidence.residues_at(number))
        except InputError as error:
            left_out.append(nearest_chain["accession"])
            if len(left_out) <= _REASONS_SHOWN:
                progress.message(f"{nearest_chain['accession']} is left out: {error}", "warning")
        else:
            with storage_errors(folder):
                folder.mkdir(parents=True, exist_ok=True)
            written += write_picture(folder, [_painted(name, chain, atoms, *rows)])
        progress.advance(1)
    if left_out:
        listed = ", ".join(left_out[:_NAMES_SHOWN]) + (", …" if len(left_out) > _NAMES_SHOWN else "")
        summary = f"{len(left_out):,} of {counted(len(nearest), 'protein')} left out of the structures ({listed})"
        if not written:
            raise InputError(project.folder, summary, remedy="Give the files that the run read with --structures")
        progress.message(summary, "warning")
    return written


def _name_them(run_id: str, folders: list[str]) -> str:
    """Return the request to the user to name the structure files."""
    shown = " ".join(map(shlex.quote, folders[:_FOLDERS_SHOWN])) + (" …" if len(folders) > _FOLDERS_SHOWN else "")
    return f"the structures of {run_id} are files outside the project, which are read only if you name them: --structures {shown}"


def _name(accession: str) -> str:
    """Return a protein name for files and scripts, with only ASCII alphanumeric characters and ``_``.

    Examples
    --------
    >>> _name("sp|P02769|ALBU_BOVIN"), _name("all"), _name("7; quit")
    ('sp_P02769_ALBU_BOVIN', 'protein_all', '7__quit')
    """
    name = re.sub("[^A-Za-z0-9_]", "_", accession)[:_MAXIMUM_CHARACTERS]
    return name if _PLAIN_NAME.fullmatch(name) else f"protein_{name}"


def _unused(name: str, used: set[str]) -> str:
    """Return a name that is not yet used, and add it to `used`: `name`, with a number appended if necessary.

    Names that differ only in upper and lower case count as equal, as in some file systems.
    """
    result, number = name, 1
    while result.casefold() in used:
        number += 1
        result = f"{name}_{number}"
    used.add(result.casefold())
    return result


class _Evidence:
    """Evidence of residues, looked up by protein and by chain; each table is sorted once."""

    def __init__(self, residues: Any, mapped: Any) -> None:
        mapped = mapped.filter(pa.compute.is_valid(mapped["chain_residue"]))
        symbols = mapped["chain_letter"].fill_null("?").to_numpy().astype("S1").view(np.uint8)
        self._residues = _Groups(
            residues["protein"].to_numpy(),
            residues["position"].to_numpy(),
            residues["n_psms"].to_numpy().astype(np.int64),
            pa.compute.list_value_length(residues["modifications"]).to_numpy() > 0,
        )
        self._mapped = _Groups(mapped["chain_row"].to_numpy(), mapped["position"].to_numpy(), mapped["chain_residue"].to_numpy(), symbols)

    def of_chain(self, chain: int, protein: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
        """Return the residues of a chain that are aligned with a protein, the number of spectra of each, and True for modified residues."""
        position, rows, _ = self._mapped.rows(chain)
        positions, n_psms, is_modified = self._residues.rows(protein)
        index = np.minimum(np.searchsorted(positions, position), max(len(positions) - 1, 0))
        # Tables of an untrusted project may contain positions outside the protein.
        is_there = positions[index] == position if len(positions) else np.zeros(len(position), np.bool_)
        return rows[is_there], n_psms[index[is_there]], is_modified[index[is_there]]

    def residues_at(self, chain: int) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
        """Return the indices of the aligned residues of a chain, and the amino acid of the chain at each index as ASCII code."""
        _, rows, symbols = self._mapped.rows(chain)
        return rows, symbols


class _Groups:
    """Columns whose rows are sorted by group number, and within a group by the first column; `rows` returns the rows of a group."""

    def __init__(self, group: NDArray[Any], *columns: NDArray[Any]) -> None:
        order = np.lexsort((columns[0], group))
        self._group, self._columns = group[order], [column[order] for column in columns]

    def rows(self, group: int) -> list[NDArray[Any]]:
        """Return the columns of the rows with the given group number."""
        first, last = np.searchsorted(self._group, (group, group + 1))
        return [column[first:last] for column in self._columns]


def _chain(path: Path, name: str, rows: NDArray[np.int64], residues: NDArray[np.uint8]) -> tuple[Chains, gemmi.Structure]:
    """Return the chain `name` of a file, and its atoms; raise InputError unless it has the amino acids `residues` at the indices `rows`."""
    file = read_structure(path)
    if name not in file.chains.names:
        raise InputError(path, f"has no chain '{name}'", remedy=_REMEDY)
    chain = file.chains.taken([file.chains.names.index(name)])
    sequence = np.frombuffer(chain.sequence(ChainRow(0)).encode(), np.uint8)
    if len(rows) and (rows.max() >= len(sequence) or not np.array_equal(sequence[rows], residues)):
        raise InputError(path, f"no longer holds {name} as the run read it", remedy="Restore the original file, or run evidence again")
    return chain, chain_atoms(path, chain)


def _painted(
    name: str, chain: Chains, atoms: gemmi.Structure, rows: NDArray[np.int64], n_psms: NDArray[np.int64], is_modified: NDArray[np.bool_]
) -> PictureChain:
    """Return a chain whose colours and B-factors represent the number of spectra of each residue.

    Parameters
    ----------
    name : str
        Name of the chain in scripts.
    chain, atoms
        Chain, and its atoms.
    rows : ndarray of int64, shape (m,)
        Indices of the residues of the chain that have evidence, from 0.
    n_psms : ndarray of int64, shape (m,)
        Number of spectra of each of these residues.
    is_modified : ndarray of bool, shape (m,)
        True for modified residues.
    """
    n = len(chain.residue)
    inside = rows < n
    rows, n_psms, is_modified = rows[inside], n_psms[inside], is_modified[inside]
    spectra = np.full(n, _UNKNOWN_B)
    spectra[rows] = n_psms
    colours = np.tile(np.array(FOREIGN, np.uint8), (n, 1))
    colours[rows] = np.where((n_psms > 0)[:, None], scale_colours(np.log2(1.0 + n_psms), 0.0, 8.0), np.array(NOT_OBSERVED, np.uint8))
    colours[rows[is_modified]] = MODIFIED
    for residue, value in _match_residues(chain, atoms, spectra):
        for atom in residue:
            atom.b_iso = value
    return PictureChain(ScriptedChain(name, chain, colours), atoms)


def _match_residues(chain: Chains, atoms: gemmi.Structure, values: NDArray[np.float64]) -> Iterator[tuple[gemmi.Residue, float]]:
    """Yield each residue in `atoms` with the value of the residue of `chain` that has the same Cα position; -1 if there is none."""
    value_at = {tuple(position): float(value) for position, value in zip(chain.position.tolist(), values, strict=True)}
    for residue in atoms[0][0]:
        positions = [tuple(np.array(atom.pos.tolist(), np.float32).tolist()) for atom in residue if atom.name == "CA"]
        yield residue, next((value_at[position] for position in positions if position in value_at), _UNKNOWN_B)


def recorded_folders(project: Project, run: str) -> list[str]:
    """Return the distinct folders of the structure files in the record of a run; the paths are not checked."""
    paths = [str(given.path) for given in project.inputs(run) if given.kind == "structures"]
    return list(dict.fromkeys(str(_pure(path).parent) for path in paths))


class NamedStructures:
    """Structure files named by the user.

    Parameters
    ----------
    named : sequence of Path
        Files, folders, or lists of files.
    progress : Progress
        Progress for messages about other files in the folders.

    Raises
    ------
    InputError
        If a path is missing or contains no structures.
    """

    def __init__(self, named: Sequence[Path], progress: Progress) -> None:
        for path in named:
            if (path / DATABASE_FILE).is_file():
                reason = "is a structure database, which holds no atoms to export"
                raise InputError(path, reason, remedy="Give the source files of the run")
        self._of_name: dict[str, list[Path]] = defaultdict(list)
        for path in structure_files(named, progress):
            self._of_name[path.name].append(path.absolute())

    def find(self, recorded: str) -> Path:
        """Return the file, among those that the user named, that corresponds to a recorded path.

        This is the only named file whose path ends with the recorded path, or else the only named file with the same file name. The
        recorded path itself is never opened.

        Raises
        ------
        InputError
            If no named file has this name, or several have it.
        """
        parts = _pure(recorded).parts
        files = self._of_name.get(parts[-1] if parts else "", [])
        ending = [file for file in files if file.parts[-len(parts) :] == parts]
        if len(result := ending or files) == 1:
            return result[0]
        if files:
            raise InputError(recorded, f"{len(files)} of the named files have this name", remedy="Give only one of them")
        raise InputError(recorded, "is not among the named files", remedy="Give this file, or its folder")


def _pure(path: str) -> PurePath:
    """Return a recorded path, perhaps from another operating system, as an object whose parts can be compared."""
    return PureWindowsPath(path) if "\\" in path else PurePosixPath(path)
