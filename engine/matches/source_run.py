"""The identification in a project that another search goes on from."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.chemistry.tolerance import Tolerance
from engine.errors import InputError, ParameterError, StorageError
from engine.project import Project

__all__ = ["SourceRun", "identified_run", "identified_spectra", "write_identified_proteins"]

_REMEDY = "Run the identification again"
_LINE = 80  # letters of a sequence


class SourceRun(NamedTuple):
    """A finished identification: its id, tables (that of proteins where it has one), parameters, and the tolerance of its fragments."""

    run: str
    spectra: Path
    psms: Path
    proteins: Path | None
    parameters: Mapping[str, Any]
    fragment_tolerance: Tolerance


def identified_run(folder: Path, run: str) -> SourceRun:
    """The identification of a project that is meant: `run`, or the newest where that is empty.

    Raises
    ------
    InputError : there is no project, or it has no such run, or no peaks. ParameterError : the run is no identification.
    """
    project = Project.open(folder)
    done = [one for one in project.runs("identify") if one.status == "done"]
    chosen = next((one for one in reversed(done) if one.id == run or not run), None)
    if chosen is None:
        if run and any(one.id == run for one in project.runs()):
            raise ParameterError(
                f"run = '{run:.60}' is no finished identification; there are {', '.join(one.id for one in done) or 'none'}"
            )
        what = f"has no run {run:.60}" if run else "holds no finished identification"
        raise InputError(folder, what, remedy="Identify spectra into this project first")
    names = {one.name for one in project.results(chosen.id)}
    if "spectra" not in names:
        raise InputError(folder, f"run {chosen.id} has no stored peaks", remedy="Identify the spectra again with this version")
    tolerance = chosen.parameters.get("fragment_tolerance", "20 ppm")
    spectra, psms = (project.table(name, chosen.id) for name in ("spectra", "psms"))
    proteins = project.table("proteins", chosen.id) if "proteins" in names else None
    return SourceRun(chosen.id, spectra, psms, proteins, chosen.parameters, Tolerance.parse(str(tolerance)))


def identified_spectra(path: Path, n_spectra: int, most_q_value: float) -> NDArray[np.int64]:
    """Rows of the spectra that a table of PSMs identifies up to a q-value: targets, the best match of each; ascending.

    Raises
    ------
    InputError : the table is none of PSMs. StorageError : it is damaged.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    table = _read(path, ("spectrum", "rank", "is_decoy", "q_value"))
    try:
        wanted = pc.and_(pc.and_(pc.equal(table["rank"], 1), pc.invert(table["is_decoy"])), pc.less_equal(table["q_value"], most_q_value))
        rows = np.unique(table.filter(pc.fill_null(wanted, False))["spectrum"].cast(pa.int64()).to_numpy())
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise StorageError(f"{path}: cannot be read as a table of PSMs ({' '.join(str(error).split())}). {_REMEDY}.") from error
    if len(rows) and not 0 <= rows[0] <= rows[-1] < n_spectra:
        raise StorageError(f"{path}: holds PSMs that the program does not write. {_REMEDY}.")
    return rows


def write_identified_proteins(path: Path, most_q_value: float, out: Path) -> int:
    """Write the first protein of each group that a run found, up to a q-value, as FASTA; how many there are.

    Raises
    ------
    InputError : the table is none of protein groups. StorageError : it is damaged, or the disk refused.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    table = _read(path, ("accessions", "description", "sequence", "is_decoy", "q_value"))
    try:
        wanted = pc.and_(pc.invert(table["is_decoy"]), pc.fill_null(pc.less_equal(table["q_value"], most_q_value), False))
        rows = table.filter(wanted).select(["accessions", "description", "sequence"]).to_pylist()
        entries = {str(row["accessions"][0]).split()[0]: (str(row["description"] or ""), str(row["sequence"])) for row in rows}
    except (pa.ArrowException, ValueError, TypeError, IndexError) as error:
        raise StorageError(f"{path}: cannot be read as a table of protein groups ({' '.join(str(error).split())}). {_REMEDY}.") from error
    with out.open("w", encoding="utf-8") as file:
        for accession, (description, sequence) in entries.items():
            lines = "\n".join(sequence[i : i + _LINE] for i in range(0, len(sequence), _LINE))
            file.write(f">{accession} {' '.join(description.split())}\n{lines}\n")
    return len(entries)


def _read(path: Path, columns: tuple[str, ...]) -> Any:
    """Some columns of a table.

    Raises
    ------
    InputError : it lacks one. StorageError : it cannot be read.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            if missing := [name for name in columns if name not in file.schema_arrow.names]:
                raise InputError(path, f"has no column {missing[0]}", remedy=_REMEDY)
            return file.read(columns=list(columns))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise StorageError(f"{path}: cannot be read ({' '.join(str(error).split())}). {_REMEDY}.") from error
