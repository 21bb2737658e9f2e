"""Tables of evidence on structures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import Texts, segment_offsets
from proteoscope.engine.evidence import tables as described
from proteoscope.engine.evidence.homologues import Conservation
from proteoscope.engine.evidence.identified_peptides import IdentifiedPeptides, ProteinEntry, SourceTables, fixed_modifications
from proteoscope.engine.evidence.mapped_residues import MappedChain, MappedRows, mapped_chains
from proteoscope.engine.evidence.nearest_chains import SimilarChain
from proteoscope.engine.evidence.parameters import EvidenceParameters
from proteoscope.engine.evidence.peptide_positions import (
    PeptidePositions,
    ResidueEvidence,
    Sites,
    find_modified_residues,
    find_peptide_positions,
    residue_evidence,
)
from proteoscope.engine.evidence.questions import (
    MappedSites,
    Pairs,
    SharedPeptides,
    UncoveredRanges,
    mapped_sites,
    near_pairs,
    shared_peptides,
    uncovered_ranges,
)
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.project.paths import EXPORTS
from proteoscope.engine.project.run import Run
from proteoscope.engine.results.arrow import finite_or_null, taken
from proteoscope.engine.results.reader import TableFile
from proteoscope.engine.results.separated import DIGITS, write_separated
from proteoscope.engine.sequences.matrices import SYMBOLS
from proteoscope.engine.shared_names import distinct_names
from proteoscope.engine.structure_search.structures import ChainFiles
from proteoscope.engine.structures.chains import STATE_SYMBOLS

__all__ = ["Evidence", "burial_names", "collect_residue_evidence", "evidence_tables", "write_evidence"]

_SYMBOLS, _STATES = (np.frombuffer(alphabet.encode(), np.uint8) for alphabet in (SYMBOLS, STATE_SYMBOLS))
_X = ord("X")


@dataclass(frozen=True, eq=False)
class Evidence:
    """Results of a run before conversion to tables; `chain_names` are indexed by chain."""

    proteins: Sequence[ProteinEntry]
    peptides: IdentifiedPeptides
    peptide_positions: PeptidePositions
    residues: ResidueEvidence
    conservation: Conservation
    sites: Sites
    mapped: Sequence[MappedChain]
    rows: MappedRows
    placed: MappedSites
    missed: UncoveredRanges
    pairs: Pairs
    shared: SharedPeptides
    chain_names: Sequence[str]


def collect_residue_evidence(
    peptides: IdentifiedPeptides,
    proteins: Sequence[ProteinEntry],
    tables: SourceTables,
    conservation: Conservation,
    near: Sequence[SimilarChain],
    structures: ChainFiles,
    parameters: EvidenceParameters,
    resources: Resources,
) -> Evidence:
    """Return the evidence of each residue from peptides and similar chains.

    Raises
    ------
    Cancelled
        If the user cancelled the search.
    """
    progress = resources.progress
    positions = find_peptide_positions(peptides, proteins, progress)
    residues = residue_evidence(peptides, proteins, positions)
    sites = find_modified_residues(peptides, residues, positions, fixed_modifications(peptides, tables, parameters, progress))
    mapped = mapped_chains(near, proteins, structures, resources)
    rows = MappedRows.from_chains(mapped, residues)
    return Evidence(
        proteins,
        peptides,
        positions,
        residues,
        conservation,
        sites,
        mapped,
        rows,
        mapped_sites(sites, residues, mapped, rows, progress),
        uncovered_ranges(proteins, residues, mapped, rows, progress),
        near_pairs(residues, sites, mapped, rows, parameters.contact_distance, parameters.minimum_separation, progress),
        shared_peptides(peptides, positions, len(proteins)),
        structures.chains.names,
    )


def write_evidence(run: Run, tables: Mapping[str, pa.Table], out: str | Path | None, progress: Progress) -> None:
    """Write the tables of a run; write those that users see also as text, and the table of proteins also to `out`, if given.

    Raises
    ------
    StorageError
        If writing fails.
    Cancelled
        If the user cancelled the search.
    """
    for name, table in tables.items():
        run.write_table(name, table)
        progress.check()
    for described_table in described.TABLES:
        table = tables.get(described_table.name)
        if table is None:
            with TableFile(run.folder / f"{described_table.name}.parquet", described_table, described_table.saved) as file:
                table = file.read(described_table.saved)
        columns = [column for column in described_table.saved_columns if column.name in table.column_names]
        write_separated(run.folder / EXPORTS / described.text_file_name(described_table), table, columns, progress, DIGITS)
    if out is not None:
        write_separated(Path(out), tables[described.PROTEINS.name], described.PROTEINS.saved_columns, progress, DIGITS)
    progress.check()


def burial_names(exposure: NDArray[np.float64], surface: float) -> NDArray[np.str_]:
    """Return ``surface``, ``buried`` or, for an exposure of NaN, ``unknown`` for each residue.

    `surface` is the minimum exposure of surface residues.

    Examples
    --------
    >>> burial_names(np.array([0.3, 0.1, np.nan]), 0.25).tolist()
    ['surface', 'buried', 'unknown']
    """
    return np.where(np.isnan(exposure), "unknown", np.where(exposure >= surface, "surface", "buried"))


def evidence_tables(evidence: Evidence, surface: float) -> dict[str, pa.Table]:
    """Return all result tables by name, except the table of homologues, which is written while they are found.

    `surface` is the minimum exposure of surface residues.
    """
    columns = _Columns(evidence)
    return {
        described.PROTEINS.name: _proteins(evidence, columns),
        described.CHAINS.name: _chains(evidence, columns),
        described.SITES.name: _sites(evidence, columns, surface),
        described.MISSED.name: _missed(evidence, columns),
        described.CONTACTS.name: _contacts(evidence, columns),
        described.PARALOGUES.name: _paralogues(evidence, columns),
        described.PEPTIDE_PLACES.name: _peptide_positions(evidence, columns),
        described.RESIDUES.name: _residues(evidence),
        described.MAPPED_RESIDUES.name: _mapped_residues(evidence, columns),
    }


def _texts(values: Sequence[str]) -> pa.Array:
    """Return texts as an Arrow array, with null for ''."""
    texts = pa.array(values, pa.string())
    return pa.compute.if_else(pa.compute.equal(texts, ""), pa.scalar(None, pa.string()), texts)


def _as_strings(values: NDArray[np.uint8]) -> pa.Array:
    return Texts(values, np.arange(len(values) + 1)).arrow()


class _Columns:
    """Columns that several tables have: names of proteins and chains, and information from the structure file about each mapped residue."""

    def __init__(self, evidence: Evidence) -> None:
        self.accession = pa.array([protein.accession for protein in evidence.proteins], pa.string())
        self.chain = pa.array([chain.chains.names[0] for chain in evidence.mapped], pa.string())
        self.kind = pa.array([chain.near.kind for chain in evidence.mapped], pa.string())
        rows = evidence.rows
        self.label_number = _column(evidence.mapped, "label_number")
        self.symbol, self.secondary = _SYMBOLS[_column(evidence.mapped, "residue")], _STATES[_column(evidence.mapped, "secondary")]
        self.author = _authors(_column(evidence.mapped, "author_number"), _column(evidence.mapped, "insertion"))
        self.is_identical = (self.symbol == evidence.residues.residue[rows.protein_residue]) & (self.symbol != _X)
        self.nearest = np.full(len(evidence.proteins), -1, np.int64)
        for number, chain in enumerate(evidence.mapped):
            if chain.near.rank == 1:
                self.nearest[chain.near.protein] = number


def _column(mapped: Sequence[MappedChain], name: str) -> NDArray[np.int64]:
    """Return the column `name` of the chains at each mapped residue."""
    return np.concatenate([np.zeros(0, np.int64), *(getattr(similar.chains, name)[similar.near.pairs[:, 1]] for similar in mapped)]).astype(
        np.int64
    )


def _authors(number: NDArray[np.int64], code: NDArray[np.int64]) -> pa.Array:
    """Return the residue numbers in the authors' numbering of the structure file, with insertion codes, such as ``52A``."""
    codes = pa.array(["", *(chr(code) for code in range(1, 256))], pa.string())
    return pa.compute.binary_join_element_wise(pa.array(number).cast("string"), codes.take(pa.array(code)), "")


