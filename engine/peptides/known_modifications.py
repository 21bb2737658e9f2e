"""Modifications that a database annotates at residues of its proteins, and the corresponding modifications of decoys.

Residues of a decoy have the modifications of the corresponding residues of its target. Modifications of a terminus stay at a terminus: a
modification of a protein terminus is at the same terminus of the decoy, and a modification of a peptide terminus at the corresponding
terminus of the decoy's peptide. Decoys therefore have as many forms as targets.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import take_segments
from proteoscope.engine.chemistry.modifications import SearchModification, annotated_modification, parse_modification
from proteoscope.engine.errors import ParameterError
from proteoscope.engine.formats.features import Features, kind_code
from proteoscope.engine.peptides.database_decoys import make_decoys
from proteoscope.engine.peptides.digestion import Digestion
from proteoscope.engine.project.index_store import open_column, read_numbers, require
from proteoscope.kernels.digestion_layouts import KnownSites

__all__ = ["MODIFICATION_KINDS", "KnownModifications", "annotated_sites", "find_known_modifications", "open_known_modifications"]

MODIFICATION_KINDS = tuple(kind_code(name) for name in ("MOD_RES", "LIPID", "CARBOHYD"))
"""Kinds of features that are modifications of residues, as indices in `FEATURE_KINDS`."""
_GLYCANS = kind_code("CARBOHYD")
_MAXIMUM_KINDS = 200
"""Maximum number of distinct modifications of a database, so that they and variable modifications fit below 255; usual names give 122."""
_LONGEST_PEPTIDE = 63
_FILE, _COUNTS = "known_modifications.json", ("n_sites", "n_others", "n_glycans")
_SEPARATOR = "; "


@dataclass(frozen=True)
class KnownModifications:
    """Known modifications (s) of residues of all proteins, including decoys, sorted by position, then by modification.

    Attributes
    ----------
    position : ndarray of uint32, shape (s,)
        Positions of the modified residues in the protein index.
    modification : ndarray of uint8, shape (s,)
        Index of each modification in `modifications`.
    modifications : tuple of SearchModification
        Distinct modifications, m of them.
    n_sites : int
        Number of annotations in the database that have a known mass and are searched.
    n_others, n_glycans : int
        Number of annotations in the database without a known mass, and number of glycans among these.
    """

    position: NDArray[np.uint32]
    modification: NDArray[np.uint8]
    modifications: tuple[SearchModification, ...]
    n_sites: int = 0
    n_others: int = 0
    n_glycans: int = 0

    def message(self) -> str:
        """Return a message with the numbers of annotations that are searched, and of annotations without a known mass."""
        glycans = f" ({self.n_glycans:,} of them glycans)" if self.n_glycans else ""
        others = f"; {self.n_others:,} others have no known mass{glycans}" if self.n_others else ""
        return f"{self.n_sites:,} known modifications are searched at their residues in addition{others}"

    def added_mass(self, digestion: Digestion) -> NDArray[np.float64]:
        """Return the mass of each modification minus the mass of the fixed modifications that it replaces, in dalton, shape (m,)."""
        return np.array([each.mass - digestion.replaced_fixed_mass(each) for each in self.modifications], np.float64)

    def arrays(self, digestion: Digestion) -> KnownSites:
        """Return the modified sites as an argument of kernels."""
        return KnownSites(
            np.asarray(self.position),
            np.asarray(self.modification),
            np.array([modification.place for modification in self.modifications], np.int64),
            np.array([bool(modification.residues) for modification in self.modifications], np.bool_),
            self.added_mass(digestion),
        )

    def write(self, folder: Path) -> None:
        """Write the modifications into the folder of a protein index."""
        np.save(folder / "known_position.npy", self.position)
        np.save(folder / "known_modification.npy", self.modification)
        description = {name: getattr(self, name) for name in _COUNTS} | {"modifications": _SEPARATOR.join(map(str, self.modifications))}
        (folder / _FILE).write_text(json.dumps(description), encoding="utf-8")


def open_known_modifications(folder: Path, residues: NDArray[np.uint8]) -> KnownModifications | None:
    """Open and check the modifications that `KnownModifications.write` wrote.

    Parameters
    ----------
    folder : Path
        Folder of the protein index.
    residues : ndarray of uint8, shape (total,)
        Residues of the protein index.

    Returns
    -------
    KnownModifications or None
        Modifications; None if the index has none.

    Raises
    ------
    InvalidIndexError
        If the columns are damaged.
    """
    if not (folder / _FILE).exists():
        return None
    counts = read_numbers(folder / _FILE, _COUNTS, ("modifications",))
    try:
        modifications = tuple(parse_modification(text) for text in counts.pop("modifications").split(_SEPARATOR))
    except ParameterError:
        modifications = ()
    position, modification = open_column(folder / "known_position.npy", np.uint32), open_column(folder / "known_modification.npy", np.uint8)
    has_modifications = 0 < len(modifications) <= _MAXIMUM_KINDS and len(position) == len(modification) > 0
    require(has_modifications and modification.max() < len(modifications), f"{folder}: there are no known modifications, or too many")
    order = position.astype(np.int64) << 8 | modification
    require(
        (order[1:] > order[:-1]).all() and position[-1] < len(residues),
        f"{folder}: positions of known modifications are not ascending, or out of bounds",
    )
    return KnownModifications(position, modification, modifications, **counts)


def annotated_sites(
    residues: NDArray[np.uint8], offsets: NDArray[np.int64], features: Features, is_counted: NDArray[np.bool_] | None = None
) -> KnownModifications:
    """Return the annotated modifications of proteins.

    Parameters
    ----------
    residues : ndarray of uint8, shape (total,)
        Residues of all proteins in ASCII capitals.
    offsets : ndarray of int64, shape (n + 1,)
        Protein i is ``residues[offsets[i]:offsets[i + 1]]``.
    features : Features
        Features of the n proteins.
    is_counted : ndarray of bool, shape (n,), optional
        True for proteins whose annotations are included in the counts, by default all. Variants should be excluded, since their annotations
        repeat the annotations of their proteins.

    Returns
    -------
    KnownModifications
        Modifications with a known mass.
    """
    rows = np.flatnonzero(np.isin(features.kind, MODIFICATION_KINDS))
    owners = np.searchsorted(features.offsets, rows, side="right") - 1
    position = offsets[owners] + features.first[rows] - 1
    residue_names = residues[position].tobytes().decode("ascii")
    by_note: dict[tuple[str, str], SearchModification | None] = {}
    named: list[SearchModification | None] = []
    for key in zip(features.texts.take(rows).strings(), residue_names, strict=True):
        if key not in by_note:
            by_note[key] = annotated_modification(*key)
        named.append(by_note[key])
    is_one_residue = (features.first[rows] == features.last[rows]).tolist()
    named = [modification if single else None for modification, single in zip(named, is_one_residue, strict=True)]
    frequency: dict[SearchModification, int] = {}
    for modification in named:
        if modification is not None:
            frequency[modification] = frequency.get(modification, 0) + 1
    by_frequency = sorted(frequency, key=lambda modification: (-frequency[modification], str(modification)))
    modifications = sorted(by_frequency[:_MAXIMUM_KINDS], key=str)
    number = {modification: i for i, modification in enumerate(modifications)}
    numbers = np.array([-1 if modification is None else number.get(modification, -1) for modification in named], np.int64)
    is_searched = numbers >= 0
    counts = np.ones(len(rows), np.bool_) if is_counted is None else is_counted[owners]
    is_unsearched = counts & ~is_searched
    return _sorted(
        position[is_searched],
        numbers[is_searched],
        tuple(modifications),
        n_sites=int((counts & is_searched).sum()),
        n_others=int(is_unsearched.sum()),
        n_glycans=int((is_unsearched & (features.kind[rows] == _GLYCANS)).sum()),
    )


def _sorted(
    position: NDArray[np.int64], modification: NDArray[np.int64], modifications: tuple[SearchModification, ...], **counts: int
) -> KnownModifications:
    order = np.unique(position.astype(np.int64) << 8 | modification)
    return KnownModifications((order >> 8).astype(np.uint32), (order & 255).astype(np.uint8), modifications, **counts)


def find_known_modifications(
    residues: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    n_targets: int,
    features: Features,
    decoys: str,
    digestion: Digestion,
    is_counted: NDArray[np.bool_] | None = None,
) -> KnownModifications:
    """Return the annotated modifications of the targets, and the corresponding modifications of the decoys.

    Parameters
    ----------
    residues, offsets : ndarray
        Residues and offsets of a protein index.
    n_targets : int
        Number of targets, n; unless `decoys` is ``none``, each has a decoy, in the same order after the targets.
    features : Features
        Features of the targets.
    decoys : str
        ``reverse``, ``pseudo-reverse``, ``shuffle`` or ``none``.
    digestion : Digestion
        Digestion of the proteins.
    is_counted : ndarray of bool, shape (n,), optional
        See `annotated_sites`.

    Returns
    -------
    KnownModifications
        Modifications of targets and decoys.
    """
    sites = annotated_sites(residues, offsets[: n_targets + 1], features, is_counted)
    if decoys == "none" or not len(sites.position):
        return sites
    position, cleaves = sites.position.astype(np.int64), digestion.enzyme.cleavage_table()
    owner = np.searchsorted(offsets, position, side="right") - 1
    # Process only proteins with modifications: the destinations of residues take eight times the memory of the residues.
    proteins, site_protein = np.unique(owner, return_inverse=True)
    target, target_offsets = take_segments(residues, offsets, proteins)
    decoy, origin = make_decoys(target, target_offsets, decoys, cleaves, with_origin=True)
    destination = np.empty(len(target), np.int64)
    destination[origin] = np.arange(len(target))
    within = position - offsets[owner]
    index = destination[target_offsets[site_protein] + within] - target_offsets[site_protein]
    ends = np.array([modification.place for modification in sites.modifications], np.int64)[sites.modification]
    for i in np.flatnonzero(ends).tolist():
        protein = slice(target_offsets[site_protein[i]], target_offsets[site_protein[i] + 1])
        ends_of_peptides = _Ends(target[protein], decoy[protein], cleaves, digestion.clip_methionine)
        index[i] = ends_of_peptides.place_in_decoy(int(within[i]), int(index[i]), is_start=ends[i] % 2 == 1, is_reverse=decoys == "reverse")
    decoy_position = offsets[n_targets + owner] + index
    return _sorted(
        np.concatenate((position, decoy_position)),
        np.tile(sites.modification.astype(np.int64), 2),
        sites.modifications,
        n_sites=sites.n_sites,
        n_others=sites.n_others,
        n_glycans=sites.n_glycans,
    )


@dataclass(frozen=True)
class _Ends:
    """Positions of the ends of peptides in a protein and its decoy.

    Attributes
    ----------
    target, decoy : ndarray of uint8, shape (length,)
        Residues of the protein and of its decoy.
    cleaves : ndarray of bool, shape (26, 26)
        True for bonds that the enzyme cuts, by the residues before and after the bond.
    clip_methionine : bool
        True if proteins are digested also without their initial methionine.
    """

    target: NDArray[np.uint8]
    decoy: NDArray[np.uint8]
    cleaves: NDArray[np.bool_]
    clip_methionine: bool

    def place_in_decoy(self, at: int, mirrored: int, *, is_start: bool, is_reverse: bool) -> int:
        """Return the index of the decoy residue that gets the modification of a peptide terminus in the target.

        Parameters
        ----------
        at : int
            First or last residue of the peptide in the target, from 0.
        mirrored : int
            Position of the same residue in the decoy.
        is_start : bool
            True for the N-terminus of the peptide.
        is_reverse : bool
            True if the decoy is the whole target reversed; its peptides then end elsewhere than the peptides of the target.
        """
        last = len(self.target) - 1
        if is_start and (at == 0 or (at == 1 and self._is_clipped(self.target))):
            return at if at == 0 or self._is_clipped(self.decoy) else 0
        if not is_start and at == last:
            return last
        if not is_reverse:  # peptides of the decoy have the same ends as peptides of the target
            return at
        # In a reversed decoy, peptides are reversed too: use the other end of the same peptide. The enzyme must cut at the residue in the
        # decoy if, and only if, it cuts at the residue in the target.
        is_cut = self._cuts(self.target, at - 1 if is_start else at)
        for distance in range(_LONGEST_PEPTIDE):
            position = mirrored - distance if is_start else mirrored + distance
            if not 0 <= position <= last:
                break
            if is_cut == (position == (0 if is_start else last) or self._cuts(self.decoy, position - 1 if is_start else position)):
                return position
        return mirrored

    def _is_clipped(self, residues: NDArray[np.uint8]) -> bool:
        return self.clip_methionine and len(residues) > 1 and residues[0] == ord("M")

    def _cuts(self, residues: NDArray[np.uint8], at: int) -> bool:
        """Return True if the enzyme cuts after the residue at an index."""
        return bool(self.cleaves[int(residues[at]) - 65, int(residues[at + 1]) - 65])
