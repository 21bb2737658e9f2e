"""Quantities of the sites of localised modifications, also relative to their proteins.

The ions of all peptidoforms that carry the modification at a site are combined in the same way as the ions of a protein. A peptidoform with
several sites contributes to each. The protein is quantified by its peptidoforms without localised modifications, so that the change of a
site does not change the quantity to which it is compared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import is_group_start, ranges, row_mask, segment_offsets
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.matches.columns import EXPORTED_PSMS
from proteoscope.engine.matches.site_columns import PSM_SITES
from proteoscope.engine.quantification.amounts import Grouping, RawQuantities, protein_amounts
from proteoscope.engine.quantification.identified import Identified, Sources
from proteoscope.engine.quantification.parameters import QuantificationParameters
from proteoscope.engine.quantification.tables import SITE_PEPTIDOFORMS
from proteoscope.engine.results.arrow import in_one, or_null
from proteoscope.engine.results.reader import TableFile
from proteoscope.engine.spectra.spooling import full_matrix, row_blocks

__all__ = ["SiteQuantities", "Sites", "localised_peptidoforms", "site_quantities"]

_REMEDY = "Run the identification again"
_COLUMNS = ("psm", "modification", "residue", "position", "site_probability", "localisation_q_value", "proteins", "protein_positions")
_KEYS = ("accession", "position", "residue", "modification")
_FEWEST_MERGED = 1 << 16  # rows of sites that are collected before those of the best matches are selected


def localised_peptidoforms(sources: Sources, identified: Identified) -> tuple[pa.Table, int] | None:
    """Return the sites of peptidoforms as a table `SITE_PEPTIDOFORMS`, and the number of sites that are not in a quantified protein.

    The sites of a modification in a peptidoform come from one match: the match whose least certain site has the highest probability.

    Returns
    -------
    tuple of (pyarrow.Table, int) or None
        None if no identification localised modifications.

    Raises
    ------
    InputError
        If a table is damaged.
    """
    number_of = {name: number for number, name in enumerate(identified.forms.peptide)}
    parts: list[pa.Table] = []
    for number, (run, path) in enumerate(zip(sources.runs, sources.sites, strict=True)):
        if path is None:
            continue
        parts.append(_read_sites(path, run.psms, number_of, number))
        if sum(map(len, parts[1:])) > max(_FEWEST_MERGED, len(parts[0])):
            parts = [_best_matches(parts)]
    if not parts:
        return None
    table = _best_matches(parts)
    place, is_placed = _positions(table, identified)
    columns = {
        "peptide": pa.array(identified.forms.peptide, pa.string()).take(table["form"].combine_chunks()),
        "accession": pa.array(identified.proteins.accession, pa.string()).take(pa.array(_protein_of(table, identified), mask=~is_placed)),
        "position": place,
        "residue": table["residue"],
        "modification": table["modification"],
        "peptide_position": table["position"],
        "site_probability": table["site_probability"],
        "localisation_q_value": table["localisation_q_value"],
    }
    placed = pa.table(columns).filter(pa.array(is_placed))
    order = [(name, "ascending") for name in (*_KEYS, "peptide", "peptide_position")]
    result = placed.sort_by(order)
    return SITE_PEPTIDOFORMS.arrow({name: in_one(result[name]) for name in result.column_names}), int(np.count_nonzero(~is_placed))


def _read_sites(path: Path, psms: Path, number_of: dict[str, int], run: int) -> pa.Table:
    """Return the sites of the matches of a run with the index of their peptidoform, without those of other peptidoforms."""
    with TableFile(psms, EXPORTED_PSMS, ("peptide",), remedy=_REMEDY) as source:
        peptides = source.read(("peptide",))["peptide"]
    with TableFile(path, PSM_SITES, _COLUMNS, n_rows_of={"psms": len(peptides)}, remedy=_REMEDY) as source:
        table = source.read(_COLUMNS)
    text = in_one(peptides.take(table["psm"])).dictionary_encode()
    form = pa.array([number_of.get(name, -1) for name in text.dictionary.to_pylist()], pa.int64()).take(text.indices)
    table = table.append_column("form", form).append_column("run", pa.array(np.full(len(table), run, np.int64)))
    return table.filter(pa.compute.greater_equal(form, 0))


def _best_matches(parts: Sequence[pa.Table]) -> pa.Table:
    """Return the sites of the best match of each peptidoform and modification, from the sites of matches of consecutive runs."""
    table = pa.concat_tables(parts).combine_chunks()
    return table.take(pa.array(_best_rows(table)))


def _best_rows(table: pa.Table) -> NDArray[np.int64]:
    """Return the rows of the best match of each peptidoform and modification."""
    form, run, psm = (table[name].to_numpy() for name in ("form", "run", "psm"))
    name = in_one(table["modification"]).dictionary_encode().indices.to_numpy()
    probability = table["site_probability"].to_numpy()
    order = np.lexsort((psm, run, name, form))
    starts = is_group_start(form[order], name[order], run[order], psm[order])
    match = np.cumsum(starts) - 1  # match of each row in this order
    if not len(order):
        return order
    first = order[starts]
    least = np.minimum.reduceat(probability[order], np.flatnonzero(starts))
    best = np.lexsort((np.arange(len(first)), -least, name[first], form[first]))
    chosen = best[is_group_start(form[first][best], name[first][best])]
    return np.sort(order[np.isin(match, chosen)])


def _protein_of(table: pa.Table, identified: Identified) -> NDArray[np.int64]:
    protein: NDArray[np.int64] = identified.protein[identified.forms.sequence[table["form"].to_numpy()]]
    return protein


def _positions(table: pa.Table, identified: Identified) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the position of each site in the first protein of its group, and True if the protein has the peptide.

    If a protein contains a peptide several times, the first position is used.
    """
    group_of = {accession: number for number, accession in enumerate(identified.proteins.accession)}
    lists = in_one(table["proteins"])
    text = lists.flatten().dictionary_encode()
    group = np.array([group_of.get(name, -2) for name in text.dictionary.to_pylist()], np.int64)[text.indices.to_numpy()]
    row = np.repeat(np.arange(len(table)), pa.compute.list_value_length(lists).to_numpy().astype(np.int64))
    place = in_one(table["protein_positions"]).flatten().to_numpy().astype(np.int64)
    of_first_protein = np.flatnonzero(group == _protein_of(table, identified)[row])
    result = np.full(len(table), np.iinfo(np.int64).max)
    np.minimum.at(result, row[of_first_protein], place[of_first_protein])
    is_placed = row_mask(len(table), row[of_first_protein])
    return np.where(is_placed, result, 0), is_placed