def _proteins(evidence: Evidence, columns: _Columns) -> pa.Table:
    n = len(evidence.proteins)
    lengths = np.diff(evidence.residues.offsets)
    is_covered = evidence.residues.n_peptides > 0
    nearest = columns.nearest
    on_nearest = np.isin(evidence.rows.chain, nearest[nearest >= 0])
    protein = evidence.residues.protein[evidence.rows.protein_residue[on_nearest]]
    n_mapped = np.bincount(protein, minlength=n)
    n_seen = np.bincount(protein[is_covered[evidence.rows.protein_residue[on_nearest]]], minlength=n)
    # A peptide that occurs twice in a protein counts once.
    forms = np.unique(np.stack([evidence.peptide_positions.protein, evidence.peptide_positions.peptide], axis=1), axis=0)
    identities = np.append([chain.near.identity for chain in evidence.mapped], np.nan)
    with np.errstate(invalid="ignore"):
        seen = np.where(n_mapped > 0, n_seen / np.maximum(1, n_mapped), np.nan)
    return described.PROTEINS.arrow(
        {
            "accession": columns.accession,
            "other_accessions": [list(protein.others) for protein in evidence.proteins],
            "description": [protein.description for protein in evidence.proteins],
            "length": lengths,
            "n_peptides": np.bincount(forms[:, 0], minlength=n),
            "n_psms": np.bincount(forms[:, 0], evidence.peptides.n_psms[forms[:, 1]], minlength=n).astype(np.int64),
            "coverage": evidence.residues.share_of(is_covered),
            "n_sites": np.bincount(
                evidence.residues.protein[np.unique(evidence.sites.residues_in(evidence.residues.offsets))], minlength=n
            ),
            "n_chains": np.bincount(np.array([chain.near.protein for chain in evidence.mapped], np.int64), minlength=n),
            "chain": taken(columns.chain, nearest),
            "identity": finite_or_null(identities[nearest]),
            "mapped": n_mapped / np.maximum(1, lengths),
            "mapped_coverage": finite_or_null(seen),
            "n_homologues": evidence.conservation.n_of_protein,
            "q_value": finite_or_null([protein.q_value for protein in evidence.proteins]),
            "sequence": [protein.sequence for protein in evidence.proteins],
        }
    )


