"""Sites of modifications that an identification localised: the most likely sites, and alternatives of uncertain sites."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.errors import InputError
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.matches.site_columns import PSM_SITES
from proteoscope.engine.results.arrow import in_one
from proteoscope.engine.results.reader import TableFile

__all__ = ["MINIMUM_ALTERNATIVE", "LocalisedSites", "PlacedModifications"]

MINIMUM_ALTERNATIVE = 0.05
"""Minimum probability of a site that is listed as an alternative of the most likely site."""
_REMEDY = "Run the identification again"
_POSITIONS = 1 << 20  # above the length of any peptide
_COLUMNS = ("psm", "peptide", "modification", "position", "site_probability", "possible_positions", "probabilities")


class PlacedModifications(NamedTuple):
    """Modifications of peptidoforms, m in total, ordered by peptidoform (`owner`) and residue number (`position`).

    `is_alternative` is True for a possible site of a modification that is less likely than its site in the peptidoform.
    """

    owner: NDArray[np.int64]
    position: NDArray[np.int64]
    names: list[str]
    mass: NDArray[np.float64]
    probability: NDArray[np.float64]
    is_alternative: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class LocalisedSites:
    """Table of PSM sites of a run.

    Attributes
    ----------
    path : Path
        Path of the table.
    table : pyarrow.Table
        Rows of the table.
    psm : ndarray of int64, shape (rows,)
        Row of the match of each site in the table of PSMs.
    """

    path: Path
    table: pa.Table
    psm: NDArray[np.int64]

    @classmethod
    def read(cls, path: Path, n_psms: int) -> LocalisedSites:
        """Read the table of a run with `n_psms` rows in its table of PSMs.

        Raises
        ------
        InputError
            If the table is damaged.
        """
        with TableFile(path, PSM_SITES, _COLUMNS, n_rows_of={"psms": n_psms}, remedy=_REMEDY) as source:
            table = source.read(_COLUMNS)
        return cls(path, table, table["psm"].to_numpy().astype(np.int64))

    def peptides(self, psm: NDArray[np.int64], searched: pa.ChunkedArray) -> pa.Array:
        """Return the peptides of matches with their modifications at the most likely sites.

        Parameters
        ----------
        psm : ndarray of int64, shape (n,)
            Rows of the matches in the table of PSMs.
        searched : pyarrow.ChunkedArray, length n
            Peptides of the search, which are returned for matches without localised sites.
        """
        localised_psms, first = np.unique(self.psm, return_index=True)
        searched = in_one(searched).cast("string")
        if not len(localised_psms):
            return searched
        at = np.minimum(np.searchsorted(localised_psms, psm), len(localised_psms) - 1)
        moved = in_one(self.table["peptide"]).cast("string").take(pa.array(first[at]))
        return pa.compute.if_else(pa.array(localised_psms[at] == psm), moved, searched)

    def place(
        self,
        psm: NDArray[np.int64],
        form: NDArray[np.int64],
        owner: NDArray[np.int64],
        position: NDArray[np.int64],
        names: list[str],
        mass: NDArray[np.float64],
    ) -> PlacedModifications:
        """Return the modifications of peptidoforms at their most likely sites, and the alternative sites.

        A less likely site is an alternative if its probability is at least `MINIMUM_ALTERNATIVE` in each match of the peptidoform.

        Parameters
        ----------
        psm, form : ndarray of int64, shape (n,)
            Row in the table of PSMs, ascending, and peptidoform of each match.
        owner, position : ndarray of int64, shape (m,)
            Peptidoform and residue number of each modification as the search reported it; `owner` is ascending.
        names : list of str, length m
            Names of the modifications.
        mass : ndarray of float64, shape (m,)
            Masses of the modifications.

        Raises
        ------
        InputError
            If the table has a site of a modification that the match does not have.
        """
        at = np.searchsorted(psm, self.psm)
        rows = np.flatnonzero(np.append(psm, -1)[at] == self.psm)
        table, of_site = self.table.take(pa.array(rows)), form[at[rows]]
        modification_name = table["modification"].to_pylist()
        distinct, code = np.unique(np.array([*names, *modification_name], np.str_), return_inverse=True)
        code, n = code.astype(np.int64).reshape(-1), max(len(distinct), 1)
        carried, group = owner * n + code[: len(names)], of_site * n + code[len(names) :]
        groups, first = np.unique(carried, return_index=True)
        if not np.isin(group, groups).all():
            reason = "has a site of a modification that the match does not have"
            raise InputError(self.path, reason, place="column modification", remedy=_REMEDY)
        chosen, best = _extreme(group, table["position"].to_numpy(), table["site_probability"].to_numpy(), np.fmax)
        lengths = pa.compute.list_value_length(table["possible_positions"]).to_numpy().astype(np.int64)
        listed, probabilities = (
            in_one(pa.compute.list_flatten(table[name])).to_numpy() for name in ("possible_positions", "probabilities")
        )
        possible, least = _extreme(np.repeat(group, lengths), listed, probabilities, np.fmin)
        others = np.flatnonzero((least >= MINIMUM_ALTERNATIVE) & ~np.isin(possible, chosen))
        moved = np.concatenate((chosen, possible[others]))
        # A modification that is not at a possible site is immovable, such as a fixed modification of the same name.
        is_movable = np.isin(carried, group) & np.isin(carried * _POSITIONS + position, possible)
        of_moved, immovable = moved // _POSITIONS, np.flatnonzero(~is_movable)
        source = np.concatenate((immovable, first[np.searchsorted(groups, of_moved)]))
        owners = np.concatenate((owner[immovable], of_moved // n))
        positions = np.concatenate((position[immovable], moved % _POSITIONS))
        probability = np.concatenate((np.full(len(immovable), np.nan), best, least[others]))
        is_alternative = np.arange(len(source)) >= len(immovable) + len(chosen)
        order = np.lexsort((positions, owners))
        taken = source[order].tolist()
        return PlacedModifications(
            owners[order], positions[order], [names[row] for row in taken], mass[source[order]], probability[order], is_alternative[order]
        )


def _extreme(
    group: NDArray[np.int64], position: NDArray[np.integer], probability: NDArray[np.float64], chosen: np.ufunc
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the distinct sites (group * `_POSITIONS` + position), and the highest or lowest probability of each site.

    `chosen` is ``np.fmax`` or ``np.fmin``.
    """
    keys, at = np.unique(group * _POSITIONS + np.maximum(position.astype(np.int64), 0), return_inverse=True)
    result = np.full(len(keys), np.nan)
    chosen.at(result, at.reshape(-1), probability)
    return keys, result
