"""Assignment of listed matches to spectra by native identifier, scan number or title, in that order.

If a file contains none of these, spectra are found by their index in the file (``index=12``, or scan numbers that count from 1), or
otherwise by retention time and m/z.
"""

from __future__ import annotations

import os
import re
from itertools import takewhile
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.formats.registry import bare_name
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.matches.match_lists.identifications import Identifications
from proteoscope.engine.spectra.columns import Spectra

__all__ = ["AMBIGUOUS", "UNKNOWN", "WAYS", "FoundSpectra", "find_spectra"]

WAYS = ("native id", "scan", "title", "place in the file", "retention time and m/z")
"""Methods of finding the spectrum of a match, in order of preference."""
UNKNOWN, AMBIGUOUS = -1, -2

_SECONDS, _THOMSON = 0.5, 0.01  # tolerances of retention time and m/z
_SCAN_OF_ID = r"(?:^|[\s_.;])scan(?:Id)?=(?P<n>\d{1,15})(?:$|[\s;])"
_INDEX_OF_ID = r"^index=(?P<n>\d{1,15})$"
_NUMBER_OF_ID = r"^(?P<n>\d{1,15})$"
_SCAN_OF_TITLE = (
    r"\.(?P<n>\d{1,15})\.\d{1,15}\.\d{1,3}(?:\.dta)?(?:\s|$)",
    r"(?i)\bscans?[=:\s]\s*(?P<n>\d{1,15})\b",
    r"^(?P<n>\d{1,15})$",
)
_ID_OF_TITLE = r'NativeID:"(?P<n>[^"]+)"'


class FoundSpectra(NamedTuple):
    """Spectra of n matches, and the method that found each spectrum.

    Attributes
    ----------
    spectrum : ndarray of int64, shape (n,)
        Index of the spectrum; `UNKNOWN` if not found, `AMBIGUOUS` if several spectra match.
    way : ndarray of int64, shape (n,)
        Method that found the spectrum, as an index into `WAYS`; -1 if no spectrum was found.
    ignores_files : bool
        True if the only given spectrum file was used although the results name another file.
    """

    spectrum: NDArray[np.int64]
    way: NDArray[np.int64]
    ignores_files: bool


def find_spectra(identifications: Identifications, spectra: Spectra) -> FoundSpectra:
    """Find the spectrum of each match."""
    n = len(identifications)
    file, ignores_files = _files(identifications.run, spectra)
    spectrum, way = np.full(n, UNKNOWN, np.int64), np.full(n, -1, np.int64)

    def settle(candidates: NDArray[np.int64], number: int) -> None:
        is_new = (way < 0) & (candidates != UNKNOWN)
        spectrum[is_new] = candidates[is_new]
        way[is_new & (candidates >= 0)] = number

    names = pa.array(spectra.identifier, pa.string())
    native = _first_text(identifications.native_id, _extracted(identifications.title, _ID_OF_TITLE))
    settle(_rows_of_texts(native, file, names, spectra), 0)
    scans = identifications.scan.copy()
    for texts, patterns in ((native, (_SCAN_OF_ID,)), (identifications.title, _SCAN_OF_TITLE)):
        for pattern in patterns:
            missing = scans < 0
            scans[missing] = _digits(texts, pattern)[missing]
    if (spectra.scan >= 0).any():
        numbers = np.where(scans >= 0, scans, _digits(native, _NUMBER_OF_ID))
        settle(_rows_of_numbers(numbers, file, spectra.scan, spectra), 1)
    titles = _first_text(identifications.title, native)
    settle(_rows_of_texts(titles, file, names, spectra), 2)
    index = np.where(identifications.index >= 0, identifications.index, _digits(native, _INDEX_OF_ID))
    settle(_rows_of_numbers(index, file, spectra.index, spectra), 3)
    settle(np.where((identifications.row >= 0) & (identifications.row < len(spectra)), identifications.row, UNKNOWN), 3)
    without_scans = np.bincount(spectra.file, spectra.scan >= 0, len(spectra.files)) == 0
    if without_scans.any():
        # Comet and other engines number the spectra of files without scan numbers from 1.
        counted = np.where(without_scans[np.maximum(file, 0)] & ((file >= 0) | (len(spectra.files) == 1)), scans - 1, -1)
        settle(_rows_of_numbers(counted, file, spectra.index, spectra), 3)
    settle(_rows_of_times(identifications, file, spectra, (way < 0) & (spectrum == UNKNOWN)), 4)
    return FoundSpectra(spectrum, way, ignores_files)