def _chains(evidence: Evidence, columns: _Columns) -> pa.Table:
    near = [chain.near for chain in evidence.mapped]
    protein = np.array([chain.protein for chain in near], np.int64)
    is_covered = np.concatenate(([0], np.cumsum(evidence.residues.n_peptides[evidence.rows.protein_residue] > 0)))[evidence.rows.offsets]
    return described.CHAINS.arrow(
        {
            "protein": protein,
            "accession": taken(columns.accession, protein),
            "rank": [chain.rank for chain in near],
            "chain": columns.chain,
            "kind": columns.kind,
            "identity": [chain.identity for chain in near],
            "n_aligned": [len(chain.pairs) for chain in near],
            "n_gaps": [chain.gaps for chain in near],
            "n_unseen": [len(chain.unseen) for chain in evidence.mapped],
            "first": [int(chain.pairs[0, 0]) + 1 for chain in near],
            "last": [int(chain.pairs[-1, 0]) + 1 for chain in near],
            "covered": np.diff(is_covered) / np.maximum(1, np.diff(evidence.rows.offsets)),
            "e_value": finite_or_null([chain.e_value for chain in near]),
            "bit_score": finite_or_null([chain.bit_score for chain in near]),
            "tm_score": finite_or_null([chain.tm_score for chain in near]),
            "through": _texts([evidence.chain_names[chain.through] if chain.through >= 0 else "" for chain in near]),
            "has_atoms": [chain.atoms is not None and bool(chain.atoms.is_whole.any()) for chain in evidence.mapped],
            "description": [chain.chains.descriptions[0] for chain in evidence.mapped],
            "path": list(distinct_names([chain.path for chain in evidence.mapped])),
        }
    )