@dataclass(frozen=True)
class Sites:
    """Sites (s) and the n peptidoforms with a modification there, from a table `SITE_PEPTIDOFORMS`.

    Attributes
    ----------
    table : pyarrow.Table
        Sites: the columns of `SITE_QUANTITIES` that do not depend on the sample; s rows.
    form : ndarray of int64, shape (n,)
        Index of the peptidoform.
    site : ndarray of int64, shape (n,)
        Index of the site, ascending.
    is_modified : ndarray of bool, shape (forms,)
        True for peptidoforms with a localised modification of any probability.
    """

    table: pa.Table
    form: NDArray[np.int64]
    site: NDArray[np.int64]
    is_modified: NDArray[np.bool_]

    @classmethod
    def from_table(cls, table: pa.Table, peptides: Sequence[str], minimum_probability: float) -> Sites:
        """Collect the sites with at least `minimum_probability`.

        Parameters
        ----------
        table : pyarrow.Table
            Table `SITE_PEPTIDOFORMS`.
        peptides : sequence of str
            Peptidoforms in ProForma.
        minimum_probability : float
            Minimum probability that the modification of a peptidoform is at a site.

        Raises
        ------
        KeyError
            If the table has a peptidoform that is not in `peptides`.
        """
        number_of = {name: number for number, name in enumerate(peptides)}
        text = in_one(table["peptide"]).dictionary_encode()
        form = np.array([number_of[name] for name in text.dictionary.to_pylist()], np.int64)[text.indices.to_numpy()]
        rows = np.flatnonzero(table["site_probability"].to_numpy() >= minimum_probability)
        used = table.take(pa.array(rows))
        names = [in_one(used[name]).dictionary_encode().indices.to_numpy() for name in ("accession", "residue", "modification")]
        codes = (names[0], used["position"].to_numpy(), *names[1:])
        order = np.lexsort(codes[::-1])
        starts = is_group_start(*(code[order] for code in codes))
        first, used, form_of_row = np.flatnonzero(starts), used.take(pa.array(order)), form[rows][order]
        columns: dict[str, Any] = {name: used[name].take(pa.array(first)) for name in _KEYS}
        if len(first):
            rate = pa.compute.fill_null(used["localisation_q_value"], float("nan")).to_numpy()
            columns["site_probability"] = np.maximum.reduceat(used["site_probability"].to_numpy(), first)
            columns["localisation_q_value"] = or_null(np.fmin.reduceat(rate, first))
        else:
            columns |= {name: used[name] for name in ("site_probability", "localisation_q_value")}
        columns["n_peptidoforms"] = np.diff(np.append(first, len(used)))
        return cls(pa.table(columns), form_of_row, np.cumsum(starts) - 1, row_mask(len(peptides), form))

    def __len__(self) -> int:
        return len(self.table)