def _stem(name: str) -> str:
    """Return a file name in lower case, without folders, compression suffix and format suffix."""
    bare = bare_name(PurePosixPath(name.replace("\\", "/").strip()).name)
    bare = bare.removesuffix(".pep.xml").removesuffix(".t.xml")
    return re.sub(r"\.(mzml|mzxml|mgf|ms2|raw|d|wiff|dta|pkl|mzdata|dia|cms2|xml)$", "", bare)


def _files(run: pa.StringArray, spectra: Spectra) -> tuple[NDArray[np.int64], bool]:
    """Return the index of the spectrum file of each match, and True if the file name in the results was ignored.

    The index is -1 for a match without a file name or with an ambiguous one, and -2 if the named file is not among the given files. The
    name is ignored if only one spectrum file is given and the results name only one file, which has another name.
    """
    coded = run.dictionary_encode()
    stems: dict[str, list[tuple[int, list[str]]]] = {}
    for number, path in enumerate(spectra.files):
        stems.setdefault(_stem(path), []).append((number, _folders(os.path.normpath(Path(path).absolute()))))
    distinct = coded.dictionary.to_pylist()
    number_of = np.array([-1 if not name.strip() else _nearest(name, stems.get(_stem(name), [])) for name in distinct] or [-1], np.int64)
    ignores = len(spectra.files) == 1 and bool(len(distinct)) and not (number_of[: len(distinct)] >= 0).any()
    ignores = ignores and len({_stem(name) for name in distinct if name.strip()}) == 1
    if ignores:
        number_of[:] = 0
    codes = coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return number_of[codes] if len(codes) else codes, ignores


def _folders(path: str) -> list[str]:
    """Return the folders of a path or a file URI, innermost first."""
    return [part for part in path.replace("\\", "/").removeprefix("file:").split("/")[:-1] if part not in ("", ".", "..")][::-1]


def _nearest(name: str, files: list[tuple[int, list[str]]]) -> int:
    """Return the index of the file in `files` that has the most innermost folders in common with `name`.

    Return -1 if several files have equally many, and -2 if there are no files. A single file is returned without comparison.
    """
    if len(files) < 2:
        return files[0][0] if files else -2
    folders = _folders(name)
    shared = [
        sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(folders, folders_of_file, strict=False)))
        for _, folders_of_file in files
    ]
    most = max(shared)
    return files[shared.index(most)][0] if shared.count(most) == 1 else -1


def _first_text(first: pa.StringArray, second: pa.StringArray) -> pa.StringArray:
    return pa.compute.if_else(pa.compute.equal(first, ""), second, first)


def _extracted(texts: pa.StringArray, pattern: str) -> pa.StringArray:
    if not len(texts):
        return pa.array([], pa.string())
    return pa.compute.fill_null(pa.compute.extract_regex(texts, pattern).field("n"), "")


def _digits(texts: pa.StringArray, pattern: str) -> NDArray[np.int64]:
    """Return the number in the group ``n`` of the regular expression `pattern` for each text; -1 if the expression does not match."""
    result = _extracted(texts, pattern)
    numbers: NDArray[np.int64] = (
        pa.compute.if_else(pa.compute.equal(result, ""), pa.scalar("-1"), result)
        .cast(pa.int64())
        .to_numpy(zero_copy_only=False)
        .astype(np.int64)
    )
    return numbers