def _sites(evidence: Evidence, columns: _Columns, surface: float) -> pa.Table:
    sites, placed, rows = evidence.sites, evidence.placed, evidence.rows
    position = evidence.residues.offsets[sites.protein] + sites.position
    chain = np.append(rows.chain, -1)[placed.row]
    exposure = np.append(rows.exposure, np.nan)[placed.row]
    marks = {"is_alternative": sites.is_alternative} if evidence.peptides.are_localised else {}
    return described.SITES.arrow(
        {
            "protein": sites.protein,
            "accession": taken(columns.accession, sites.protein),
            "position": sites.position + 1,
            "residue": _as_strings(evidence.residues.residue[position]),
            "modification": taken(sites.names, sites.name),
            "mass": sites.mass,
            "n_psms": sites.n_psms,
            "n_covering": evidence.residues.n_psms[position],
            "n_peptides": sites.n_peptides,
            "intensity": finite_or_null(sites.intensity),
            "q_value": finite_or_null(sites.q_value),
            "site_probability": finite_or_null(sites.probability),
            "conservation": finite_or_null(evidence.conservation.of_residue[position]),
            "chain": taken(columns.chain, chain),
            "chain_kind": taken(columns.kind, chain),
            "author_number": taken(columns.author, placed.row),
            "secondary_structure": taken(_as_strings(columns.secondary), placed.row),
            "exposure": finite_or_null(exposure),
            "place": burial_names(exposure, surface),
            "nearest_site": pa.array(placed.nearest_site + 1, mask=placed.nearest_site < 0),
            "site_distance": finite_or_null(placed.site_distance),
            "ligand": _texts(placed.ligand),
            "ligand_distance": finite_or_null(placed.ligand_distance),
            "chain_row": pa.array(chain, mask=chain < 0),
            **marks,
        },
        without=() if marks else ("is_alternative",),
    )


def _missed(evidence: Evidence, columns: _Columns) -> pa.Table:
    some = evidence.missed
    is_listed = some.n_seen > 0
    reported = pa.compute.binary_join_element_wise(
        taken(some.enzymes, some.enzyme[is_listed]), " (", pa.array(some.n_seen[is_listed]).cast("string"), ")", ""
    )
    return described.MISSED.arrow(
        {
            "protein": some.protein,
            "accession": taken(columns.accession, some.protein),
            "first": some.start + 1,
            "last": some.end,
            "length": some.end - some.start,
            "n_mapped": some.n_mapped,
            "exposure": finite_or_null(some.exposure),
            "enzymes": pa.ListArray.from_arrays(segment_offsets(is_listed.sum(axis=1)).astype(np.int32), reported),
        }
    )


def _contacts(evidence: Evidence, columns: _Columns) -> pa.Table:
    some, rows = evidence.pairs, evidence.rows
    protein = evidence.residues.protein[rows.protein_residue[some.first]]
    chain = rows.chain[some.first]
    symbols = evidence.residues.residue[rows.protein_residue]
    return described.CONTACTS.arrow(
        {
            "protein": protein,
            "accession": taken(columns.accession, protein),
            "first_position": rows.position[some.first] + 1,
            "first_residue": _as_strings(symbols[some.first]),
            "second_position": rows.position[some.second] + 1,
            "second_residue": _as_strings(symbols[some.second]),
            "alpha_distance": some.alpha_distance,
            "atom_distance": finite_or_null(some.atom_distance),
            "is_modified": some.is_modified,
            "chain": taken(columns.chain, chain),
            "chain_row": chain,
        }
    )


