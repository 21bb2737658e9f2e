"""Reading of result files with the reader of their detected format."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine import imported
from proteoscope.engine.errors import InputError, shortened
from proteoscope.engine.escaped_names import ESCAPES, escape_column, escape_names, warn_escaped_names
from proteoscope.engine.formats.recognition import recognise_as
from proteoscope.engine.formats.sources import ByteSource
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.matches.match_lists.identifications import Identifications, joined

__all__ = ["READERS", "describe_unread", "read_identifications"]

READERS: Mapping[str, Callable[[], Callable[[ByteSource, Progress], Identifications]]] = {
    "mzIdentML": lambda: imported.mzidentml.read_mzidentml,
    "pepXML": lambda: imported.pepxml.read_pepxml,
    "X!Tandem XML": lambda: imported.xtandem.read_xtandem,
    "idXML": lambda: imported.idxml.read_idxml,
    "mzTab": lambda: imported.table_formats.read_mztab,
    "Comet text": lambda: imported.table_formats.read_comet,
    "Percolator or mokapot": lambda: imported.table_formats.read_percolator,
    "Crux Percolator": lambda: imported.table_formats.read_crux,
    "Sage": lambda: imported.table_formats.read_sage,
    "MSFragger": lambda: imported.table_formats.read_msfragger,
    "MaxQuant msms.txt": lambda: imported.table_formats.read_maxquant,
    "DIA-NN report": lambda: imported.table_formats.read_dia_nn,
    "DIA-NN Parquet report": lambda: imported.table_formats.read_dia_nn_parquet,
    "PeptideShaker report": lambda: imported.table_formats.read_peptideshaker,
}
"""Function that imports and returns the reader of each format, by name of the format in the registry."""

_MAXIMUM_PLACES = 3
_LARGEST_SCORE = 1e30
_LARGEST_NUMBER = 1e9
"""Maximum value of times (s), m/z (Th) and masses (Da)."""


def read_identifications(paths: Sequence[str | Path], progress: Progress | None = None) -> Identifications:
    """Read the matches of result files of one format, in order.

    Raises
    ------
    InputError
        If a file is missing, malformed, not a result file, without readable matches, or in a format that differs from the first file.
    Cancelled
        If the user cancelled.
    """
    progress = progress or Progress()
    parts: list[Identifications] = []
    for path in paths:
        with ByteSource(path) as source:
            written_as = recognise_as(source, "identifications")
            if parts and parts[0].format != written_as.name:
                raise InputError(
                    path,
                    f"is {written_as.name}, but {parts[0].files[0].name} is {parts[0].format}: their scores cannot be compared",
                    remedy="Import each file separately; one project can contain both",
                )
            progress.stage(f"Reading {Path(path).name}", source.size)
            result = READERS[written_as.name]()(source, progress)
        if not len(result):
            raise _nothing_read(result)
        parts.append(_escape_names(_limit_numbers(result), progress))
    return joined(parts)


def _escape_names(identifications: Identifications, progress: Progress) -> Identifications:
    """Return the identifications with unprintable characters in names escaped, and warn about these names.

    Raises
    ------
    InputError
        If two accessions would become equal.
    """
    accessions, n = escape_names(identifications.accessions)
    texts = {name: escape_column(getattr(identifications, name)) for name in ("run", "native_id", "title")}
    n_escaped = n + sum(of_texts for _, of_texts in texts.values())
    if not n_escaped:
        return identifications
    if len(set(accessions)) < len(accessions):
        repeated = next(name for name, times in Counter(accessions).items() if times > 1)
        reason = f"two accessions become {shortened(repeated)} when control characters are {ESCAPES}"
        raise InputError(identifications.files[0], reason, remedy="Rename one of the two")
    warn_escaped_names(progress, identifications.files[0], n_escaped)
    return replace(identifications, accessions=tuple(accessions), **{name: column for name, (column, _) in texts.items()})


def _nothing_read(identifications: Identifications) -> InputError:
    """Return the error for files without a readable match; its message states why the first match is unreadable."""
    first = identifications.unread.slice(0, 1).to_pylist()
    reason = "".join(f": of the first, {row['reason']}{_shown(row['value'])}" for row in first)
    place = "".join(f"{identifications.place_name} {row['line']}" for row in first)
    return InputError(
        identifications.files[0], f"holds no match of a spectrum and a peptide{reason}", place=place, remedy="Give other results"
    )


def _shown(value: str) -> str:
    return f" ({value!r})" if value else ""


def describe_unread(identifications: Identifications) -> dict[str, str]:
    """Return, for each reason why matches are unreadable, a text with the positions and values of the first three such matches."""
    coded = identifications.unread["reason"].combine_chunks().dictionary_encode()
    codes = coded.indices.to_numpy(zero_copy_only=False)
    shown = {}
    for code, reason in enumerate(coded.dictionary.to_pylist()):
        rows = identifications.unread.take(np.flatnonzero(codes == code)[:_MAXIMUM_PLACES]).to_pylist()
        files = [f"{identifications.files[row['file']].name}, " if len(identifications.files) > 1 else "" for row in rows]
        positions = [
            f"{file}{identifications.place_name} {row['line']}{_shown(row['value'])}" for file, row in zip(files, rows, strict=True)
        ]
        shown[reason] = "; ".join(positions)
    return shown


def _limit_numbers(identifications: Identifications) -> Identifications:
    """Return the identifications with impossibly large numbers replaced by NaN."""

    def known(values: NDArray[np.float64], most: float) -> NDArray[np.float64]:
        return np.where(np.abs(values) <= most, values, np.nan)

    return replace(
        identifications,
        retention_time=known(identifications.retention_time, _LARGEST_NUMBER),
        precursor_mz=known(identifications.precursor_mz, _LARGEST_NUMBER),
        calculated_mass=known(identifications.calculated_mass, _LARGEST_NUMBER),
        scores={name: known(values, _LARGEST_SCORE) for name, values in identifications.scores.items()},
    )
