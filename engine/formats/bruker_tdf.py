"""Reader of Bruker's timsTOF runs of DDA-PASEF (Meier et al. 2018, Mol. Cell. Proteomics 17:2534) with the optional package opentimspy.

The reader is experimental. Without Bruker's library, opentimspy computes the square root of m/z as a linear function of the time of flight
over the range of the run, which causes errors of a few parts per million. Each precursor becomes one spectrum: the peaks of all its frames
and scans, summed by time of flight.
"""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import is_group_start, segment_offsets
from proteoscope.engine.chemistry.activation import Activation
from proteoscope.engine.errors import InputError
from proteoscope.engine.formats.spectrum_blocks import HIGHEST_CHARGE, MAXIMUM_INTENSITY, MAXIMUM_SCAN
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.results.counts import counted
from proteoscope.engine.spectra.columns import Spectra
from proteoscope.engine.sqlite_inputs import computed_table, open_sqlite
from proteoscope.engine.unfolding import RUN_PEAKS

__all__ = ["read_tdf"]

_TABLES = ("Frames", "GlobalMetadata", "PasefFrameMsMsInfo", "Precursors")
_PASEF = 8
_PRECURSORS = 250
"""Number of precursors that are read together, with all their frames."""
_MAXIMUM_ROWS = 1 << 26
_MAXIMUM_SCANS = 1 << 16
_LARGEST_NUMBER = 1 << 31
_REMEDY = "Convert it to mzML with msconvert (ProteoWizard)"
_FRAMES = "SELECT Id, Time, MsMsType, NumPeaks, NumScans FROM Frames ORDER BY Id"
_INFO = "SELECT Precursor, Frame, ScanNumBegin, ScanNumEnd FROM PasefFrameMsMsInfo WHERE Precursor IS NOT NULL ORDER BY Precursor, Frame"
_PRECURSORS_OF_RUN = (
    "SELECT Id, coalesce(MonoisotopicMz, LargestPeakMz), coalesce(Charge, 0), coalesce(Intensity, 0) FROM Precursors ORDER BY Id"
)


def read_tdf(folder: Path, progress: Progress) -> Spectra:
    """Read the MS2 spectra of a run, one per precursor, in the order of precursor numbers.

    Parameters
    ----------
    folder : Path
        Folder of the run (``.d``).
    progress : Progress
        Progress, which receives messages and is checked for cancellation.

    Returns
    -------
    Spectra
        MS2 spectra.

    Raises
    ------
    InputError
        If the folder is not a valid run of DDA-PASEF.
    Cancelled
        If the user cancels.
    """
    from opentimspy.opentims import OpenTIMS  # optional: installed with the extra "vendor"
    from opentimspy.opentimspy_cpp import conversion_method  # optional: installed with the extra "vendor"

    frames, info, precursors = _tables(folder, progress)
    positions = np.searchsorted(precursors[:, 0], info[:, 0])
    parts: list[tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]] = []
    progress.stage(f"Reading {folder.name}", len(precursors))
    try:
        with OpenTIMS(folder, cm=conversion_method.OpenSource) as run:
            for first in range(0, len(precursors), _PRECURSORS):
                batch = slice(*np.searchsorted(positions, (first, min(first + _PRECURSORS, len(precursors)))))
                parts.append(_peaks(run, info[batch], positions[batch]))
                progress.advance(min(_PRECURSORS, len(precursors) - first))
    except (RuntimeError, ValueError, KeyError, MemoryError, sqlite3.Error) as error:
        raise InputError(folder, f"the Bruker run cannot be read ({error!s:.200})", remedy=_REMEDY) from None
    owner, mz, intensity = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    first_row = np.searchsorted(positions, np.arange(len(precursors)))
    names = map("frame={} scan={}".format, info[first_row, 1].tolist(), info[first_row, 2].tolist())
    charge = _charges(folder, precursors, progress)
    height = np.where(precursors[:, 3] <= MAXIMUM_INTENSITY, precursors[:, 3], 0.0)
    time = frames[np.searchsorted(frames[:, 0], info[first_row, 1]), 1]
    return Spectra(
        files=(str(folder),),
        file=np.zeros(len(precursors), np.int32),
        identifier=list(names),
        scan=precursors[:, 0].astype(np.int64),
        index=np.arange(len(precursors)),
        retention_time=time,
        precursor_mz=precursors[:, 1].copy(),
        precursor_intensity=height.clip(min=0.0).astype(np.float32),
        charge_mask=np.where(charge > 0, 1 << charge, 0).astype(np.uint32),
        offsets=segment_offsets(np.bincount(owner, minlength=len(precursors))),
        mz=mz,
        intensity=intensity.astype(np.float32),
        activation=np.full(len(precursors), Activation.CID, np.uint8),
    )


def _charges(folder: Path, precursors: NDArray[np.float64], progress: Progress) -> NDArray[np.int64]:
    """Return the charges of precursors, 0 if unknown; warn about invalid charges, which are treated as unknown."""
    charge = precursors[:, 2]
    is_odd = (charge < 0) | (charge > HIGHEST_CHARGE) | (charge != np.floor(charge))
    if is_odd.any():
        first = int(np.argmax(is_odd))
        progress.message(
            f"{folder}: the charge of {counted(int(is_odd.sum()), 'precursor')} is not a whole number from 1 to {HIGHEST_CHARGE}, and is "
            f"treated as unknown; the first: precursor {precursors[first, 0]:.0f}, {charge[first]:g}. Correct the charge in the table "
            "Precursors of analysis.tdf to search it",
            "warning",
        )
    return np.where(is_odd, 0.0, charge).astype(np.int64)


