"""The tables of evidence on structures, from its columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from engine.evidence import tables as described
from engine.evidence.identified_peptides import IdentifiedPeptides, ProteinEntry
from engine.evidence.mapped_residues import MappedChain
from engine.evidence.places import Places, ResidueEvidence, Site
from engine.evidence.questions import MissedStretch, Pair, PlacedSite, SharedPeptides
from engine.sequences.matrices import LETTERS
from engine.structures.chains import STATE_LETTERS, Chains

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Evidence", "evidence_tables", "place_of"]

_SAME, _HOMOLOGOUS = 0.95, 0.30


@dataclass(frozen=True)
class Evidence:
    """All that a run found, before it becomes tables."""

    proteins: Sequence[ProteinEntry]
    peptides: IdentifiedPeptides
    places: Places
    residues: ResidueEvidence
    sites: Sequence[Site]
    mapped: Sequence[MappedChain]
    placed: Sequence[PlacedSite]
    missed: Sequence[MissedStretch]
    pairs: Sequence[Pair]
    shared: Sequence[SharedPeptides]


def place_of(exposure: float, surface: float) -> str:
    """``surface``, ``buried``, or ``unknown`` where the exposure is not a number."""
    if not np.isfinite(exposure):
        return "unknown"
    return "surface" if exposure >= surface else "buried"


def evidence_tables(found: Evidence, surface: float) -> dict[str, pa.Table]:
    """All tables, by their names."""
    return {
        described.PROTEINS.name: _proteins(found),
        described.CHAINS.name: _chains(found),
        described.SITES.name: _sites(found, surface),
        described.MISSED.name: _missed(found),
        described.CONTACTS.name: _contacts(found),
        described.PARALOGUES.name: _paralogues(found),
        described.PEPTIDE_PLACES.name: _peptide_places(found),
        described.RESIDUES.name: _residues(found),
        described.MAPPED_RESIDUES.name: _mapped_residues(found),
    }


def _known(values: Any) -> pa.Array:
    """Numbers, missing where they are none."""
    import pyarrow as pa

    values = np.asarray(values, np.float64)
    return pa.array(values, mask=~np.isfinite(values))


def _texts(values: Sequence[str]) -> pa.Array:
    """Texts, missing where they are empty."""
    import pyarrow as pa

    return pa.array([value or None for value in values], pa.string())


def _names(found: Evidence, proteins: Sequence[int]) -> list[str]:
    return [found.proteins[number].accession for number in proteins]


def _covered(found: Evidence, protein: int) -> NDArray[np.bool_]:
    own: NDArray[np.bool_] = found.residues.n_peptides[found.residues.offsets[protein] : found.residues.offsets[protein + 1]] > 0
    return own


def _nearest(found: Evidence) -> dict[int, MappedChain]:
    return {one.near.protein: one for one in found.mapped if one.near.rank == 1}


def _proteins(found: Evidence) -> pa.Table:
    n = len(found.proteins)
    nearest, covered = _nearest(found), [_covered(found, number) for number in range(n)]
    pairs = [nearest[number].near.pairs[:, 0] if number in nearest else np.zeros(0, np.int64) for number in range(n)]
    # A peptide that lies in a protein twice is one.
    forms = (
        np.unique(np.stack([found.places.protein, found.places.peptide], axis=1), axis=0) if len(found.places) else np.zeros((0, 2), int)
    )
    return described.PROTEINS.arrow(
        {
            "accession": [one.accession for one in found.proteins],
            "other_accessions": [list(one.others) for one in found.proteins],
            "description": [one.description for one in found.proteins],
            "length": [len(one.sequence) for one in found.proteins],
            "n_peptides": np.bincount(forms[:, 0], minlength=n),
            "n_psms": np.bincount(forms[:, 0], found.peptides.n_psms[forms[:, 1]], minlength=n).astype(np.int64),
            "coverage": [float(own.mean()) for own in covered],
            "n_sites": np.bincount([site.protein for site in found.sites], minlength=n)[:n] if found.sites else np.zeros(n, np.int64),
            "n_chains": np.bincount([one.near.protein for one in found.mapped], minlength=n) if found.mapped else np.zeros(n, np.int64),
            "chain": _texts([nearest[number].chains.names[0] if number in nearest else "" for number in range(n)]),
            "identity": _known([nearest[number].near.identity if number in nearest else np.nan for number in range(n)]),
            "mapped": [len(own) / len(one.sequence) for own, one in zip(pairs, found.proteins, strict=True)],
            "mapped_coverage": _known([own[rows].mean() if len(rows) else np.nan for own, rows in zip(covered, pairs, strict=True)]),
            "q_value": _known([one.q_value for one in found.proteins]),
            "sequence": [one.sequence for one in found.proteins],
        }
    )


def _kind(identity: float) -> str:
    return "same" if identity >= _SAME else "homologous" if identity >= _HOMOLOGOUS else "distant"


def _chains(found: Evidence) -> pa.Table:
    near = [one.near for one in found.mapped]
    return described.CHAINS.arrow(
        {
            "protein": [one.protein for one in near],
            "accession": _names(found, [one.protein for one in near]),
            "rank": [one.rank for one in near],
            "chain": [one.chains.names[0] for one in found.mapped],
            "kind": [_kind(one.identity) for one in near],
            "identity": [one.identity for one in near],
            "n_aligned": [len(one.pairs) for one in near],
            "n_gaps": [one.gaps for one in near],
            "n_unseen": [len(one.unseen) for one in found.mapped],
            "first": [int(one.pairs[0, 0]) + 1 for one in near],
            "last": [int(one.pairs[-1, 0]) + 1 for one in near],
            "covered": [float(_covered(found, one.protein)[one.pairs[:, 0]].mean()) for one in near],
            "e_value": [one.e_value for one in near],
            "bit_score": [one.bit_score for one in near],
            "has_atoms": [one.atoms is not None and bool(one.atoms.is_whole.any()) for one in found.mapped],
            "description": [one.chains.descriptions[0] for one in found.mapped],
            "path": [str(one.path) for one in found.mapped],
        }
    )


def _author(chains: Chains, row: int) -> str:
    code = int(chains.insertion[row])
    return f"{int(chains.author_number[row])}{chr(code) if code else ''}"


def _state(chains: Chains, row: int) -> str:
    return STATE_LETTERS[int(chains.secondary[row])]


def _sites(found: Evidence, surface: float) -> pa.Table:
    import pyarrow as pa

    placed = found.placed
    on = [(found.mapped[one.chain].chains, one.row) if one.row >= 0 else None for one in placed]
    return described.SITES.arrow(
        {
            "protein": [one.site.protein for one in placed],
            "accession": _names(found, [one.site.protein for one in placed]),
            "position": [one.site.position + 1 for one in placed],
            "residue": [found.proteins[one.site.protein].sequence[one.site.position] for one in placed],
            "modification": [one.site.name for one in placed],
            "mass": [one.site.mass for one in placed],
            "n_psms": [one.site.n_psms for one in placed],
            "n_peptides": [one.site.n_peptides for one in placed],
            "q_value": _known([one.site.q_value for one in placed]),
            "site_probability": _known([one.site.probability for one in placed]),
            "chain": _texts([place[0].names[0] if place else "" for place in on]),
            "author_number": _texts([_author(*place) if place else "" for place in on]),
            "secondary_structure": _texts([_state(*place) if place else "" for place in on]),
            "exposure": _known([one.exposure for one in placed]),
            "place": [place_of(one.exposure, surface) for one in placed],
            "nearest_site": pa.array([one.nearest_site + 1 if one.nearest_site >= 0 else None for one in placed], pa.int64()),
            "site_distance": _known([one.site_distance for one in placed]),
            "ligand": _texts([one.ligand for one in placed]),
            "ligand_distance": _known([one.ligand_distance for one in placed]),
            "chain_row": pa.array([one.chain if one.row >= 0 else None for one in placed], pa.int64()),
        }
    )


def _missed(found: Evidence) -> pa.Table:
    some = found.missed
    return described.MISSED.arrow(
        {
            "protein": [one.protein for one in some],
            "accession": _names(found, [one.protein for one in some]),
            "first": [one.start + 1 for one in some],
            "last": [one.end for one in some],
            "length": [one.end - one.start for one in some],
            "n_mapped": [one.n_mapped for one in some],
            "exposure": _known([one.exposure for one in some]),
            "enzymes": [[f"{name} ({n})" for name, n in one.enzymes] for one in some],
        }
    )


def _contacts(found: Evidence) -> pa.Table:
    modified = {(site.protein, site.position) for site in found.sites}
    rows: dict[str, list[Any]] = {name: [] for name in described.CONTACTS.by_name}
    for one in found.pairs:
        mapped = found.mapped[one.chain]
        near = mapped.near
        back = {int(row): int(position) for position, row in near.pairs[np.isin(near.pairs[:, 1], (one.first, one.second))]}
        first, second = back[one.first], back[one.second]
        sequence = found.proteins[near.protein].sequence
        values = (
            near.protein, found.proteins[near.protein].accession, first + 1, sequence[first], second + 1, sequence[second],
            one.alpha_distance, one.atom_distance if np.isfinite(one.atom_distance) else None,
            (near.protein, first) in modified or (near.protein, second) in modified, mapped.chains.names[0], one.chain,
        )  # fmt: skip
        for column, value in zip(rows.values(), values, strict=True):
            column.append(value)
    return described.CONTACTS.arrow(rows)


def _paralogues(found: Evidence) -> pa.Table:
    some = found.shared
    supported = [
        "both" if one.n_own and one.n_of_other else "first" if one.n_own else "other" if one.n_of_other else "neither" for one in some
    ]
    return described.PARALOGUES.arrow(
        {
            "protein": [one.protein for one in some],
            "accession": _names(found, [one.protein for one in some]),
            "other": _names(found, [one.other for one in some]),
            "n_shared": [one.n_shared for one in some],
            "n_own": [one.n_own for one in some],
            "n_of_other": [one.n_of_other for one in some],
            "supported": supported,
        }
    )


def _peptide_places(found: Evidence) -> pa.Table:
    places, peptides = found.places, found.peptides
    n_places = np.bincount(places.peptide, minlength=len(peptides))
    rows = places.peptide.tolist()
    return described.PEPTIDE_PLACES.arrow(
        {
            "protein": places.protein,
            "accession": _names(found, places.protein.tolist()),
            "peptide": [peptides.peptides[row] for row in rows],
            "sequence": [peptides.sequences[row] for row in rows],
            "first": places.start + 1,
            "last": places.end,
            "n_psms": peptides.n_psms[places.peptide],
            "q_value": _known(peptides.q_value[places.peptide]),
            "n_places": n_places[places.peptide],
        }
    )


def _residues(found: Evidence) -> pa.Table:
    offsets = found.residues.offsets
    lengths = np.diff(offsets)
    carried: list[list[str]] = [[] for _ in range(int(offsets[-1]))]
    for site in found.sites:
        carried[int(offsets[site.protein]) + site.position].append(site.name)
    return described.RESIDUES.arrow(
        {
            "protein": np.repeat(np.arange(len(lengths)), lengths),
            "position": np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths) + 1,
            "residue": list("".join(one.sequence for one in found.proteins)),
            "n_peptides": found.residues.n_peptides.astype(np.int32),
            "n_psms": np.minimum(found.residues.n_psms, np.iinfo(np.int32).max).astype(np.int32),
            "q_value": _known(found.residues.q_value),
            "modifications": carried,
        }
    )


def _mapped_residues(found: Evidence) -> pa.Table:
    columns: dict[str, list[Any]] = {name: [] for name in described.MAPPED_RESIDUES.by_name}
    for number, one in enumerate(found.mapped):
        chains, sequence = one.chains, found.proteins[one.near.protein].sequence
        letters = [LETTERS[code] for code in chains.residue.tolist()]
        for position, row in one.near.pairs.tolist():
            exposure = float(one.exposure[row])
            values = (
                number, position + 1, row, _author(chains, row), int(chains.label_number[row]), letters[row],
                letters[row] == sequence[position] != "X", _state(chains, row), exposure if np.isfinite(exposure) else None,
            )  # fmt: skip
            for column, value in zip(columns.values(), values, strict=True):
                column.append(value)
        for position in one.unseen.tolist():
            for column, value in zip(columns.values(), (number, position + 1, None, None, None, None, False, None, None), strict=True):
                column.append(value)
    return described.MAPPED_RESIDUES.arrow(columns)