def _rows_of_texts(texts: pa.StringArray, file: NDArray[np.int64], names: pa.StringArray, spectra: Spectra) -> NDArray[np.int64]:
    """Return, for each text, the index of the spectrum whose item of `names` equals the text (see `_rows_of_numbers`)."""
    encoded = names.dictionary_encode()
    codes = (
        pa.compute.fill_null(pa.compute.index_in(texts, value_set=encoded.dictionary), -1).to_numpy(zero_copy_only=False).astype(np.int64)
    )
    codes[pa.compute.equal(texts, "").to_numpy(zero_copy_only=False)] = -1
    return _rows_of_numbers(codes, file, encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64), spectra)


def _rows_of_numbers(wanted: NDArray[np.int64], file: NDArray[np.int64], number: NDArray[np.int64], spectra: Spectra) -> NDArray[np.int64]:
    """Return, for each item of `wanted`, the index of the spectrum whose `number` is equal; `UNKNOWN` or `AMBIGUOUS` if not exactly one is.

    Only spectra in the file of the match are considered; if the file is unknown, the spectra of all files.
    """
    result = np.full(len(wanted), UNKNOWN, np.int64)
    has_number = np.flatnonzero(number >= 0)
    requested = np.flatnonzero((wanted >= 0) & (file >= -1))
    if not len(has_number) or not len(requested):
        return result
    n_files = len(spectra.files)
    for knows_file in (True, False):
        rows = requested[(file[requested] >= 0) == knows_file]
        keys = number[has_number] * (n_files if knows_file else 1) + (spectra.file[has_number] if knows_file else 0)
        order = np.argsort(keys, kind="stable")
        most = np.iinfo(np.int64).max // max(2, n_files + 1)
        requested_keys = np.minimum(wanted[rows], most - 1) * (n_files if knows_file else 1) + (file[rows] if knows_file else 0)
        first, last = (np.searchsorted(keys[order], requested_keys, side=side) for side in ("left", "right"))
        at = has_number[order[np.minimum(first, len(order) - 1)]]
        result[rows] = np.where(last == first, UNKNOWN, np.where(last - first > 1, AMBIGUOUS, at))
    return result


def _rows_of_times(
    identifications: Identifications, file: NDArray[np.int64], spectra: Spectra, is_open: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Return, for each match that does not name or number its spectrum, the index of the only spectrum that fits.

    The retention time and the precursor m/z must be known and agree with those of the spectrum. Other matches get `UNKNOWN`.
    """
    rows = np.full(len(identifications), UNKNOWN, np.int64)
    nameless = (identifications.scan < 0) & (identifications.index < 0) & (identifications.row < 0)
    for texts in (identifications.native_id, identifications.title):
        nameless &= np.array([not text for text in texts.dictionary_encode().dictionary.to_pylist()] or [True])[
            texts.dictionary_encode().indices.to_numpy(zero_copy_only=False)
        ]
    requested = np.flatnonzero(
        is_open & nameless & np.isfinite(identifications.retention_time) & np.isfinite(identifications.precursor_mz) & (file >= -1)
    )
    timed = np.flatnonzero(np.isfinite(spectra.retention_time))
    if not len(requested) or not len(timed):
        return rows
    order = timed[np.argsort(spectra.retention_time[timed], kind="stable")]
    times = spectra.retention_time[order]
    low = np.searchsorted(times, identifications.retention_time[requested] - _SECONDS, side="left")
    high = np.searchsorted(times, identifications.retention_time[requested] + _SECONDS, side="right")
    most = int((high - low).max(initial=0))
    n_fitting = np.zeros(len(requested), np.int64)
    for step in range(min(most, 200)):  # at most 200 spectra within the retention time window
        at = order[np.minimum(low + step, len(order) - 1)]
        fits = (low + step < high) & (np.abs(spectra.precursor_mz[at] - identifications.precursor_mz[requested]) <= _THOMSON)
        fits &= (file[requested] < 0) | (spectra.file[at] == file[requested])
        rows[requested[fits]] = at[fits]
        n_fitting += fits
    rows[requested[n_fitting > 1]] = AMBIGUOUS
    return rows