def _tables(folder: Path, progress: Progress) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.float64]]:
    """Read frames, isolations (precursor, frame, scan range) and isolated precursors; return the rows of the three queries as arrays.

    The database may come from an untrusted source: only tables that are stored in the file are read (no views), and their contents must
    be consistent. opentimspy, which opens the file again, reads the same tables.
    """
    binary = folder / "analysis.tdf_bin"
    try:
        n_bytes = binary.stat().st_size
        with contextlib.closing(open_sqlite(folder / "analysis.tdf", is_cancelled=lambda: progress.is_cancelled)) as connection:
            if missing := computed_table(connection, _TABLES):
                reason = f"the Bruker run has no table {missing}, or it is a view or has computed columns: it is not a run of DDA-PASEF"
                raise InputError(folder, reason, remedy=_REMEDY)
            frames, info, precursors = (
                np.array(list(_rows(connection, query, folder)), np.float64).reshape(-1, width)
                for query, width in ((_FRAMES, 5), (_INFO, 4), (_PRECURSORS_OF_RUN, 4))
            )
    except FileNotFoundError:
        raise InputError(folder, "the Bruker run has no analysis.tdf_bin", remedy="Copy the whole folder") from None
    except (OSError, sqlite3.Error, ValueError, TypeError, OverflowError, MemoryError) as error:
        progress.check()
        raise InputError(folder, f"the Bruker run's analysis.tdf cannot be read ({error})", remedy="Copy it again") from None
    if not len(info):
        is_dia = bool((frames[:, 2] == _PASEF + 1).any())
        reason = "is data-independent (diaPASEF), which is not supported" if is_dia else "has no MS2 spectra"
        raise InputError(folder, f"the Bruker run {reason}", remedy=_REMEDY)
    if not (np.isfinite(frames).all() and np.isfinite(info).all() and np.isfinite(precursors).all()):
        raise _damaged(folder)
    # Identifiers and counts are converted to integers.
    if any((np.abs(whole) >= _LARGEST_NUMBER).any() for whole in (frames[:, [0, 2, 4]], info, precursors[:, [0]])):
        raise _damaged(folder)
    # Only isolated precursors have spectra.
    precursors = precursors[np.isin(precursors[:, 0], info[:, 0])]
    at = np.searchsorted(frames[:, 0], info[:, 1]).clip(max=len(frames) - 1)
    is_consistent = (
        (np.abs(info[:, :2]) < MAXIMUM_SCAN).all()
        and len(np.unique(precursors[:, 0])) == len(np.unique(info[:, 0])) == len(precursors)
        and len(np.unique(frames[:, 0])) == len(frames)
        and (frames[at, 0] == info[:, 1]).all()
        and (frames[:, 3:] >= 0).all()
        and (frames[:, 4] <= _MAXIMUM_SCANS).all()
        and (info[:, 2] >= 0).all()
        and (info[:, 2] < info[:, 3]).all()
        and (info[:, 3] <= _MAXIMUM_SCANS).all()
    )
    if not is_consistent:
        raise _damaged(folder)
    RUN_PEAKS.check(folder, int(frames[:, 3].sum()), n_bytes)
    return frames, info.astype(np.int64), precursors


def _rows(connection: sqlite3.Connection, query: str, folder: Path) -> Iterator[Any]:
    for number, row in enumerate(connection.execute(query)):
        if number >= _MAXIMUM_ROWS:
            raise _damaged(folder)
        yield row


def _damaged(folder: Path) -> InputError:
    return InputError(folder, "the tables of the Bruker run are inconsistent", remedy="Copy it again, or convert it with msconvert")


def _peaks(
    run: Any, info: NDArray[np.int64], position: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Return the peaks of the given precursors, sorted by precursor and m/z: index of the precursor, m/z and intensity.

    Parameters
    ----------
    run : OpenTIMS
        Open run.
    info : ndarray of int64, shape (m, 4)
        Rows of the isolation table.
    position : ndarray of int64, shape (m,)
        Index of the precursor of each row.
    """
    points = run.query(np.unique(info[:, 1]).astype(np.uint32), columns=("frame", "scan", "tof", "intensity", "mz"))
    keys = points["frame"].astype(np.int64) * (2 * _MAXIMUM_SCANS) + points["scan"]
    order = np.lexsort((info[:, 2], info[:, 1]))
    begins = info[order, 1] * (2 * _MAXIMUM_SCANS) + info[order, 2]
    row = np.searchsorted(begins, keys, side="right") - 1
    isolated = order[row.clip(min=0)]
    is_inside = (row >= 0) & (info[isolated, 1] == points["frame"]) & (points["scan"] < info[isolated, 3])
    owner, tof, mz = position[isolated[is_inside]], points["tof"][is_inside].astype(np.int64), points["mz"][is_inside]
    height = points["intensity"][is_inside].astype(np.float64)
    if not len(owner):
        return owner, mz, height
    order = np.lexsort((tof, owner))
    owner, tof, mz, height = owner[order], tof[order], mz[order], height[order]
    first = np.flatnonzero(is_group_start(owner, tof))
    owner, tof, mz, height = owner[first], tof[first], mz[first], np.add.reduceat(height, first)
    # An ion's peak covers several time-of-flight bins: consecutive bins form one peak, up to a valley.
    is_apart = np.append(True, (np.diff(owner) != 0) | (np.diff(tof) > 1))
    is_valley = np.zeros(len(height), np.bool_)
    is_valley[1:-1] = (height[1:-1] < height[:-2]) & (height[1:-1] <= height[2:]) & ~is_apart[1:-1] & ~is_apart[2:]
    start = np.flatnonzero(is_apart | is_valley)
    total = np.add.reduceat(height, start)
    with np.errstate(invalid="ignore"):
        middle = np.add.reduceat(height * mz, start) / total
    return owner[start], middle, total
