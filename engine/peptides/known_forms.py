"""Peptides with known modifications ("forms") as further entries of the peptide dictionary.

The entry of a form has the positions of its peptide and another mass. A search treats a form like any other peptide, so that spectra are
not compared with combinations of modifications that no protein is known to have.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import take_segments
from proteoscope.engine.chemistry.modifications import SearchModification, names_digest
from proteoscope.engine.execution.resources import Resources, run_on_threads
from proteoscope.engine.peptides.digestion import Digestion
from proteoscope.engine.peptides.protein_index import ProteinIndex
from proteoscope.engine.project.index_store import open_column, read_numbers, require
from proteoscope.kernels.cpu.known_forms import list_known_forms
from proteoscope.kernels.device import even_partitions
from proteoscope.kernels.digestion_layouts import DICTIONARY_TYPES, FormSources, KnownFormRules, KnownForms, PeptideDictionary

__all__ = ["ArrayFile", "FormColumns", "SearchedForms", "merge_known_forms", "open_form_columns"]

_HEADER_BYTES = 128


class ArrayFile:
    """Writer of a .npy file with a one-dimensional array whose length is not known in advance.

    Parameters
    ----------
    path : Path
        File to write; complete after the end of the `with` block.
    dtype : type
        Type of the values.

    Attributes
    ----------
    length : int
        Number of values written.
    """

    def __init__(self, path: Path, dtype: type) -> None:
        self._file = path.open("wb")
        self._dtype = np.dtype(dtype)
        self._file.write(bytes(_HEADER_BYTES))
        self.length = 0

    def append(self, values: NDArray[np.generic]) -> None:
        """Append values to the array in the file."""
        np.ascontiguousarray(values, self._dtype).tofile(self._file)
        self.length += len(values)

    def __enter__(self) -> ArrayFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        text = repr({"descr": self._dtype.str, "fortran_order": False, "shape": (self.length,)})
        header = b"\x93NUMPY\x01\x00" + (_HEADER_BYTES - 10).to_bytes(2, "little") + text.ljust(_HEADER_BYTES - 11).encode() + b"\n"
        with self._file:
            self._file.seek(0)
            self._file.write(header)


_RULES = 1
"""Version of the rules of this module and of `known_modifications`, for cache keys; must be increased if changed rules give other forms."""
_FILE, _MOST = "known_forms.json", "maximum_modifications"
_SITE_COLUMNS = ("known_site", "known_modification")
_BYTES_PER_ENTRY = 100  # while a mass range is sorted and merged: its columns twice, and the order
_PARTITIONS_OF_THREAD = 16
_NONE = 255


@dataclass(frozen=True)
class SearchedForms:
    """Settings of forms with known modifications.

    Attributes
    ----------
    variable : tuple of SearchModification
        Variable modifications of the search.
    maximum_modifications : int
        Maximum number of modifications of a peptide.
    maximum_forms : int
        Maximum number of forms of a peptide.
    """

    variable: tuple[SearchModification, ...]
    maximum_modifications: int
    maximum_forms: int

    def content(self) -> dict[str, Any]:
        """Return all settings that determine the forms, for cache keys."""
        return {
            "rules": _RULES,
            "names": names_digest(),
            "variable": [[variable.added_mass, variable.residue_mask, variable.place] for variable in self.variable],
            "most": [self.maximum_modifications, self.maximum_forms],
        }

    def rules(self) -> KnownFormRules:
        """Return the settings as an argument of kernels."""
        return KnownFormRules(
            self.maximum_modifications,
            self.maximum_forms,
            np.array([variable.added_mass for variable in self.variable], np.float64),
            np.array([variable.residue_mask for variable in self.variable], np.uint32),
            np.array([variable.place for variable in self.variable], np.int64),
        )


class FormColumns(NamedTuple):
    """Columns of a dictionary with n entries that identify the forms with known modifications, and contain their modifications.

    The columns are as in `proteoscope.kernels.layouts.PeptideArrays`, except that modifications are indices of known modifications.
    All columns are empty in a dictionary without forms.

    Attributes
    ----------
    form : ndarray of uint32, shape (n,)
        Row of each entry in `site` and `modification`; 0 for entries without known modifications.
    site : ndarray of uint8, shape (forms + 1, maximum modifications)
        Sites of the modifications in the peptide; 255 in unused columns.
    modification : ndarray of uint8, shape (forms + 1, maximum modifications)
        Indices of the modifications; 255 in unused columns.
    """

    form: NDArray[np.uint32]
    site: NDArray[np.uint8]
    modification: NDArray[np.uint8]

    @classmethod
    def none(cls) -> FormColumns:
        """Return the columns of a dictionary without forms."""
        return cls(np.empty(0, np.uint32), np.empty((0, 0), np.uint8), np.empty((0, 0), np.uint8))


def merge_known_forms(
    folder: Path,
    peptides: PeptideDictionary,
    proteins: ProteinIndex,
    digestion: Digestion,
    forms: SearchedForms,
    resources: Resources,
    memory_bytes: int,
) -> None:
    """Write the columns of the peptides and their forms, sorted by mass, into `folder`.

    Parameters
    ----------
    folder : Path
        Output folder.
    peptides : PeptideDictionary
        Dictionary of n peptides, with `pointer` of shape (n + 1,).
    proteins : ProteinIndex
        Proteins with known modifications.
    digestion : Digestion
        Digestion of the proteins.
    forms : SearchedForms
        Settings of the forms.
    resources : Resources
        Threads and progress.
    memory_bytes : int
        Approximate memory limit; larger dictionaries are merged one mass range after another.
    """
    listing = _Listing(peptides, proteins, digestion, forms, resources)
    progress = resources.progress
    progress.stage("Listing forms with known modifications")
    listing.count()
    progress.stage("Merging forms with known modifications", len(peptides.mass))
    most, n_forms = forms.maximum_modifications, 0
    with ExitStack() as stack:
        types = DICTIONARY_TYPES | {"known": np.uint32} | dict.fromkeys(_SITE_COLUMNS, np.uint8)
        files = {name: stack.enter_context(ArrayFile(folder / f"peptide_{name}.npy", kind)) for name, kind in types.items()}
        for name in _SITE_COLUMNS:
            files[name].append(np.full(most, _NONE, np.uint8))
        for low, high in listing.parts(max(1, memory_bytes // _BYTES_PER_ENTRY)):
            first, last = np.searchsorted(peptides.mass, (low, high)).tolist()
            new_forms = listing.forms(low, high)
            progress.check()
            mass = np.concatenate((peptides.mass[first:last], new_forms.mass))
            order = np.argsort(mass, kind="stable")  # a peptide precedes forms of equal mass
            entry = np.concatenate((np.arange(first, last), new_forms.peptide))[order]
            is_form = order >= last - first
            occurrence, offsets = take_segments(peptides.occurrence, peptides.pointer, entry)
            form = np.zeros(len(entry), np.uint32)
            form[is_form] = n_forms + 1 + np.arange(len(new_forms.mass))
            row_of_form = order[is_form] - (last - first)
            files["mass"].append(mass[order])
            for name in ("position", "length", "flags", "letters"):
                files[name].append(getattr(peptides, name)[entry])
            files["pointer"].append(files["occurrence"].length + offsets[:-1])
            files["occurrence"].append(occurrence)
            files["known"].append(form)
            files["known_site"].append(new_forms.site[row_of_form].ravel())
            files["known_modification"].append(new_forms.modification[row_of_form].ravel())
            n_forms += len(new_forms.mass)
            progress.advance(last - first)
        files["pointer"].append(np.array([files["occurrence"].length]))
    (folder / _FILE).write_text(json.dumps({_MOST: most}), encoding="utf-8")


class _Listing:
    """Forms of the peptides of a dictionary. `count` counts them by mass; `forms` then lists the forms in a mass range."""

    def __init__(
        self, peptides: PeptideDictionary, proteins: ProteinIndex, digestion: Digestion, forms: SearchedForms, resources: Resources
    ) -> None:
        assert proteins.known_modifications is not None
        n = len(peptides.mass)
        self._sources = FormSources(
            peptides,
            np.asarray(proteins.proteins.residues),
            proteins.first_decoy_residue,
            proteins.known_modifications.arrays(digestion),
            forms.rules(),
        )
        self._peptides, self._most, self._resources = peptides, forms.maximum_modifications, resources
        self._partitions = even_partitions(n, _PARTITIONS_OF_THREAD * resources.threads)
        heaviest = float(peptides.mass[-1]) + forms.maximum_modifications * float(
            proteins.known_modifications.added_mass(digestion).max(initial=0.0)
        )
        self._counts = np.zeros((len(self._partitions), int(max(heaviest, 0.0)) + 2), np.int64)

    def count(self) -> None:
        """Count the forms with masses in each interval of one dalton."""
        nothing = KnownForms.empty(0, self._most)

        def count(number: int) -> None:
            part = self._partitions[number]
            list_known_forms(self._sources, part.first, part.last, -np.inf, np.inf, self._counts[number], False, 0, nothing)

        self._on_threads(count)

    def parts(self, limit: int) -> Iterator[tuple[float, float]]:
        """Yield consecutive mass ranges, in whole dalton, with at most `limit` peptides and forms each, or more in a range of 1 Da."""
        n_buckets = self._counts.shape[1]
        borders = np.arange(1, n_buckets)
        before = np.searchsorted(self._peptides.mass, borders) + np.cumsum(self._counts.sum(axis=0))[:-1]
        low, done = 0, 0
        while low < n_buckets:
            high = max(low + 1, int(np.searchsorted(before, done + limit, side="right")))
            is_last = high >= len(before) + 1
            yield (-np.inf if low == 0 else float(low)), (np.inf if is_last else float(high))
            if is_last:
                return
            low, done = high, int(before[high - 1])

    def forms(self, low: float, high: float) -> KnownForms:
        """Return the forms with masses from `low` to below `high` (whole numbers of dalton, or infinite), in the order of the peptides."""
        first = 0 if low == -np.inf else int(low)
        last = self._counts.shape[1] if high == np.inf else int(high)
        ends = np.concatenate(([0], np.cumsum(self._counts[:, first:last].sum(axis=1))))
        new_forms, ignored = KnownForms.empty(int(ends[-1]), self._most), np.zeros((len(self._partitions), 1), np.int64)

        def fill(number: int) -> None:
            part = self._partitions[number]
            list_known_forms(self._sources, part.first, part.last, low, high, ignored[number], True, int(ends[number]), new_forms)

        self._on_threads(fill)
        return new_forms

    def _on_threads(self, work: Any) -> None:
        resources = self._resources
        run_on_threads(work, range(len(self._partitions)), resources.threads, resources.progress, steps=lambda _: 0)


def open_form_columns(folder: Path, lengths: NDArray[np.uint8], n_modifications: int) -> FormColumns:
    """Open and check the columns that `merge_known_forms` wrote.

    Parameters
    ----------
    folder : Path
        Folder of the index.
    lengths : ndarray of uint8, shape (n,)
        Lengths of the entries in residues.
    n_modifications : int
        Number of known modifications of the proteins.

    Returns
    -------
    FormColumns
        Columns; empty if there are none.

    Raises
    ------
    InvalidIndexError
        If the columns are damaged.
    """
    if not (folder / _FILE).exists():
        return FormColumns.none()
    most = read_numbers(folder / _FILE, (_MOST,))[_MOST]
    require(0 < most <= 8, f"{folder}: forms carry too many modifications")
    form = open_column(folder / "peptide_known.npy", np.uint32)
    site, modification = (open_column(folder / f"peptide_{name}.npy", np.uint8) for name in _SITE_COLUMNS)
    rows = len(site) // most
    are_as_long = len(form) == len(lengths) and len(site) == len(modification) == rows * most > 0
    require(are_as_long and form.max(initial=0) < rows, f"{folder}: columns of forms have different lengths")
    site, modification = site.reshape(rows, most), modification.reshape(rows, most)
    is_empty = modification == _NONE
    entries = np.flatnonzero(form)
    row = form[entries]
    # Modifications fill each row from its first column; only row 0 has none.
    is_filled = ~is_empty[1:, 0].any() if rows > 1 else True
    is_valid = (
        is_empty[0].all()
        and is_filled
        and (is_empty[:, 1:] >= is_empty[:, :-1]).all()
        and (modification[~is_empty] < n_modifications).all()
        and (site[is_empty] == _NONE).all()
        and ((site[row] <= lengths[entries, None] + 1) | is_empty[row]).all()
    )
    require(bool(is_valid), f"{folder}: a form has a modification unknown to its proteins, or outside its residues")
    return FormColumns(form, site, modification)