def _paralogues(evidence: Evidence, columns: _Columns) -> pa.Table:
    some = evidence.shared
    has_own, has_other = some.n_own > 0, some.n_of_other > 0
    return described.PARALOGUES.arrow(
        {
            "protein": some.protein,
            "accession": taken(columns.accession, some.protein),
            "other": taken(columns.accession, some.other),
            "n_shared": some.n_shared,
            "n_own": some.n_own,
            "n_of_other": some.n_of_other,
            "supported": np.where(has_own, np.where(has_other, "both", "first"), np.where(has_other, "other", "neither")),
        }
    )


def _peptide_positions(evidence: Evidence, columns: _Columns) -> pa.Table:
    positions, peptides = evidence.peptide_positions, evidence.peptides
    n_places = np.bincount(positions.peptide, minlength=len(peptides))
    return described.PEPTIDE_PLACES.arrow(
        {
            "protein": positions.protein,
            "accession": taken(columns.accession, positions.protein),
            "peptide": taken(peptides.peptides, positions.peptide),
            "sequence": taken(peptides.sequences, positions.peptide),
            "first": positions.start + 1,
            "last": positions.end,
            "n_psms": peptides.n_psms[positions.peptide],
            "intensity": finite_or_null(peptides.intensity[positions.peptide]),
            "q_value": finite_or_null(peptides.q_value[positions.peptide]),
            "n_places": n_places[positions.peptide],
        }
    )


def _residues(evidence: Evidence) -> pa.Table:
    residues, sites = evidence.residues, evidence.sites
    # Sites are ordered by residue.
    n_carried = np.bincount(sites.residues_in(residues.offsets), minlength=len(residues.residue))
    carried = taken(sites.names, sites.name[~sites.is_alternative])
    return described.RESIDUES.arrow(
        {
            "protein": residues.protein,
            "position": np.arange(len(residues.residue)) - residues.offsets[residues.protein] + 1,
            "residue": _as_strings(residues.residue),
            "n_peptides": residues.n_peptides.astype(np.int32),
            "n_psms": np.minimum(residues.n_psms, np.iinfo(np.int32).max).astype(np.int32),
            "q_value": finite_or_null(residues.q_value),
            "modifications": pa.ListArray.from_arrays(segment_offsets(n_carried).astype(np.int32), carried),
            "n_homologues": evidence.conservation.n_of_residue.astype(np.int32),
            "conservation": finite_or_null(evidence.conservation.of_residue),
        }
    )


def _mapped_residues(evidence: Evidence, columns: _Columns) -> pa.Table:
    rows, n = evidence.rows, len(evidence.rows)
    unseen = np.concatenate([np.zeros(0, np.int64), *(chain.unseen for chain in evidence.mapped)])
    of_unseen = np.repeat(np.arange(len(evidence.mapped)), [len(chain.unseen) for chain in evidence.mapped])
    chain = np.concatenate((rows.chain, of_unseen))
    # For each chain, mapped residues precede residues without coordinates.
    order = np.argsort(chain, kind="stable")
    row = np.where(order < n, order, -1)
    is_seen = row >= 0
    return described.MAPPED_RESIDUES.arrow(
        {
            "chain_row": chain[order],
            "position": np.concatenate((rows.position, unseen))[order] + 1,
            "chain_residue": taken(pa.array(rows.row), row),
            "author_number": taken(columns.author, row),
            "label_number": taken(pa.array(columns.label_number), row),
            "chain_letter": taken(_as_strings(columns.symbol), row),
            "is_identical": np.append(columns.is_identical, False)[row] & is_seen,
            "secondary_structure": taken(_as_strings(columns.secondary), row),
            "exposure": finite_or_null(np.append(rows.exposure, np.nan)[row]),
        }
    )
