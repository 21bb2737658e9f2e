"""Peptidoforms of the runs of an experiment as columns, with keys by which they are recognised in all runs, and their proteins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import Texts, is_group_start, row_mask, segment_offsets
from proteoscope.engine.chemistry.enzymes import Enzyme
from proteoscope.engine.chemistry.masses import RESIDUE_MASS
from proteoscope.engine.errors import InputError
from proteoscope.engine.experiments.competition import form_keys
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.matches.psms import peptide_families
from proteoscope.engine.matches.tables import PeptidePositions
from proteoscope.engine.peptides.database_decoys import targets_of_decoys
from proteoscope.engine.results.arrow import in_one

__all__ = ["FORM_COLUMNS", "FormProteins", "boolean_values", "class_numbers", "float_values", "form_families", "keyed_forms", "merge_forms"]

FORM_COLUMNS = ("peptide", "sequence", "proteins", "calculated_mass", "is_decoy")
"""Columns that describe a peptidoform. They are equal in all runs except for the proteins, since a second pass searches fewer proteins."""


def float_values(column: pa.ChunkedArray) -> NDArray[np.float64]:
    """Return a column of numbers as an array; missing numbers become NaN."""
    result: NDArray[np.float64] = column.cast(pa.float64()).fill_null(float("nan")).to_numpy()
    return result


def boolean_values(column: pa.ChunkedArray) -> NDArray[np.bool_]:
    """Return a column of booleans without missing values as an array."""
    result: NDArray[np.bool_] = column.to_numpy()
    return result


def class_numbers(column: pa.ChunkedArray, names: Sequence[str]) -> NDArray[np.int64]:
    """Return the class of each match as an index in `names`; 0, the main class, for a class that is not in `names`."""
    number = pa.compute.index_in(column.cast(pa.string()), value_set=pa.array(names, pa.string()))
    numbers: NDArray[np.int64] = number.fill_null(0).to_numpy().astype(np.int64)
    return numbers


def keyed_forms(table: pa.Table) -> pa.Table:
    """Return the columns `FORM_COLUMNS` of peptidoforms, with the columns ``form`` (key), ``n_proteins`` and ``hash`` (of the proteins)."""
    lists, is_decoy = in_one(table["proteins"]), boolean_values(table["is_decoy"])
    offsets = segment_offsets(pa.compute.list_value_length(lists).to_numpy(zero_copy_only=False))
    accessions, peptides = Texts.from_arrow(lists.flatten()), Texts.from_arrow(in_one(table["peptide"]))
    hashes = form_keys(accessions.characters, accessions.offsets, np.zeros(len(accessions), np.bool_))
    sums = np.concatenate((np.zeros(1, np.uint64), np.cumsum(hashes, dtype=np.uint64)))
    columns = {
        "form": form_keys(peptides.characters, peptides.offsets, is_decoy),
        "n_proteins": np.diff(offsets),
        "hash": sums[offsets[1:]] - sums[offsets[:-1]],
    }
    result = table.select(FORM_COLUMNS)
    for name, column in columns.items():
        result = result.append_column(name, pa.array(column))
    return result


def merge_forms(tables: Sequence[pa.Table], place: Any) -> pa.Table:
    """Return a row for each peptidoform, ascending by key, with its longest list of proteins.

    Matches of a second pass may have shorter lists, since this pass searches only some of the proteins. Of several lists of the same
    length, the one with the lowest hash is used.

    Raises
    ------
    InputError
        If two peptidoforms have the same key, which only a manipulated table can have.
    """
    table = pa.concat_tables(tables).combine_chunks()
    keys = [table[name].to_numpy() for name in ("calculated_mass", "hash", "n_proteins", "form")]
    keys[2] = -keys[2]
    order = np.lexsort(keys)
    form = keys[3][order]
    is_first, texts = is_group_start(form), in_one(table["peptide"]).take(pa.array(order))
    is_same = pa.compute.equal(texts.slice(1), texts.slice(0, max(0, len(texts) - 1))).to_numpy(zero_copy_only=False)
    if not (is_first[1:] | is_same).all():
        raise InputError(place, "has different peptides with the same key", remedy="Search this run again")
    return table.take(pa.array(order[is_first]))


def form_families(forms: pa.Table, cutting: Enzyme) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the family of each peptidoform, (n,) int64, and the total mass of its residues in dalton, (n,) float64.

    A family is a number that a peptide shares with its decoy.
    """
    sequences = Texts.from_arrow(in_one(forms["sequence"]))
    residues, offsets = sequences.used, sequences.offsets - sequences.offsets[0]
    residues = np.where(residues == ord("*"), np.uint8(ord("X")), residues)
    sums = np.concatenate(([0.0], np.cumsum(np.nan_to_num(RESIDUE_MASS)[residues - 65])))
    return peptide_families(residues, offsets, cutting), sums[offsets[1:]] - sums[offsets[:-1]]


