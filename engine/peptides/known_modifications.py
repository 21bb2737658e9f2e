"""Modifications that a database knows at residues of its proteins, and the same at those residues of the decoys.

Of a decoy the residues carry what they carry in its target, wherever they went. What sits on an end of a peptide goes to an end: that of
the protein stays at that end of the decoy, any other to the end that the decoy's peptide has in its place. So decoys have as many forms.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import take_runs
from proteoscope.engine.chemistry.annotated_modifications import annotated_modification
from proteoscope.engine.chemistry.modifications import SearchModification, parse_modification
from proteoscope.engine.errors import ParameterError
from proteoscope.engine.formats.features import Features, kind_code
from proteoscope.engine.peptides.decoys import decoys_of
from proteoscope.engine.peptides.digestion import Digestion
from proteoscope.engine.project.columns import open_column, read_numbers, require
from proteoscope.kernels.digestion_layouts import KnownSites

__all__ = ["MODIFICATION_KINDS", "KnownModifications", "annotated_sites", "known_modifications_of", "open_known_modifications"]

MODIFICATION_KINDS = tuple(kind_code(name) for name in ("MOD_RES", "LIPID", "CARBOHYD"))
"""Kinds of features that are modifications of residues."""
_GLYCANS = kind_code("CARBOHYD")
_MOST = 200
"""Kinds of modifications of a database, with variable ones below 255; the usual names have 122."""
_LONGEST_PEPTIDE = 63
_FILE, _COUNTS = "known_modifications.json", ("n_sites", "n_others", "n_glycans")
_SEPARATOR = "; "


@dataclass(frozen=True)
class KnownModifications:
    """Modifications at s residues of all proteins, decoys among them.

    Attributes
    ----------
    position : (s,) uint32, residues of the protein index. modification : (s,) uint8, rows of `modifications`; in order of both.
    modifications : those that occur. n_sites : annotations of the database that are searched. n_others, n_glycans : those whose mass is
        not told, and how many of them are of glycans.
    """

    position: NDArray[np.uint32]
    modification: NDArray[np.uint8]
    modifications: tuple[SearchModification, ...]
    n_sites: int = 0
    n_others: int = 0
    n_glycans: int = 0

    def message(self) -> str:
        """What is searched, and what is not, for people."""
        glycans = f" ({self.n_glycans:,} of them glycans)" if self.n_glycans else ""
        others = f"; {self.n_others:,} others have no mass that is told{glycans}" if self.n_others else ""
        return f"{self.n_sites:,} known modifications are searched at their residues besides{others}"

    def added_mass(self, digestion: Digestion) -> NDArray[np.float64]:
        """(m,) dalton, what each adds to its residue or end, in the place of what fixed modifications add there."""
        return np.array([one.mass - digestion.fixed_mass_in_place_of(one) for one in self.modifications], np.float64)

    def arrays(self, digestion: Digestion) -> KnownSites:
        """Arguments of the kernels."""
        return KnownSites(
            np.asarray(self.position),
            np.asarray(self.modification),
            np.array([one.place for one in self.modifications], np.int64),
            np.array([bool(one.residues) for one in self.modifications], np.bool_),
            self.added_mass(digestion),
        )

    def write(self, folder: Path) -> None:
        """Write them into the folder of a protein index."""
        np.save(folder / "known_position.npy", self.position)
        np.save(folder / "known_modification.npy", self.modification)
        description = {name: getattr(self, name) for name in _COUNTS} | {"modifications": _SEPARATOR.join(map(str, self.modifications))}
        (folder / _FILE).write_text(json.dumps(description), encoding="utf-8")


def open_known_modifications(folder: Path, residues: NDArray[np.uint8]) -> KnownModifications | None:
    """Those that `KnownModifications.write` wrote for proteins of these residues, looked at; None where there are none.

    Raises
    ------
    UnsoundIndexError : something in them is not as it was written.
    """
    if not (folder / _FILE).exists():
        return None
    told = read_numbers(folder / _FILE, _COUNTS, ("modifications",))
    try:
        modifications = tuple(parse_modification(text) for text in told.pop("modifications").split(_SEPARATOR))
    except ParameterError:
        modifications = ()
    position, modification = open_column(folder / "known_position.npy", np.uint32), open_column(folder / "known_modification.npy", np.uint8)
    are_some = 0 < len(modifications) <= _MOST and len(position) == len(modification) > 0
    require(are_some and modification.max() < len(modifications), f"{folder}: known modifications are none, or too many")
    order = position.astype(np.int64) << 8 | modification
    require((order[1:] > order[:-1]).all() and position[-1] < len(residues), f"{folder}: places of known modifications are none")
    return KnownModifications(position, modification, modifications, **told)


def annotated_sites(
    residues: NDArray[np.uint8], offsets: NDArray[np.int64], features: Features, is_counted: NDArray[np.bool_] | None = None
) -> KnownModifications:
    """The modifications that features of proteins name; `residues` and `offsets` (n + 1,) of these proteins.

    `is_counted`: (n,), whose annotations are counted, all where it is None: those of variants are their proteins' once more.
    """
    rows = np.flatnonzero(np.isin(features.kind, MODIFICATION_KINDS))
    owners = np.searchsorted(features.offsets, rows, side="right") - 1
    position = offsets[owners] + features.first[rows] - 1
    letters = residues[position].tobytes().decode("ascii")
    found: dict[tuple[str, str], SearchModification | None] = {}
    named: list[SearchModification | None] = []
    for key in zip(features.texts.take(rows).strings(), letters, strict=True):
        if key not in found:
            found[key] = annotated_modification(*key)
        named.append(found[key])
    is_one_residue = (features.first[rows] == features.last[rows]).tolist()
    named = [one if single else None for one, single in zip(named, is_one_residue, strict=True)]
    usual: dict[SearchModification, int] = {}
    for one in named:
        if one is not None:
            usual[one] = usual.get(one, 0) + 1
    modifications = sorted(sorted(usual, key=lambda one: (-usual[one], str(one)))[:_MOST], key=str)
    number = {one: i for i, one in enumerate(modifications)}
    numbers = np.array([-1 if one is None else number.get(one, -1) for one in named], np.int64)
    kept = numbers >= 0
    counts = np.ones(len(rows), np.bool_) if is_counted is None else is_counted[owners]
    is_other = counts & ~kept
    return _sorted(
        position[kept],
        numbers[kept],
        tuple(modifications),
        n_sites=int((counts & kept).sum()),
        n_others=int(is_other.sum()),
        n_glycans=int((is_other & (features.kind[rows] == _GLYCANS)).sum()),
    )


def _sorted(
    position: NDArray[np.int64], modification: NDArray[np.int64], modifications: tuple[SearchModification, ...], **counts: int
) -> KnownModifications:
    order = np.unique(position.astype(np.int64) << 8 | modification)
    return KnownModifications((order >> 8).astype(np.uint32), (order & 255).astype(np.uint8), modifications, **counts)


def known_modifications_of(
    residues: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    n_targets: int,
    features: Features,
    decoys: str,
    digestion: Digestion,
    is_counted: NDArray[np.bool_] | None = None,
) -> KnownModifications:
    """The modifications that features of the targets name, at their residues and at those of the decoys.

    Parameters
    ----------
    residues, offsets : of a protein index; proteins from `n_targets` on are the decoys of those before, one of each, made by the method
        `decoys` ("reverse", "pseudo-reverse", "shuffle"; with "none" there are none).
    is_counted : see `annotated_sites`.
    """
    found = annotated_sites(residues, offsets[: n_targets + 1], features, is_counted)
    if decoys == "none" or not len(found.position):
        return found
    position, cleaves = found.position.astype(np.int64), digestion.enzyme.cleavage_table()
    owner = np.searchsorted(offsets, position, side="right") - 1
    # Only proteins with such residues are looked at, since where each residue went takes eight times its room.
    proteins, of_site = np.unique(owner, return_inverse=True)
    some, some_offsets = take_runs(residues, offsets, proteins)
    decoy, origin = decoys_of(some, some_offsets, decoys, cleaves, with_origin=True)
    went = np.empty(len(some), np.int64)
    went[origin] = np.arange(len(some))
    within = position - offsets[owner]
    place = went[some_offsets[of_site] + within] - some_offsets[of_site]
    ends = np.array([one.place for one in found.modifications], np.int64)[found.modification]
    for i in np.flatnonzero(ends).tolist():
        protein = slice(some_offsets[of_site[i]], some_offsets[of_site[i] + 1])
        ends_of_peptides = _Ends(some[protein], decoy[protein], cleaves, digestion.clip_methionine)
        place[i] = ends_of_peptides.place_in_decoy(int(within[i]), int(place[i]), is_start=ends[i] % 2 == 1, is_reverse=decoys == "reverse")
    of_decoys = offsets[n_targets + owner] + place
    return _sorted(
        np.concatenate((position, of_decoys)),
        np.tile(found.modification.astype(np.int64), 2),
        found.modifications,
        n_sites=found.n_sites,
        n_others=found.n_others,
        n_glycans=found.n_glycans,
    )


@dataclass(frozen=True)
class _Ends:
    """A protein and its decoy, (length,) uint8 each, and where peptides begin and end in them."""

    target: NDArray[np.uint8]
    decoy: NDArray[np.uint8]
    cleaves: NDArray[np.bool_]
    clip_methionine: bool

    def place_in_decoy(self, at: int, mirrored: int, *, is_start: bool, is_reverse: bool) -> int:
        """Where the decoy carries on the end of a peptide what the target carries at the peptide's residue `at`, from 0, that begins or
        ends it. `mirrored` is where that residue went."""
        last = len(self.target) - 1
        if is_start and (at == 0 or (at == 1 and self._is_clipped(self.target))):
            return at if at == 0 or self._is_clipped(self.decoy) else 0
        if not is_start and at == last:
            return last
        if not is_reverse:  # peptides begin and end where those of the target do
            return at
        # Peptides of a decoy hold residues of their targets backward: the other end of the same peptide. Where the enzyme made no end of
        # the residue, it is to make none in the decoy.
        is_cut = self._cuts(self.target, at - 1 if is_start else at)
        for far in range(_LONGEST_PEPTIDE):
            place = mirrored - far if is_start else mirrored + far
            if not 0 <= place <= last:
                break
            if is_cut == (place == (0 if is_start else last) or self._cuts(self.decoy, place - 1 if is_start else place)):
                return place
        return mirrored

    def _is_clipped(self, residues: NDArray[np.uint8]) -> bool:
        return self.clip_methionine and len(residues) > 1 and residues[0] == ord("M")

    def _cuts(self, residues: NDArray[np.uint8], behind: int) -> bool:
        """Whether the enzyme cuts behind a residue."""
        return bool(self.cleaves[int(residues[behind]) - 65, int(residues[behind + 1]) - 65])
