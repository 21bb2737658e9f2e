"""The peptides that a run identified, whichever search it was, and the proteins that they are of."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.chemistry.modifications import parse_modification
from engine.chemistry.peptidoforms import parse
from engine.clustering.tables import EXPLAINED
from engine.errors import InputError, ParameterError
from engine.evidence.parameters import EvidenceParameters
from engine.matches.columns import EXPORTED_PSMS, PROTEINS
from engine.matches.source_run import identified_run
from engine.project import Project
from engine.results.reader import TableFile

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["IdentifiedPeptides", "Modification", "ProteinEntry", "SourceTables", "identified_peptides", "protein_entries", "source_tables"]

_REMEDY = "Run the identification again"
_PSMS = (
    "peptide", "sequence", "charge", "q_value", "rank", "is_decoy", "modification_positions", "modification_names", "modification_masses",
)  # fmt: skip
_SHIFTS = ("shift_position", "site_probability")
_GROUPS = ("accessions", "description", "sequence", "is_decoy", "q_value")
_EXPLAIN = "explain"


class SourceTables(NamedTuple):
    """Tables that evidence is taken from: of the identification `run`, and of the explanation that goes on from it where that was meant.

    `fixed`: names of modifications that every such residue carries, as far as the run tells, with the residue.
    """

    run: str
    psms: Path
    proteins: Path
    fixed: frozenset[tuple[str, str]]
    explained: Path | None = None


class Modification(NamedTuple):
    """What a residue of a peptide carries. `position`: from 1; 0 and one more are the ends. `probability`: of the place, NaN if unknown."""

    position: int
    name: str
    mass: float
    probability: float


@dataclass(frozen=True)
class IdentifiedPeptides:
    """n peptidoforms.

    Attributes
    ----------
    peptides : in ProForma. sequences : without modifications. modifications : of each.
    n_psms : (n,) int64, spectra. q_value : (n,) float64, the least of them.
    """

    peptides: tuple[str, ...]
    sequences: tuple[str, ...]
    modifications: tuple[tuple[Modification, ...], ...]
    n_psms: NDArray[np.int64]
    q_value: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.peptides)


class ProteinEntry(NamedTuple):
    """The first protein of a group: accession, names of the others, what the database says of it, its residues, q-value of the group."""

    accession: str
    others: tuple[str, ...]
    description: str
    sequence: str
    q_value: float


def source_tables(folder: Path, run: str) -> SourceTables:
    """The tables of the run that is meant: an identification, or an explanation, which brings the identification that it goes on from.

    Raises
    ------
    InputError : there is no project, no such run, or its tables lack proteins. ParameterError : the run is of another kind.
    """
    project = Project.open(folder)
    chosen = next((one for one in project.runs() if one.id == run and one.kind == _EXPLAIN and one.status == "done"), None)
    explained = None
    if chosen is not None:
        source = project.record(chosen.id).get("source_run")
        if not isinstance(source, str):
            raise InputError(folder, f"run {chosen.id} does not say which identification it explains", remedy="Explain the spectra again")
        run, explained = source, project.table(EXPLAINED.name, chosen.id)
    found = identified_run(folder, run)
    if found.proteins is None:
        raise InputError(folder, f"run {found.run} has no table of proteins", remedy=_REMEDY)
    return SourceTables(found.run, found.psms, found.proteins, _fixed(found.parameters), explained)


def _fixed(parameters: Mapping[str, Any]) -> frozenset[tuple[str, str]]:
    """What a run calls its fixed modifications; none that this version cannot read."""
    found = set[tuple[str, str]]()
    named = parameters.get("fixed_modifications")
    for text in named if isinstance(named, list | tuple) else ():
        with suppress(ParameterError):
            one = parse_modification(str(text))
            found |= {(one.name, residue) for residue in one.residues}
    return frozenset(found)


def identified_peptides(tables: SourceTables, maximum_q_value: float) -> IdentifiedPeptides:
    """The peptidoforms that spectra are of up to a q-value: targets, the best match of each spectrum.

    Raises
    ------
    InputError : a table is not what it should be.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    with TableFile(tables.psms, EXPORTED_PSMS, _PSMS, remedy=_REMEDY) as source:
        shifts = [name for name in _SHIFTS if name in source.columns]
        table = source.read([*_PSMS, *shifts])
    wanted = pc.and_(pc.and_(pc.equal(table["rank"], 1), pc.invert(table["is_decoy"])), pc.less_equal(table["q_value"], maximum_q_value))
    table = table.filter(pc.fill_null(wanted, False))
    names, q_values = table["peptide"].to_pylist(), table["q_value"].to_numpy()
    forms: dict[str, list[int]] = {}
    for row, name in enumerate(names):
        forms.setdefault(name, []).append(row)
    first = pa.array([rows[0] for rows in forms.values()], pa.int64())
    some = table.take(first)
    changes = _modifications(some, shifts)
    if len(shifts) == len(_SHIFTS):
        changes = _with_best_probability(changes, table, list(forms.values()))
    n_psms = np.array([len(rows) for rows in forms.values()], np.int64)
    least = np.array([q_values[rows].min() for rows in forms.values()])
    found = IdentifiedPeptides(tuple(forms), tuple(some["sequence"].to_pylist()), tuple(changes), n_psms, least)
    return found if tables.explained is None else _with_explained(found, tables.explained, maximum_q_value)


