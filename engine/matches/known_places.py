"""Which modifications of matches sit where a database knows them, and where in its proteins that is."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import offsets_of, ranges
from proteoscope.engine.chemistry.modifications import SearchModification
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.matches.psms import Psms
from proteoscope.engine.peptides.known_modifications import KnownModifications
from proteoscope.engine.peptides.protein_index import ProteinIndex

__all__ = ["known_places"]

_SAME_MASS = 1e-4  # dalton


def known_places(psms: Psms, proteins: ProteinIndex, known: KnownModifications) -> pa.ListArray:
    """Of each of n matches its modifications that the database knows at that residue, as ``accession:S15 Phospho``, for each place of the
    peptide that knows them; whether a variable modification put them there or they were searched at that residue alone. Residues of a
    variant are numbered as in the whole protein that is changed."""
    sites = known.position.astype(np.int64) << 8 | known.modification
    row_of_modification = np.repeat(np.arange(len(psms)), np.diff(psms.modification_offsets))
    within = np.clip(psms.modification_site - 1, 0, psms.length[row_of_modification] - 1)
    found: list[NDArray[np.int64]] = [np.zeros((0, 4), np.int64)]
    for number, modification in enumerate(psms.modifications):
        same = [i for i, one in enumerate(known.modifications) if _is_same(one, modification)]
        chosen = np.flatnonzero(psms.modification == number) if same else np.zeros(0, np.int64)
        rows = row_of_modification[chosen]
        offsets, index = ranges(psms.occurrence_offsets[rows], psms.occurrence_offsets[rows + 1])
        row, site = (np.repeat(column, np.diff(offsets)) for column in (rows, within[chosen]))
        position = psms.occurrences[index] + site
        for kind in same:
            key = position << 8 | kind
            place = np.minimum(np.searchsorted(sites, key), len(sites) - 1)
            is_known = sites[place] == key
            columns = row, site, position, np.full(len(row), kind)
            found.append(np.column_stack(columns)[is_known])
    table = np.unique(np.concatenate(found), axis=0)
    row, _, position, kind = table.T
    protein = proteins.protein_of(position)
    numbers = (position - proteins.proteins.offsets[protein] + proteins.first_in_whole()[protein] + 1).tolist()
    letters = np.asarray(proteins.proteins.residues)[position].tobytes().decode("ascii")
    accessions = {one: proteins.proteins.accession(one) for one in np.unique(protein).tolist()}
    texts = [
        f"{accessions[one]}:{letter}{residue} {known.modifications[which].name}"
        for one, letter, residue, which in zip(protein.tolist(), letters, numbers, kind.tolist(), strict=True)
    ]
    return pa.ListArray.from_arrays(pa.array(offsets_of(np.bincount(row, minlength=len(psms))), pa.int32()), pa.array(texts, pa.string()))


def _is_same(one: SearchModification, other: SearchModification) -> bool:
    """Whether modifications weigh the same, and sit on the same end or on no end."""
    ends = [modification.position[-6:] for modification in (one, other)]
    return abs(one.mass - other.mass) < _SAME_MASS and ends[0] == ends[1]
