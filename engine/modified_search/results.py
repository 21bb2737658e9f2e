"""The results of a search for modified peptides: the tables of an identification with shifts, and the table of modifications."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.chemistry.modifications import write_mass
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.matches.columns import SHIFT_COLUMNS
from proteoscope.engine.matches.tables import Tables, write_tables
from proteoscope.engine.modified_search.judging import KINDS, PLAIN, UNNAMED, Judged, MassShifts
from proteoscope.engine.modified_search.parameters import ModifiedSearchParameters
from proteoscope.engine.modified_search.tables import MODIFICATIONS
from proteoscope.engine.peptides.protein_index import ProteinIndex
from proteoscope.engine.project.paths import EXPORTS
from proteoscope.engine.project.run import Run
from proteoscope.engine.results.separated import ROUNDED, write_separated
from proteoscope.engine.spectra.columns import Spectra

if TYPE_CHECKING:
    pass

__all__ = ["MODIFICATIONS_FILE", "judged_groups", "modification_table", "shifted_tables", "write_modification_file", "write_modifications"]

MODIFICATIONS_FILE = "modifications.tsv"
_BINS_OF_DALTON = 100  # shifts without a name that round to the same hundredth stand in one row


def shifted_tables(judged: Judged, spectra: Spectra, proteins: ProteinIndex, parameters: ModifiedSearchParameters) -> Tables:
    """The tables of PSMs, peptides and protein groups; PSMs have further columns that tell of their shifts."""
    tables = write_tables(judged.scored, spectra, proteins, parameters)
    order = judged.scored.order
    shifts, psms = judged.shifts.take(order), judged.scored.psms.take(order)
    is_plain = shifts.group == PLAIN
    columns: dict[str, pa.Array] = {
        "mass_shift": pa.array(shifts.mass),
        "modification": pa.array(shifts.name, pa.string()),
        "possible_names": pa.array(shifts.possible, pa.string()),
        "site": pa.array(_site_texts(shifts, psms.length, tables.psms["sequence"].to_pylist()), pa.string()),
        "site_probability": pa.array(shifts.probability, mask=is_plain),
        "shift_kind": pa.array([KINDS[one] for one in shifts.group.tolist()], pa.string()),
        "shift_position": pa.array(shifts.site, pa.int16(), mask=is_plain),
        "carried_mass": pa.array(shifts.carried),
    }
    table = tables.psms
    for one in SHIFT_COLUMNS:
        table = table.append_column(one.name, columns[one.name])
    return Tables(table, tables.peptides, tables.proteins, tables.counted, tables.n_sequences)


def judged_groups(judged: Judged) -> tuple[tuple[str, ...], ...]:
    """Kinds of shifts, as the column ``shift_kind`` has them, whose matches were judged apart; empty where all were judged together."""
    group, kind = judged.scored.group, judged.shifts.group
    if group is None or not (group.any() or not kind.any()):
        return ()
    return tuple((one,) for one in KINDS)


def _site_texts(shifts: MassShifts, length: NDArray[np.int64], sequences: list[str]) -> list[str]:
    """Sites as ``M5``, ``N-term`` or ``C-term``; empty without a shift."""
    texts = []
    for site, residues, sequence in zip(shifts.site.tolist(), length.tolist(), sequences, strict=True):
        if site < 0:
            texts.append("")
        else:
            texts.append("N-term" if site == 0 else "C-term" if site > residues else f"{sequence[site - 1]}{site}")
    return texts


def modification_table(psms: pa.Table, fdr: float, *, has_decoys: bool) -> pa.Table:
    """What peptides carry, the most frequent first: a row for each name, and for each hundredth of a dalton without one.

    Counted are targets of rank 1 at the false discovery rate; `decoys` are those that passed with them. `sites` counts residues and
    termini; `share_unmodified` is the part of the peptides that were also found without any shift.
    """
    first = pa.compute.equal(psms["rank"], 1)
    accepted = pa.compute.and_(first, pa.compute.fill_null(pa.compute.less_equal(psms["q_value"], fdr), False)) if has_decoys else first
    names = ["modification", "mass_shift", "carried_mass", "site", "sequence", "shift_kind", "is_decoy"]
    rows = psms.filter(accepted).select(names).to_pylist()
    unmodified = {row["sequence"] for row in rows if row["shift_kind"] == KINDS[PLAIN] and not row["is_decoy"]}
    found: dict[tuple[str, float], list[dict[str, Any]]] = {}
    for row in rows:
        if row["shift_kind"] == KINDS[PLAIN]:
            continue
        mass = row["carried_mass"]
        is_called = row["shift_kind"] != KINDS[UNNAMED] or not row["modification"].startswith(("+", "-"))
        binned = round(mass * _BINS_OF_DALTON) / _BINS_OF_DALTON
        key = (row["modification"], round(mass, 6)) if is_called else (write_mass(binned), binned)
        found.setdefault(key, []).append(row)
    table: dict[str, list[Any]] = {name: [] for name in MODIFICATIONS.saved}
    for (name, mass), members in sorted(found.items(), key=lambda one: (-_n_targets(one[1]), one[0])):
        targets = [row for row in members if not row["is_decoy"]]
        if not targets:
            continue
        peptides = {row["sequence"] for row in targets}
        counts = Counter(row["site"].rstrip("0123456789") for row in targets)
        sites = "; ".join(f"{site} {count}" for site, count in sorted(counts.items(), key=lambda one: (-one[1], one[0])))
        values = (
            name, mass, len(targets), len(peptides), sites, len(peptides & unmodified) / len(peptides), len(members) - len(targets),
            targets[0]["shift_kind"],
        )  # fmt: skip
        for column, value in zip(MODIFICATIONS.saved, values, strict=True):
            table[column].append(value)
    return MODIFICATIONS.arrow(table)


def _n_targets(rows: list[dict[str, Any]]) -> int:
    return sum(not row["is_decoy"] for row in rows)


def write_modifications(run: Run, table: pa.Table, progress: Progress) -> None:
    """Write the table of modifications into the run, and as text for the project to show."""
    run.write_table("modifications", table)
    write_modification_file(run.folder / EXPORTS / MODIFICATIONS_FILE, table, progress)


def write_modification_file(out: Path, table: pa.Table, progress: Progress, *, spreadsheet_safe: bool = False) -> None:
    """Write the table of modifications as text."""
    write_separated(out, table, MODIFICATIONS.saved_columns, progress, ROUNDED, spreadsheet_safe=spreadsheet_safe)