class SiteQuantities(NamedTuple):
    """Amounts of s sites in the samples, and log2 of their ratios to the proteins, (s, samples) float64, NaN if missing."""

    amounts: RawQuantities
    log2_relative: NDArray[np.float64]


def site_quantities(
    sites: Sites,
    protein: NDArray[np.int64],
    ions: RawQuantities,
    grouping: Grouping,
    parameters: QuantificationParameters,
    plexes: NDArray[np.int64] | None = None,
    scaled: Callable[[RawQuantities], RawQuantities] = lambda amounts: amounts,
    *,
    factor: NDArray[np.float64] | None = None,
    spool: Path | None = None,
) -> SiteQuantities:
    """Return the amounts of sites, and their ratios to the proteins.

    Parameters
    ----------
    sites : Sites
        Sites and their peptidoforms.
    protein : ndarray of int64, shape (sites,)
        Index of the protein of each site.
    ions : RawQuantities
        Amounts of ions; for spectral counts those of peptidoforms.
    grouping : Grouping
        Assignment of ions to peptidoforms, peptides and proteins.
    parameters : QuantificationParameters
        Parameters of the quantification.
    plexes, scaled
        Plex of each sample, and the function that scales plexes (see `proteoscope.engine.quantification.normalised.normalised_levels`).
    factor, spool
        Factor of the amounts in each sample, and folder of temporary files (see `proteoscope.engine.quantification.amounts.level_amounts`).
    """

    def combined(rows: NDArray[np.int64], groups: Grouping) -> RawQuantities:
        if parameters.method == "counts":
            return ions.summed(groups.protein[groups.sequence[groups.form]], groups.n_proteins, rows=rows, spool=spool)
        by = parameters.protein_quantity
        return scaled(protein_amounts(ions, None, groups, by, rows=rows, plexes=plexes, factor=factor, spool=spool))

    by_form = np.argsort(grouping.form, kind="stable")
    offsets = segment_offsets(np.bincount(grouping.form, minlength=len(grouping.sequence)))
    of_row, index = ranges(offsets[sites.form], offsets[sites.form + 1])
    row = np.repeat(np.arange(len(sites.form)), np.diff(of_row))
    amounts = combined(by_form[index], Grouping(row, np.arange(len(sites.form)), sites.site, len(sites)))
    unmodified = np.flatnonzero(~sites.is_modified[grouping.form])
    proteins = combined(unmodified, grouping._replace(form=grouping.form[unmodified])).log2
    relative = full_matrix(amounts.value.shape, np.nan, np.float64, spool)
    for rows in row_blocks(amounts.value, relative):
        relative[rows] = amounts.log2_of(rows) - proteins[protein[rows]]
    return SiteQuantities(amounts, relative)