def _modifications(table: pa.Table, shifts: Sequence[str]) -> list[tuple[Modification, ...]]:
    columns = (table[name].to_pylist() for name in ("modification_positions", "modification_names", "modification_masses"))
    return [
        tuple(Modification(position, name, mass, float("nan")) for position, name, mass in zip(*of_one, strict=True))
        for of_one in zip(*columns, strict=True)
    ]


def _with_best_probability(
    changes: list[tuple[Modification, ...]], table: pa.Table, rows_of: Sequence[Sequence[int]]
) -> list[tuple[Modification, ...]]:
    """The same with how sure the place of a shift is, by the spectrum that is surest."""
    positions, probabilities = (table[name].to_pylist() for name in _SHIFTS)
    found = []
    for own, rows in zip(changes, rows_of, strict=True):
        best: dict[int, float] = {}
        for row in rows:
            place, probability = positions[row], probabilities[row]
            if place is not None and probability is not None and np.isfinite(probability):
                best[place] = max(best.get(place, 0.0), probability)
        found.append(tuple(one._replace(probability=best.get(one.position, float("nan"))) for one in own))
    return found


def _with_explained(found: IdentifiedPeptides, path: Path, maximum_q_value: float) -> IdentifiedPeptides:
    """The same with spectra that resemble identified ones; where a mass differs, nobody knows the place of what carries the difference."""
    import pyarrow.compute as pc

    needed = ("peptide", "q_value")
    with TableFile(path, EXPLAINED, needed, remedy="Explain the spectra again") as source:
        table = source.read(needed)
    table = table.filter(pc.fill_null(pc.less_equal(table["q_value"], maximum_q_value), False))
    place = {name: number for number, name in enumerate(found.peptides)}
    n_psms, q_value = found.n_psms.copy(), found.q_value.copy()
    more: dict[str, list[float]] = {}
    for name, q in zip(table["peptide"].to_pylist(), table["q_value"].to_pylist(), strict=True):
        if name in place:
            n_psms[place[name]] += 1
            q_value[place[name]] = min(q_value[place[name]], q)
        else:
            more.setdefault(name, []).append(q)
    parsed = [(name, _parsed(name, path)) for name in more]
    return IdentifiedPeptides(
        (*found.peptides, *more), (*found.sequences, *(one[0] for _, one in parsed)),
        (*found.modifications, *(one[1] for _, one in parsed)),
        np.concatenate([n_psms, np.array([len(values) for values in more.values()], np.int64)]),
        np.concatenate([q_value, np.array([min(values) for values in more.values()])]),
    )  # fmt: skip


def _parsed(name: str, path: Path) -> tuple[str, tuple[Modification, ...]]:
    try:
        form = parse(name)
    except ParameterError as error:
        raise InputError(path, f"holds a peptide that is none ({error})", remedy="Explain the spectra again") from None
    return form.sequence, tuple(Modification(position, what, mass, float("nan")) for position, what, mass in form.modifications)


def protein_entries(path: Path, parameters: EvidenceParameters) -> list[ProteinEntry]:
    """The proteins that are looked at: of each group up to a q-value the first one, or those that are asked for by name.

    Raises
    ------
    InputError : the table is none of protein groups. ParameterError : one that is asked for is in no group.
    """
    with TableFile(path, PROTEINS, _GROUPS, remedy=_REMEDY) as source:
        rows: list[dict[str, Any]] = source.read(_GROUPS).to_pylist()
        wanted = dict.fromkeys(parameters.proteins)
        found, known = [], set[str]()
        for row in rows:
            q_value = float("nan") if row["q_value"] is None else row["q_value"]
            if row["is_decoy"] or not row["sequence"]:
                continue
            names = [name for name in row["accessions"] if name]
            if not names:
                raise source.damaged("holds a protein without a name", "accessions")
            known.update(names)
            if any(name in wanted for name in names) if wanted else q_value <= parameters.protein_fdr:
                letters = re.sub("[^A-Z]", "X", row["sequence"])
                found.append(ProteinEntry(names[0], tuple(names[1:]), row["description"] or "", letters, q_value))
    missing = [name for name in wanted if name not in known]
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise ParameterError(
            f"proteins = '{missing[0]:.60}'{more}: no protein group of the run has it; accessions are those of the proteins table"
        )
    return found
