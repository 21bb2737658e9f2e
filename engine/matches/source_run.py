"""Finished identification that is the input of another search, or whose unidentified spectra another run explained."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.entry import find_result_table, identifying_kinds, recorded_parameters
from proteoscope.engine.errors import InputError, ParameterError
from proteoscope.engine.files import storage_errors
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.matches.columns import EXPORTED_PSMS, PROTEINS
from proteoscope.engine.project import Project, RunRecord
from proteoscope.engine.results.arrow import in_one
from proteoscope.engine.results.reader import TableFile
from proteoscope.engine.spectra.tables import SPECTRA

__all__ = [
    "EXPLAIN",
    "EXPLAIN_AGAIN",
    "SourceRun",
    "accepted_targets",
    "explained_run",
    "explained_spectra",
    "identified_indices",
    "identified_run",
    "identified_run_of",
    "identified_spectra",
    "write_identified_proteins",
]

EXPLAIN = "explain"
"""Kind of runs that explain spectra which an identification left unidentified."""
EXPLAIN_AGAIN = "Explain the spectra again"
_REMEDY = "Run the identification again"
_LINE = 80  # residues per line


class SourceRun(NamedTuple):
    """Finished identification: identifier, result tables, parameters, fragment tolerance, and input files by kind of file.

    `proteins` may be None: imported results can lack a protein table.
    """

    run: str
    spectra: Path
    psms: Path
    proteins: Path | None
    parameters: Mapping[str, Any]
    fragment_tolerance: Tolerance
    inputs: Mapping[str, tuple[str, ...]]

    def files(self, *kinds: str) -> tuple[str, ...]:
        """Return the paths of input files of the given kinds."""
        return tuple(path for kind in kinds for path in self.inputs.get(kind, ()))


def identified_run(folder: Path, run: str, other_kinds: Collection[str] = ()) -> SourceRun:
    """Return the requested identification of a project.

    Parameters
    ----------
    folder : Path
        Project folder.
    run : str
        Run identifier, or '' for the newest identification.
    other_kinds : collection of str
        Kinds of runs that are accepted in addition. With `run` '', such a run is returned only if the project has no identification.

    Returns
    -------
    SourceRun

    Raises
    ------
    InputError
        If the project, the run or its stored peaks do not exist, or the recorded parameters are invalid.
    ParameterError
        If the run is not an identification.
    """
    project = Project.open(folder)
    return identified_run_of(project, project.runs(), run, other_kinds)


def identified_run_of(project: Project, records: Sequence[RunRecord], run: str, other_kinds: Collection[str] = ()) -> SourceRun:
    """Return the requested identification as `identified_run` does, for the open project and its list of runs."""
    kinds, folder = identifying_kinds(), project.folder
    done = [record for record in records if record.kind in kinds and record.status == "done"]
    more = [record for record in records if record.kind in other_kinds and record.kind not in kinds and record.status == "done"]
    chosen = next((candidate for candidate in (*reversed(done), *reversed(more)) if candidate.id == run or not run), None)
    if chosen is None:
        if run and any(listed.id == run for listed in records):
            raise ParameterError(
                f"run = '{run:.60}': expected a finished identification; finished are "
                f"{', '.join(each.id for each in (*done, *more)) or 'none'}"
            )
        what = f"has no run '{run:.60}'" if run else "contains no finished identification"
        raise InputError(folder, what, remedy="Identify spectra into this project first")
    names = {result.name for result in project.results(chosen.id)}
    if "spectra" not in names:
        raise InputError(folder, f"run '{chosen.id}' has no stored peaks", remedy="Identify the spectra again")
    parameters = recorded_parameters(project, chosen)
    tolerance = Tolerance.parse(str(parameters.get("fragment_tolerance", "20 ppm")))
    spectra, psms = (project.table(name, chosen.id) for name in ("spectra", "psms"))
    proteins = project.table("proteins", chosen.id) if "proteins" in names else None
    inputs: dict[str, tuple[str, ...]] = {}
    for source in project.inputs(chosen.id):
        inputs[source.kind] = (*inputs.get(source.kind, ()), str(source.path))
    return SourceRun(chosen.id, spectra, psms, proteins, parameters, tolerance, inputs)


def explained_run(project: Project, run: str) -> tuple[str, Path | None]:
    """Return the identifier of the identification that the run `run` explains, and the table of explained spectra.

    If `run` is not an explanation of unidentified spectra, return `run` and None.

    Raises
    ------
    InputError
        If the explanation does not record which run it explains.
    """
    if not any(listed.id == run and listed.kind == EXPLAIN and listed.status == "done" for listed in project.runs()):
        return run, None
    source = project.record(run).get("source_run")
    if not isinstance(source, str):
        raise InputError(project.folder, f"run '{run}' does not record which identification it explains", remedy=EXPLAIN_AGAIN)
    return source, project.table("explained", run)


def explained_spectra(path: Path, columns: Sequence[str], maximum_q_value: float, n_spectra: int) -> pa.Table:
    """Return columns of the explained spectra that are accepted up to a q-value.

    Parameters
    ----------
    path : Path
        Table of explained spectra.
    columns : sequence of str
        Columns to read, including ``spectrum`` and ``q_value``.
    maximum_q_value : float
        Maximum q-value of accepted matches.
    n_spectra : int
        Number of spectra of the identification.

    Raises
    ------
    InputError
        If the table does not contain explained spectra, or contains spectra that the identification does not have.
    """
    with TableFile(path, find_result_table(EXPLAIN, "explained"), tuple(columns), remedy=EXPLAIN_AGAIN) as source:
        table = source.read(tuple(columns))
        table = table.filter(pa.compute.fill_null(pa.compute.less_equal(table["q_value"], maximum_q_value), False))
        spectrum = table["spectrum"].to_numpy()
        if len(spectrum) and spectrum.max() >= n_spectra:
            raise source.damaged("contains a spectrum that the identification does not have", "spectrum")
    return table


def accepted_targets(psms: pa.Table, maximum_q_value: float) -> pa.Table:
    """Return the rows of a PSM table that are rank 1 targets accepted up to a q-value."""
    is_target = pa.compute.and_(pa.compute.equal(psms["rank"], 1), pa.compute.invert(psms["is_decoy"]))
    return psms.filter(pa.compute.and_(is_target, pa.compute.less_equal(psms["q_value"], maximum_q_value)))


def identified_spectra(path: Path, n_spectra: int, maximum_q_value: float) -> NDArray[np.int64]:
    """Return the ascending indices of spectra with a rank 1 target PSM up to a q-value, (n,) int64.

    Raises
    ------
    InputError
        If the table does not contain PSMs.
    """
    needed = ("spectrum", "rank", "is_decoy", "q_value")
    with TableFile(path, EXPORTED_PSMS, needed, n_rows_of={"spectra": n_spectra}, remedy=_REMEDY) as source:
        table = source.read(needed)
    return np.unique(accepted_targets(table, maximum_q_value)["spectrum"].to_numpy())


def identified_indices(folder: Path, run: str, maximum_q_value: float) -> tuple[str, dict[str, NDArray[np.int64]]]:
    """Return the indices, in each spectrum file, of spectra with a rank 1 target PSM up to a q-value.

    Returns
    -------
    str
        Run identifier.
    dict of str to ndarray of int64
        Indices of spectra, from 0, by the SHA-256 of the spectrum file.

    Raises
    ------
    InputError
        If the project or the run does not exist, or the table of the run does not contain PSMs.
    ParameterError
        If the run is not an identification.
    """
    result = identified_run(folder, run)
    inputs = [source for source in Project.open(folder).inputs(result.run) if source.kind == "spectra"]
    positions = ("spectrum_file", "spectrum_index")
    with TableFile(result.spectra, SPECTRA, positions, remedy=_REMEDY) as source:
        table = source.read(positions)
        # Spectra are ordered by file. Recorded file names may be relative to another folder, so compare by order instead of by name.
        file = in_one(table["spectrum_file"]).dictionary_encode().indices.to_numpy().astype(np.int64)
        if len(np.unique(file)) != len(inputs):
            raise source.damaged("contains spectra of a different number of files than the run read", "spectrum_file")
    rows = identified_spectra(result.psms, len(table), maximum_q_value)
    file, index = file[rows], table["spectrum_index"].to_numpy()[rows]
    of_content: dict[str, NDArray[np.int64]] = {}
    for number, run_input in enumerate(inputs):
        # Copies of a file count as one file, with the spectra identified in any copy.
        of_content[run_input.sha256] = np.union1d(of_content.get(run_input.sha256, index[:0]), index[file == number])
    return result.run, of_content


def write_identified_proteins(path: Path, maximum_q_value: float, out: Path) -> int:
    """Write the first protein of each group accepted up to a q-value to a FASTA file; return the number of sequences.

    Raises
    ------
    InputError
        If the table does not contain protein groups.
    StorageError
        If writing fails.
    """
    needed = ("accessions", "description", "sequence", "is_decoy", "q_value")
    with TableFile(path, PROTEINS, needed, remedy=_REMEDY) as source:
        table = source.read(needed)
        wanted = pa.compute.and_(
            pa.compute.invert(table["is_decoy"]), pa.compute.fill_null(pa.compute.less_equal(table["q_value"], maximum_q_value), False)
        )
        entries = {}
        for row in table.filter(wanted).select(["accessions", "description", "sequence"]).to_pylist():
            name = row["accessions"][0].split()
            if not name:
                raise source.damaged("contains a protein without a name", "accessions")
            if row["sequence"]:  # results of other engines may have no sequences
                entries[name[0]] = (row["description"] or "", row["sequence"])
    with storage_errors(out), out.open("w", encoding="utf-8") as file:
        for accession, (description, sequence) in entries.items():
            lines = "\n".join(sequence[i : i + _LINE] for i in range(0, len(sequence), _LINE))
            file.write(f">{accession} {' '.join(description.split())}\n{lines}\n")
    return len(entries)