class FormProteins(NamedTuple):
    """Proteins of n peptidoforms.

    Attributes
    ----------
    accession : pyarrow.Array
        Accessions, ascending.
    offsets, number : ndarray of int64
        Proteins of peptidoform i are ``number[offsets[i]:offsets[i + 1]]``.
    is_decoy : ndarray of bool, shape (proteins,)
        True for proteins that only decoys have.
    partner : ndarray of int64, shape (proteins,)
        Index of the decoy of each target and of the target of each decoy, or -1.
    """

    accession: pa.Array
    offsets: NDArray[np.int64]
    number: NDArray[np.int64]
    is_decoy: NDArray[np.bool_]
    partner: NDArray[np.int64]

    @classmethod
    def from_forms(cls, forms: pa.Table, decoy_prefix: str, decoy_suffix: str) -> FormProteins:
        """Return the proteins of peptidoforms; a decoy's accession is that of its target with `decoy_prefix` or `decoy_suffix`."""
        lists = in_one(forms["proteins"])
        flat, offsets = lists.flatten(), segment_offsets(pa.compute.list_value_length(lists).to_numpy(zero_copy_only=False))
        accession = pa.compute.unique(flat)
        accession = accession.take(pa.compute.sort_indices(accession))
        number = pa.compute.index_in(flat, value_set=accession).to_numpy().astype(np.int64)
        of_decoy = np.repeat(boolean_values(forms["is_decoy"]), np.diff(offsets))
        is_decoy = ~row_mask(len(accession), number[~of_decoy])
        targets, decoys = np.flatnonzero(~is_decoy), np.flatnonzero(is_decoy)
        partner = np.full(len(accession), -1, np.int64)
        names = [accession.take(pa.array(numbers)) for numbers in (targets, decoys)]
        of_decoys = targets_of_decoys(names[0], Texts.from_arrow(names[1]), decoy_prefix, decoy_suffix)
        paired = of_decoys >= 0
        partner[decoys[paired]] = targets[of_decoys[paired]]
        partner[targets[of_decoys[paired]]] = decoys[paired]
        return cls(accession, offsets, number, is_decoy, partner)

    @property
    def first(self) -> NDArray[np.int64]:
        """Number of the first protein of each peptidoform, (n,) int64; a decoy protein has the number of its target."""
        protein = np.arange(len(self.accession))
        target = np.where(self.is_decoy, np.where(self.partner >= 0, self.partner, protein + len(protein)), protein)
        numbers: NDArray[np.int64] = np.minimum.reduceat(target[self.number], self.offsets[:-1])
        return numbers

    def positions(self) -> PeptidePositions:
        """Return a `PeptidePositions` object with the proteins of each peptidoform; the positions in the proteins are unknown (-1)."""
        unknown = np.full(len(self.number), -1, np.int64)
        return PeptidePositions(self.offsets, self.number, unknown, np.zeros(len(self.offsets) - 1, np.int64))
